/* line.h - how good predictions have been on this machine, in a line: of `history` and `doctor`. */
#ifndef HP_CLI_HISTORY_LINE_H
#define HP_CLI_HISTORY_LINE_H

#include "cli/cli.h"
#include "plan/base/arena.h"
#include "traces/ledger.h"

typedef struct history_figures {
    hp_ledger_figures raw, equal; /* of this machine's runs; at equal machine speed */
    int elsewhere;                /* runs on other processors, or of plans for other machines */
    int uncalibrated;             /* predicted here without a calibration of this processor */
} history_figures;

/* `here`: the processor's name. use: room for n, set to whether a run counts. */
history_figures history_sum(const hp_ledger_entry *e, int n, const char *here, bool *use);

/* "41 runs on this machine: median error 3.8%, 90% intervals covered 93%; at equal speed 2.1% and 95%" */
enum { HISTORY_LINE = 400 };
const char *history_line(const history_figures *f, char out[HISTORY_LINE]);
/* {"runs": 41, "median_error": 0.038, "covered": 0.93, …} */
json_t *history_json(const history_figures *f);

#endif
