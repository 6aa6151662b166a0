/* tuning_export.h - exports the fastest choices of a cost table in the formats of libraries that accept
 * them. */
#ifndef HP_TUNING_EXPORT_H
#define HP_TUNING_EXPORT_H

#include "costmodels/cost_rows.h"

typedef struct hp_tuning_report {
    int rules;          /* that were written */
    char left_out[400]; /* keys of rows whose algorithm, operation or back end the library lacks; "": none */
} hp_tuning_report;

/* Writes the configuration file of NCCL's example tuner plugin (ext-tuner/example): CSV, one line per range
 * of sizes. Errors: HP_EDATA if no row says anything that the library could be told; HP_EIO. */
hp_status hp_export_nccl_tuner(hp_arena *arena, const hp_cost_table *t, FILE *f, hp_tuning_report *r,
                               hp_error *err);
/* Writes the file of Open MPI's coll_tuned_dynamic_rules_filename (4.1). */
hp_status hp_export_ompi_rules(hp_arena *arena, const hp_cost_table *t, FILE *f, hp_tuning_report *r,
                               hp_error *err);

/* --- what both share: tuning.c --- */

/* From `bytes` on. */
typedef struct hp_tuned {
    double bytes;
    hp_algorithm algorithm; /* LIBRARY: its own decision */
} hp_tuned;

typedef struct hp_tuned_group {
    hp_collective what;
    int32_t ranks, per_node;
    int n;
    hp_tuned *tuned; /* the first entry starts at 0 bytes */
} hp_tuned_group;

/* A library. Its own rows take precedence over those of hplan's steps, which compare its algorithms where it
 * was not measured itself. */
typedef struct hp_tunable {
    hp_wire by;
    /* Does it have the algorithm for the operation? LIBRARY: can it be told about the operation? */
    bool (*has)(hp_collective what, hp_algorithm a);
} hp_tunable;

void hp_tuning_leave_out(hp_tuning_report *r, const char *key);
/* Reports what was written, or why nothing was. */
hp_status hp_tuning_end(FILE *f, const hp_cost_table *t, const char *library, const hp_tuning_report *r,
                        hp_error *err);

/* The fastest rows by size. Leaves out groups with only the library's own decision, which say nothing.
 * Returns the number of groups, in `arena`. */
int hp_tuned_groups(hp_arena *arena, const hp_cost_table *t, const hp_tunable *library, hp_tuned_group **out,
                    hp_tuning_report *r);

#endif
