/* ledger.h - the history: one row per finished run of a plan, its prediction beside what was measured, over all plans
 * of a user. What hplan says of its own accuracy is read from it.
 *
 * A SQLite file of its own, $XDG_STATE_HOME/hplan/history.db, to which runs of several processes append at a time. */
#ifndef HP_LEDGER_H
#define HP_LEDGER_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { HP_LEDGER_VERSION = 1 };

typedef struct hp_ledger_entry {
#define TEXT(name)   const char *name;
#define COUNT(name)  int64_t name;
#define TIME(name)   double name;
#define FIGURE(name) double name; /* NaN: not known */
#include "traces/ledger.def"
#undef TEXT
#undef COUNT
#undef TIME
#undef FIGURE
} hp_ledger_entry;

/* Where the history is: under $XDG_STATE_HOME, else ~/.local/state. Returns `out`. */
const char *hp_ledger_path(char *out, size_t n);

/* Adds one row, in a transaction that waits for those of other processes (at most 5 s); makes the file and its folder.
 * Texts may be NULL. Errors: HP_ECREATE, HP_EIO, HP_EDATA (another program's file, damaged, of another version). */
hp_status hp_ledger_append(const char *path, const hp_ledger_entry *e, hp_error *err);

/* All rows, oldest first, texts cleaned; none where there is no file. Errors: HP_EDATA. */
hp_status hp_ledger_read(hp_arena *arena, const char *path, hp_ledger_entry **e, int *n, hp_error *err);

/* --- figures --- */

/* Was the prediction one for the machine it ran on: a machine at hand (not a described one), of a processor like
 * `processor`, with a table that was measured on such a one? */
bool hp_ledger_comparable(const hp_ledger_entry *e, const char *processor);

typedef struct hp_ledger_figures {
    int n;               /* runs */
    double median_error; /* of |predicted - measured| / measured; NaN: no runs */
    double bias_log;     /* mean of ln(predicted / measured): below 0 runs were slower than predicted */
    double rms_log;      /* root of the mean of its squares */
    int n_interval;      /* runs that were predicted with an interval */
    double covered;      /* share of them that were measured inside it; NaN: none */
} hp_ledger_figures;

/* Of the runs as they were measured, or (`equal_speed`) of those for which it is known at the speed that was predicted
 * for. `use`: per entry, whether it counts; NULL: all do. */
hp_ledger_figures hp_ledger_sum(const hp_ledger_entry *e, int n, const bool *use, bool equal_speed);

#endif
