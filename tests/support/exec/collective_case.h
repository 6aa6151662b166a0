/* collective_case.h - one collective drawn at random: what each member puts in, and what each must find at the end,
 * computed here from the definitions of plan/collectives/collective.h alone: in wide integers, or within a bound. */
#ifndef HP_TESTS_COLLECTIVE_CASE_H
#define HP_TESTS_COLLECTIVE_CASE_H

#include "exec/comm/comm.h"
#include "tests/support/plan/random_groups.h"

/* What contributions look like. Sums of whole numbers are exact in every type, whatever the order. */
typedef enum collective_values { COLLECTIVE_WHOLE, COLLECTIVE_REAL, COLLECTIVE_SPECIAL } collective_values;

typedef struct collective_test {
    hp_comm_op op; /* data, source, group and device are the caller's */
    int32_t n;     /* members */
    bool apart;    /* contributions lie in `source` */
    int32_t values;
    uint64_t seed;
} collective_test;

/* The `which`-th pair of a collective and an algorithm that does it, counted around; all else is drawn. */
collective_test collective_draw(hp_arena *arena, group_dice *d, int n, int backend, int which);
/* An in-place sum in float32 or float64. */
collective_test collective_draw_sum(group_dice *d, int n);
/* Pairs for that many members, and types, of a whole sweep. */
int collective_pairs(int n, int backend);

int64_t collective_bytes(const collective_test *t);
/* Of what a member contributes. */
int64_t collective_source_bytes(const collective_test *t, int member);
/* Writes collective_bytes and, if it is not NULL, collective_source_bytes: contributions, and elsewhere anything. */
void collective_fill(const collective_test *t, int member, void *data, void *source);
/* Is it what the collective promises to a member? If not, `why` says what is where. */
bool collective_right(const collective_test *t, int member, const void *data, char *why, size_t n);
/* Element i of an array of that type; float64 holds all of them. */
void collective_put(hp_dtype type, void *at, int64_t i, double v);
double collective_get(hp_dtype type, const void *at, int64_t i);
/* "allreduce by ring of 5 x 3 f32 sum root 0 parts apart" */
void collective_text(const collective_test *t, char *out, size_t n);

#endif
