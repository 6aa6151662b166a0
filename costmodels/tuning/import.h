/* import.h - what other programs measured, as rows of a cost table: the text that nccl-tests, the OSU
 * micro-benchmarks and `hplan bench comm` print. */
#ifndef HP_IMPORT_H
#define HP_IMPORT_H

#include "costmodels/cost_rows.h"

typedef struct hp_import_options {
    const hp_machine *machine; /* whose links the rows are of */
    const char *op;            /* as the text's programs are called; NULL: as the text says */
    hp_algorithm algorithm;    /* that the library was made to use; LIBRARY: its own choice */
    int32_t ranks, per_node;   /* 0: as the text says */
} hp_import_options;

typedef struct hp_import hp_import;

/* Lives in `arena`. */
hp_import *hp_import_new(hp_arena *arena, const hp_import_options *o);

/* Takes in a text that was measured on `date`; several runs may follow each other, other lines between them are passed
 * over. `where` names the file in errors. Errors: HP_EDATA with the line (damaged, wrong results, impossible
 * times); HP_EUSAGE (the text does not say something that an option would). */
hp_status hp_import_text(hp_import *i, const char *text, const char *where, const char *date, hp_error *err);

/* The names of tests that hplan has no row for and that were left out; "": none. */
const char *hp_import_left_out(const hp_import *i);

/* Appends a row per (link, operation, back end, ranks) with the median at each size. Errors: HP_EDATA: faster than the
 * link, or as fast for more data, which a timer sees that stops before the operation does. */
hp_status hp_import_rows(const hp_import *i, hp_cost_table *t, hp_error *err);

#endif
