/* record.h - writes a finished run into the user's history. */
#ifndef HP_RECORD_H
#define HP_RECORD_H

#include "cli/history/outcome.h"
#include "traces/ledger.h"

/* Appends the run, unless HPLAN_NO_HISTORY is set or the run has only a warm-up. If the history cannot be
 * written, prints one line on stderr; it never fails a run. */
void run_record(const hp_plan *plan, const run_outcome *r);

#endif
