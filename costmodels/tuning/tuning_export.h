/* tuning_export.h - what a cost table says is fastest, in the words of the libraries that can be told. */
#ifndef HP_TUNING_EXPORT_H
#define HP_TUNING_EXPORT_H

#include "costmodels/cost_rows.h"

typedef struct hp_tuning_report {
    int rules; /* that were written */
    char left_out
        [400]; /* keys of rows whose algorithm, operation or back end the library does not have; "": none */
} hp_tuning_report;

/* Errors: HP_EDATA: no row says anything that the library could be told; HP_EIO.
 *
 * The configuration file of NCCL's example tuner plugin (ext-tuner/example): CSV, one line per range of sizes. */
hp_status hp_export_nccl_tuner(hp_arena *arena, const hp_cost_table *t, FILE *f, hp_tuning_report *r,
                               hp_error *err);
/* The file of Open MPI's coll_tuned_dynamic_rules_filename (4.1). */
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
    hp_tuned *tuned; /* the first from 0 bytes on */
} hp_tuned_group;

/* A library: whose rows count before those of hplan's own steps, which say how its algorithms compare where it was not
 * measured itself. */
typedef struct hp_tunable {
    hp_wire by;
    bool (*has)(hp_collective what, hp_algorithm a); /* LIBRARY: can it be told about the operation? */
} hp_tunable;

void hp_tuning_leave_out(hp_tuning_report *r, const char *key);
/* What was written, or why nothing was. */
hp_status hp_tuning_end(FILE *f, const hp_cost_table *t, const char *library, const hp_tuning_report *r,
                        hp_error *err);

/* The fastest by size. Groups of which only the library's own decision was measured say nothing and are left out. Returns
 * how many there are, in `arena`. */
int hp_tuned_groups(hp_arena *arena, const hp_cost_table *t, const hp_tunable *library, hp_tuned_group **out,
                    hp_tuning_report *r);

#endif
