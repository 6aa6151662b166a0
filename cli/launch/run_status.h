/* run_status.h - a run's current status, in a file that is replaced about once a second: DIR/status.json in
 * the run's directory, for `hplan status`; on request, also as metrics for Prometheus. */
#ifndef HP_RUN_STATUS_H
#define HP_RUN_STATUS_H

#include "cli/launch/workspace.h"

#include <jansson.h>

typedef struct run_status {
    char json[4160];     /* path */
    const char *metrics; /* path; NULL: none */
    json_t *o;           /* content of the file */
    double written_s;    /* hp_now_s at the last write */
    double steps_s;      /* total seconds of the steps so far, */
    int64_t n_step;      /* and their number */
    bool failed;         /* it could not be written, which was reported once */
} run_status;

/* Begins with what is known of the run. checkpoint: its directory, or NULL. Errors: HP_ECREATE (metrics
 * cannot be written). */
hp_status run_status_begin(run_status *s, const workspace *w, const hp_plan *plan, const char *checkpoint,
                           const char *metrics, hp_error *err);
/* Processes a line of hplan-exec, parsed as an object. */
void run_status_note(run_status *s, const json_t *line);
/* Writes the last metrics when the run is over. Safe on a zeroed run_status. */
void run_status_end(run_status *s, hp_status outcome);

#endif
