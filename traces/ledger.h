/* ledger.h - the history: one row per finished run of a plan, with prediction and measurement, over all plans
 * of a user. hplan's statements about its own accuracy come from it.
 *
 * A separate SQLite file, $XDG_STATE_HOME/hplan/history.db, to which several processes may
 * append concurrently. */
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

/* Path of the history: under $XDG_STATE_HOME, else ~/.local/state. Returns `out`. */
const char *hp_ledger_path(char *out, size_t n);

/* Adds one row, in a transaction that waits for those of other processes (at most 5 s); creates the file
 * and its folder. Texts may be NULL. Errors: HP_ECREATE, HP_EIO, HP_EDATA (another program's file,
 * damaged, of another version). */
hp_status hp_ledger_append(const char *path, const hp_ledger_entry *e, hp_error *err);

/* Reads all rows, oldest first, with cleaned texts; none if there is no file. Errors: HP_EDATA. */
hp_status hp_ledger_read(hp_arena *arena, const char *path, hp_ledger_entry **e, int *n, hp_error *err);

/* --- figures --- */

/* Was the prediction made for the machine that it ran on? That is: an actual machine (not a described one),
 * with a processor like `processor`, and a table measured on such a one. */
bool hp_ledger_comparable(const hp_ledger_entry *e, const char *processor);

typedef struct hp_ledger_figures {
    int n;               /* runs */
    double median_error; /* median of |predicted - measured| / measured; NaN: no runs */
    double bias_log;     /* mean of ln(predicted / measured): below 0 runs were slower than predicted */
    double rms_log;      /* root mean square of that logarithm */
    int n_interval;      /* runs that were predicted with an interval */
    double covered;      /* share of these with a measurement inside the interval; NaN: none */
} hp_ledger_figures;

/* Figures over the runs as measured, or (`equal_speed`) at the speed that the prediction assumed, for runs
 * where that is known. `use`: for each entry, whether it counts; NULL: all do. */
hp_ledger_figures hp_ledger_sum(const hp_ledger_entry *e, int n, const bool *use, bool equal_speed);

#endif
