/* import.h - turns measurements by other programs into rows of a cost table: the output of nccl-tests, the
 * OSU micro-benchmarks and `hplan bench comm`. */
#ifndef HP_IMPORT_H
#define HP_IMPORT_H

#include "costmodels/cost_rows.h"

typedef struct hp_import_options {
    const hp_machine *machine; /* the machine whose links the rows describe */
    const char *op;            /* operation, as the text's programs call it; NULL: taken from the text */
    hp_algorithm algorithm;    /* algorithm that the library was forced to use; LIBRARY: its own choice */
    int32_t ranks, per_node;   /* 0: taken from the text */
} hp_import_options;

typedef struct hp_import hp_import;

/* Lives in `arena`. */
hp_import *hp_import_new(hp_arena *arena, const hp_import_options *o);

/* Reads a text that was measured on `date`. It may contain several runs; other lines between them are
 * ignored. `where` names the file in errors. Errors: HP_EDATA with the line (damaged, wrong results,
 * impossible times); HP_EUSAGE (the text lacks a fact that an option could supply). */
hp_status hp_import_text(hp_import *i, const char *text, const char *where, const char *date, hp_error *err);

/* Names of tests that were left out because hplan has no row for them; "": none. */
const char *hp_import_left_out(const hp_import *i);

/* Appends a row per (link, operation, back end, ranks) with the median at each size. Errors: HP_EDATA if
 * times are faster than the link, or do not grow with the data, because the timer stopped before the
 * operation did. */
hp_status hp_import_rows(const hp_import *i, hp_cost_table *t, hp_error *err);

#endif
