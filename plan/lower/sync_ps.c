/* sync_ps.c - the parameter server (Li et al., OSDI 2014), shared among those who hold the parameters:
 * members take turns as the server, bucket after bucket. All send it their gradients. It adds them up, runs
 * the optimiser, whose momentum it alone holds, and sends the new parameters to all.
 *
 * Every server has its own communicator, so that several serve at the same time. */
#include "plan/lower/lower_inside.h"
#include "plan/strategy/axes/axis_sync.h"

int lower_server(const hp_role_builder *c, int bucket) {
    const hp_bucket *b = c->r->bucket;
    int k = 0; /* earlier buckets of the group: equally many on all members, whatever else they hold */
    if (b[bucket].group < 0) return -1;
    for (int i = 0; i < bucket; i++) k += b[i].group == b[bucket].group;
    return hp_sync_server(c->facts->s, hp_group_size(c->shared->p, b[bucket].group), k);
}

static int rooted(hp_role_builder *c, hp_task_op op, int bucket, int32_t buffer) {
    hp_task t = lower_bucket_sum(c, op, bucket);
    lower_rooted(c, c->r->bucket[bucket].group, lower_server(c, bucket), &t);
    return lower_task(c, t, (int32_t[2]){buffer, -1});
}

int lower_to_server(hp_role_builder *c, int bucket) {
    return rooted(c, HP_TASK_REDUCE, bucket, HP_BUF_GRADS);
}

void lower_from_server(hp_role_builder *c, int bucket, int updated) {
    c->emit.writer[HP_BUF_WEIGHTS] = -1; /* buckets are disjoint */
    lower_dep(c, rooted(c, HP_TASK_BROADCAST, bucket, HP_BUF_WEIGHTS), updated);
}
