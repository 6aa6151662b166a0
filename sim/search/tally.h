/* tally.h - counts of rejects, with the nearest miss as an example of each kind. */
#ifndef HP_TALLY_H
#define HP_TALLY_H

#include "base/arena.h"
#include "plan/strategy/family.h"

#include <stdint.h>

/* Rows: codes, where lack of memory is split into with and without tiles, because different memory is short;
 * then the families. */
enum { HP_TALLY_KINDS = HP_REJECTS + 1, HP_TALLY_ROWS = HP_TALLY_KINDS + HP_FAMILIES };

typedef struct hp_tally_row {
    int64_t count;
    double miss; /* by how much the example exceeds the limit */
    int32_t order;
    hp_strategy example;
    hp_reject why;
} hp_tally_row;

typedef struct hp_tally {
    hp_tally_row row[HP_TALLY_ROWS];
} hp_tally;

/* A reject: `miss` compares rejects of one code, `order` breaks ties. */
typedef struct hp_miss {
    const hp_strategy *s;
    double miss;
    int32_t order;
} hp_miss;

/* Would it become an example? Only then is its text needed. */
bool hp_tally_wants(const hp_tally *t, hp_reject_code code, const hp_miss *m);
void hp_tally_add(hp_tally *t, const hp_reject *why, const hp_miss *m);
/* Adds the counts of `other`; the order of calls does not matter. */
void hp_tally_merge(hp_tally *t, const hp_tally *other);

#endif
