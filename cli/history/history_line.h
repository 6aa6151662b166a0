/* history_line.h - how good predictions have been on this machine, in one line for `history` and `doctor`. */
#ifndef HP_HISTORY_LINE_H
#define HP_HISTORY_LINE_H

#include "cli/cli.h"
#include "base/arena.h"
#include "traces/ledger.h"

typedef struct history_figures {
    hp_ledger_figures raw, equal; /* for runs on this machine; the same at equal machine speed */
    int elsewhere;                /* runs on other processors, or of plans for other machines */
    double drift;                 /* newest run: its time relative to that at equal speed; NaN: unknown */
    char when[32];                /* date and time of that run, UTC */
    int uncalibrated;             /* runs predicted here without a calibration of this processor */
    char again
        [160]; /* the command that calibrates for the latest run outside its interval; "": all were inside */
} history_figures;

/* `here`: the processor's name. use: n entries, set to whether a run counts. */
history_figures history_sum(const hp_ledger_entry *e, int n, const char *here, bool *use);

/* Do the intervals cover as many runs as they claim? With few runs, some may be outside by chance. No, if the
 * probability of at most this many inside is one in a hundred when 90 % are expected (binomial). Uses equal
 * machine speed, if known. */
bool history_covers(const history_figures *f);

/* "41 runs on this machine: median error 3.8%, 90% intervals covered 93%; at equal speed 2.1% and 95%" */
enum { HISTORY_LINE = 400 };
const char *history_line(const history_figures *f, char out[HISTORY_LINE]);
/* "the machine was 18% slower than predicted for in the run of 2026-01-02 03:04 UTC" */
const char *history_drift(const history_figures *f, char out[HISTORY_LINE]);
/* "2026-01-02 03:04" of "2026-01-02T03:04:05Z" */
const char *history_date(const char *started, char out[32]);
/* {"runs": 41, "median_error": 0.038, "covered": 0.93, …} */
json_t *history_json(const history_figures *f);

#endif
