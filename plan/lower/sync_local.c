/* sync_local.c - local SGD (Stich, ICLR 2019): each replica updates its own parameters; every N steps
 * parameters and momentum become the replicas' mean. All replicas are then in the same state. Averaging in
 * each step is plain data parallelism.
 *
 * The averages are tasks of every step; in the other steps both interpreters skip them. A program of N steps
 * would need no such rule, but its size, its memory and the meaning of a step would grow with N. */
#include "plan/lower/lower_inside.h"

bool lower_is_local(const hp_lower_facts *f) {
    return f->s->sync.how == HP_SYNC_LOCAL && hp_strategy_replicas(f->s) > 1;
}

static int collective(hp_role_builder *c, int group, hp_reduction reduction, int bucket, int32_t buffer) {
    hp_task t = lower_bucket_sum(c, HP_TASK_ALLREDUCE, bucket);
    t.flags = reduction == HP_REDUCE_AVG ? HP_FLAG_AVERAGE : 0;
    lower_reduction(c, group, reduction, &t);
    return lower_task(c, t, (int32_t[2]){buffer, -1});
}

int lower_local_sum(hp_role_builder *c, int bucket) {
    const int group = lower_replica_group(c->shared, c->r->bucket[bucket].group);
    return group < 0 ? -1 : collective(c, group, HP_REDUCE_SUM, bucket, HP_BUF_GRADS);
}

void lower_average(hp_role_builder *c, int bucket, int updated) {
    static const int32_t buffers[] = {HP_BUF_WEIGHTS, HP_BUF_OPTIMIZER};
    for (int i = 0; i < 2; i++) {
        c->emit.writer[buffers[i]] = -1; /* buckets are disjoint */
        lower_dep(c, collective(c, c->r->bucket[bucket].group, HP_REDUCE_AVG, bucket, buffers[i]), updated);
    }
}
