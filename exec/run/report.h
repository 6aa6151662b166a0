/* report.h - the output of a run: one JSON object per line on stdout, by rank 0 only. */
#ifndef HP_REPORT_H
#define HP_REPORT_H

#include "exec/checkpoint/checkpoint.h"

#include <stdbool.h>
#include <stdint.h>

/* {"planned_steps":100}: the first line, for progress bars. Errors: HP_EIO. */
hp_status hp_report_begin(int64_t steps, hp_error *err);
typedef struct hp_report_step_of {
    int64_t step; /* from 1 */
    double loss, step_s;
    double step_cpu_s; /* CPU time of rank 0, less affected by other programs */
    double images_per_s;
    double lr;           /* learning rate of this step */
    double norm;         /* norm of its gradients if they are clipped; negative: the member is omitted */
    double loss_scale;   /* its loss scale; 0: loss scaling is off, and the member is omitted */
    bool skipped;        /* nothing was updated; else the member is omitted */
    const char *strange; /* its first number that is not finite, in words; "": not looked for */
} hp_report_step_of;

/* {"step":1,"loss":2.3,"step_s":0.2,"step_cpu_s":0.19,"images_per_s":320}. Errors: HP_EIO (stdout is
 * full). */
hp_status hp_report_step(const hp_report_step_of *s, hp_error *err);

typedef struct hp_report_eval {
    bool has;
    double accuracy, loss;       /* accuracy: of images, or of pixels */
    int64_t images, test_images; /* images that were looked at, of how many */
    int64_t text_bytes;          /* bytes of text whose successors were predicted; 0: the data are not text */
    bool has_iou;                /* the network predicts a class per pixel */
    double iou;                  /* NaN: no foreground in data or predictions */
} hp_report_eval;

typedef struct hp_report_slide { /* the data are patches of an image */
    bool has;
    int64_t patches;
    int32_t mean_class, majority_class;
    double mean_share, majority_share;
} hp_report_slide;

typedef struct hp_report_ranks { /* a number per rank each */
    int n;
    const double *peak_bytes, *planned_bytes, *rss_bytes, *yardstick_bytes, *sent_bytes, *direct_bytes;
} hp_report_ranks;

typedef struct hp_report_final {
    int64_t steps;
    double loss;         /* last step's */
    double step_s;       /* median */
    double images_per_s; /* at the median */
    double loss_scale;   /* final value; 0: none */
    bool skips;          /* steps may be skipped without a loss scale */
    int64_t skipped;     /* steps whose gradients were not finite */
    bool leaves_out;     /* images that cannot be read may be left out */
    int64_t left_out;    /* such images, of training and evaluation */
    hp_report_eval eval;
    hp_report_slide slide;
    hp_checkpoint_cost checkpoint; /* saves 0: none */
    hp_report_ranks ranks;
} hp_report_final;

/* {"final":true,...}: the last line of a run. */
hp_status hp_report_end(const hp_report_final *f, hp_error *err);

#endif
