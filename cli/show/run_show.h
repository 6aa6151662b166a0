/* run_show.h - what `hplan run` shows: hplan-exec's JSON lines unchanged, or a progress bar and a summary. */
#ifndef HP_RUN_SHOW_H
#define HP_RUN_SHOW_H

#include "cli/cli.h"

typedef struct run_show {
    bool json;
    double predicted_s;
    cli_progress bar;
    bool started;
    double first_loss;
    json_t *final; /* the last line; NULL until it arrives */
} run_show;

/* Starts the output of a run. json: print lines unchanged. predicted_s: step time, shown beside the measured
 * one. */
void run_show_start(run_show *s, bool json, double predicted_s);
/* The cli_launch.line callback of a run_show. Errors: HP_EIO when stdout is full, HP_EINTERNAL for a line
 * that is not JSON. */
hp_status run_show_line(void *self, const char *line, hp_error *err);
/* Ends the progress bar. */
void run_show_end(run_show *s);
/* Prints the summary as text on stdout; frees `final`. kept: where an earlier trace of that name is now, "" there was
 * none. */
void run_show_summary(run_show *s, const char *trace, const char *kept);

#endif
