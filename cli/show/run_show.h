/* run_show.h - what `hplan run` shows: hplan-exec's JSON lines unchanged, or a progress bar and a summary. */
#ifndef HP_RUN_SHOW_H
#define HP_RUN_SHOW_H

#include "cli/cli.h"
#include "cli/history/outcome.h"
#include "cli/launch/run_status.h"

typedef struct run_show {
    bool json;
    cli_progress bar;
    bool started;
    const char *samples;        /* what a batch holds: "images" (networks/graph/samples.h) */
    double first_loss, steps_s; /* steps_s: of all steps together */
    json_t *final;              /* the last line; NULL until it arrives */
    run_status *status;         /* is told every line; NULL: nobody is */
} run_show;

/* Starts the output of a run. json: print lines unchanged. */
void run_show_start(run_show *s, bool json);
/* The cli_launch.line callback of a run_show. Errors: HP_EIO when stdout is full, HP_EINTERNAL for a line
 * that is not JSON. */
hp_status run_show_line(void *self, const char *line, hp_error *err);
/* Ends the progress bar. */
void run_show_end(run_show *s);
/* Prints the last line with what `run_outcome` adds as JSON, or else the summary as text; frees `final`.
 * outcome NULL: the run failed, and only the last line is printed, as JSON, if there was one. kept: new name
 * of an earlier trace, "": there was none. */
void run_show_final(run_show *s, const run_outcome *outcome, const char *trace, const char *kept);

#endif
