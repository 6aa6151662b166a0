/* calibrate_import.h - `hplan calibrate --import`: a cost table of what nccl-tests and the OSU micro-benchmarks measured. */
#ifndef HP_CALIBRATE_IMPORT_H
#define HP_CALIBRATE_IMPORT_H

#include "cli/cli.h"
#include "base/arena.h"
#include "machines/machine.h"

/* As on the command line; NULL: not given. */
typedef struct calibrate_import_options {
    const char *first;       /* of the files */
    const char *const *more; /* the others */
    int n_more;
    const char *machine, *op, *algorithm, *ranks, *per_node, *out;
    const hp_machine *here; /* where no other machine is named, with its table */
    const char *here_path;
    bool json;
} calibrate_import_options;

/* What belongs to an import is refused without one; word: that follows the options, NULL: none. */
hp_status calibrate_import_check(const calibrate_import_options *o, const char *word, hp_error *err);
/* Adds the rows of the files to the table, or makes one, and shows them. */
hp_status calibrate_import(hp_arena *arena, const calibrate_import_options *o, hp_error *err);

#endif
