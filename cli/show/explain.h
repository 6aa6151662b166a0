/* explain.h - properties of a stored plan, shared by the text and JSON forms of `hplan explain`. */
#ifndef HP_EXPLAIN_H
#define HP_EXPLAIN_H

#include "plan/strategy/layout.h"
#include "plan/store/store.h"

#include <jansson.h>

enum { EXPLAIN_NAME = 128 };

/* A (virtual) stage: a contiguous range of units, how its tensors are split, and the ranks that compute
 * it. */
typedef struct explain_stage {
    int stage, role, first_unit, last_unit; /* role: of its first part */
    int64_t params;                         /* trained elements */
    int64_t macs;                           /* for one image's forward pass */
    hp_layout layout;
    int parts;      /* parts of the layout, times the branches */
    int strip_unit; /* last unit computed in strips of the image, -1: none */
} explain_stage;

int explain_stages(const hp_plan *plan); /* stages x chunks */
explain_stage explain_stage_of(const hp_plan *plan, int stage);

/* The role of part `part` of the stage (mirrored with flip 1), -1: none. */
int explain_role_of(const hp_plan *plan, int stage, int part, int flip);
/* "2x2 tiles", "4 slices of the batch", "2 channel slices", joined; "" when the stage is not split. `out`
 * holds EXPLAIN_NAME bytes. */
const char *explain_layout(const hp_layout *l, char *out);
/* "stage 1 tile 2 of 4 (1,0) + mirrored stage 0": what a role does. `out` holds n bytes. */
const char *explain_place(const hp_plan *plan, int role, char *out, size_t n);
/* Common prefix of the unit's layers ("layer1.0" for layer1.0.conv1 ...), otherwise "first .. last"; no
 * control characters. `out` holds EXPLAIN_NAME bytes. */
const char *explain_unit_name(const hp_graph *g, int unit, char *out);

/* --- explain_ways.c --- */

/* Collectives of an operation among as many ranks that one back end does by one algorithm. */
typedef struct explain_way {
    hp_collective what;
    int ranks, backend;
    hp_algorithm algorithm; /* LIBRARY: the back end's own */
    int64_t least, most;    /* bytes of the smallest and of the largest one */
} explain_way;
/* Ways of all tasks, sorted by operation, ranks and size. Returns how many, in `arena`. */
int explain_ways(hp_arena *arena, const hp_program *p, explain_way **way);
/* Is number i of the same operation and ranks as the one before it? */
bool explain_goes_on(const explain_way *way, int i);
/* "own.ring"; `out` holds EXPLAIN_NAME bytes. */
const char *explain_way_name(const explain_way *w, char *out);

/* {schema, net, ..., units:[...], stages:[{..., layout, ranks, mirrored_ranks}], roles:[{..., slots:[...],
 * tasks:[...]}], collectives:[{op, ranks, ways:[{backend, algorithm, least_bytes,
 * most_bytes}]}], traffic:[{kind, sent_bytes, number}]}; tasks only of `role`, -1 = all roles. */
json_t *explain_json(const hp_plan *plan, int role);

#endif
