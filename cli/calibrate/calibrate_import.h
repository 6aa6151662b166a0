/* calibrate_import.h - `hplan calibrate --import`: a cost table from measurements by nccl-tests and the OSU
 * micro-benchmarks. */
#ifndef HP_CALIBRATE_IMPORT_H
#define HP_CALIBRATE_IMPORT_H

#include "cli/cli.h"
#include "base/arena.h"
#include "machines/machine.h"

/* As on the command line; NULL: not given. */
typedef struct calibrate_import_options {
    const char *first;       /* the first file */
    const char *const *more; /* the others */
    int n_more;
    const char *machine, *op, *algorithm, *ranks, *per_node, *out;
    const hp_machine *here; /* default machine if no other is named, with its table */
    const char *here_path;
    bool json;
} calibrate_import_options;

/* Rejects import options without an import. word: the argument after the options; NULL: none. */
hp_status calibrate_import_check(const calibrate_import_options *o, const char *word, hp_error *err);
/* Adds the rows of the files to the table, creating it if necessary, and shows them. */
hp_status calibrate_import(hp_arena *arena, const calibrate_import_options *o, hp_error *err);

#endif
