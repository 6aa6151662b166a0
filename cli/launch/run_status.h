/* run_status.h - what a run does, in a file that is replaced about once a second: DIR/status.json in the run's folder, for
 * `hplan status`; and, where it was asked for, the same as metrics for Prometheus. */
#ifndef HP_RUN_STATUS_H
#define HP_RUN_STATUS_H

#include "cli/launch/workspace.h"

#include <jansson.h>

typedef struct run_status {
    char json[4160];     /* path */
    const char *metrics; /* path; NULL: none */
    json_t *o;           /* what the file says */
    double written_s;    /* when, of hp_now_s */
    double steps_s;      /* of the steps so far, */
    int64_t n_step;      /* so many */
    bool failed;         /* it could not be written: said once */
} run_status;

/* Begins with what is known of the run. checkpoint: its folder, or NULL. Errors: HP_ECREATE (metrics cannot be written). */
hp_status run_status_begin(run_status *s, const workspace *w, const hp_plan *plan, const char *checkpoint,
                           const char *metrics, hp_error *err);
/* A line of hplan-exec, as an object. */
void run_status_note(run_status *s, const json_t *line);
/* The run is over: the last metrics. Safe on a zeroed run_status. */
void run_status_end(run_status *s, hp_status outcome);

#endif
