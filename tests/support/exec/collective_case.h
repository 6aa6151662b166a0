/* collective_case.h - a randomly drawn collective: what each member contributes, and what each must have
 * at the end, computed here only from the definitions of plan/collectives/collective.h: in wide integers,
 * or within a bound. */
#ifndef HP_TESTS_COLLECTIVE_CASE_H
#define HP_TESTS_COLLECTIVE_CASE_H

#include "exec/comm/comm.h"
#include "tests/support/plan/random_groups.h"

/* Kind of contributions. Sums of integers are exact in every type, in any order. */
typedef enum collective_values { COLLECTIVE_WHOLE, COLLECTIVE_REAL, COLLECTIVE_SPECIAL } collective_values;

typedef struct collective_test {
    hp_comm_op op; /* the caller sets data, source, group and device */
    int32_t n;     /* members */
    bool apart;    /* contributions are in `source` */
    int32_t values;
    uint64_t seed;
} collective_test;

/* Draws a collective with the `which`-th pair of a collective and an algorithm for it, wrapping around;
 * all else is random. */
collective_test collective_draw(hp_arena *arena, group_dice *d, int n, int backend, int which);
/* An in-place sum in float32 or float64. */
collective_test collective_draw_sum(group_dice *d, int n);
/* Number of pairs with that many members, and of types, in a whole sweep. */
int collective_pairs(int n, int backend);

int64_t collective_bytes(const collective_test *t);
/* Bytes that a member contributes. */
int64_t collective_source_bytes(const collective_test *t, int member);
/* Writes collective_bytes and, if `source` is not NULL, collective_source_bytes: contributions, and
 * arbitrary data elsewhere. */
void collective_fill(const collective_test *t, int member, void *data, void *source);
/* Is the data what the collective promises to a member? If not, `why` tells what is where. */
bool collective_right(const collective_test *t, int member, const void *data, char *why, size_t n);
/* Element i of an array of that type; float64 represents all of them. */
void collective_put(hp_dtype type, void *at, int64_t i, double v);
double collective_get(hp_dtype type, const void *at, int64_t i);
/* Describes it: "allreduce by ring of 5 x 3 f32 sum root 0 parts apart". */
void collective_text(const collective_test *t, char *out, size_t n);

#endif
