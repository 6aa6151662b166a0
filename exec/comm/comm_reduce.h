/* comm_reduce.h - adds up the contributions to a collective. plan/collectives/collective.h defines each
 * reduction for each type. */
#ifndef HP_COMM_REDUCE_H
#define HP_COMM_REDUCE_H

#include "plan/collectives/collective.h"
#include "networks/graph/dtype.h"

/* dst = dst + src, or the minimum or maximum, element by element; averages add here. */
void hp_reduce(hp_reduction r, hp_dtype t, void *dst, const void *src, int64_t n);
/* Divides sums by the number of members. */
void hp_reduce_divide(hp_dtype t, void *data, int64_t n, int32_t members);

#endif
