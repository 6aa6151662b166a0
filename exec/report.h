/* report.h - what a run tells: one JSON object per line on stdout, by rank 0 alone. */
#ifndef HP_REPORT_H
#define HP_REPORT_H

#include "plan/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* {"planned_steps":100}: the first line, for progress bars. Errors: HP_EIO. */
hp_status hp_report_begin(int64_t steps, hp_error *err);
/* {"step":1,"loss":2.3,"step_s":0.2,"step_cpu_s":0.19,"images_per_s":320}; steps count from 1. step_cpu_s:
 * what rank 0's processors worked, which other programs on a shared machine disturb less. Errors: HP_EIO
 * (stdout is full). */
hp_status hp_report_step(int64_t step, double loss, double step_s, double step_cpu_s, double images_per_s,
                         hp_error *err);

typedef struct hp_report_final {
    int64_t steps;
    double loss;         /* of the last step */
    double step_s;       /* median */
    double images_per_s; /* at the median */
    bool has_eval;
    double accuracy, eval_loss; /* accuracy: of images, or of pixels */
    bool has_iou;               /* the network gives a class per pixel */
    double iou;                 /* NaN: no foreground in data and predictions */
    bool has_slide;             /* an image by patches */
    int64_t patches;
    int32_t mean_class, majority_class;
    double mean_share, majority_share;
    int ranks;
    const double *peak_bytes, *planned_bytes, *rss_bytes, *sent_bytes; /* per rank */
} hp_report_final;

/* {"final":true,...}: the last line of a run. */
hp_status hp_report_end(const hp_report_final *f, hp_error *err);

#endif
