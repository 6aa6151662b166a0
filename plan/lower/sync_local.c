/* sync_local.c - local SGD (Stich, ICLR 2019): each replica updates its own parameters, and every so many steps they become
 * the replicas' mean, and the momentum too: then all of them are in the same state, and with an average in each step it
 * is plain data parallelism.
 *
 * The averages are tasks of every step; in the others both interpreters let them pass. A program of all the steps up
 * to an average would need neither of them to know, but its size, its memory and the meaning of a step grow with
 * their number. */
#include "plan/lower/inside.h"

bool lower_is_local(const hp_lower_ctx *c) {
    return c->s->sync == HP_SYNC_LOCAL && c->p->dp > 1;
}

static void average(hp_lower_ctx *c, int group, int bucket, int32_t buffer, int64_t first, int64_t count,
                    int updated) {
    hp_task t = {.op = HP_TASK_ALLREDUCE,
                 .flags = HP_FLAG_AVERAGE,
                 .layer = -1,
                 .micro = -1,
                 .tag = bucket,
                 .dtype = (uint8_t)c->o->dtype,
                 .offset = first,
                 .count = count};
    lower_reduction(c, group, HP_REDUCE_AVG, &t);
    c->writer[buffer] = -1; /* buckets are disjoint */
    lower_dep(c, lower_task(c, t, (int32_t[2]){buffer, -1}), updated);
    c->writer[buffer] = -1;
}

void lower_average(hp_lower_ctx *c, int group, int bucket, int64_t first, int64_t count, int updated) {
    average(c, group, bucket, HP_BUF_WEIGHTS, first, count, updated);
    average(c, group, bucket, HP_BUF_MOMENTUM, first, count, updated);
}
