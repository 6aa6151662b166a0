/* sync_ps.c - the parameter server (Li et al., OSDI 2014), shared among those who hold the parameters: bucket after bucket
 * another member is the server. All send it their gradients; it adds them up, runs the optimiser, whose momentum is
 * there only, and sends the new parameters to all.
 *
 * Every server has a communicator of its own, so that several serve at the same time. */
#include "plan/lower/inside.h"
#include "plan/strategy/sync.h"

int lower_server(const hp_lower_ctx *c, int group, int k) {
    return group < 0 ? -1 : hp_sync_server(c->s, hp_group_size(c->p, group), k);
}

static hp_task bucket_collective(const hp_lower_ctx *c, hp_task_op op, int bucket, int64_t first,
                                 int64_t count) {
    return (hp_task){.op = (uint8_t)op,
                     .layer = -1,
                     .micro = -1,
                     .tag = bucket,
                     .dtype = (uint8_t)c->o->dtype,
                     .offset = first,
                     .count = count};
}

/* Ranges of buckets are disjoint: each waits for its own tasks only. */
static int in_place(hp_lower_ctx *c, const hp_task *t, int32_t buffer) {
    c->writer[buffer] = -1;
    const int id = lower_task(c, *t, (int32_t[2]){buffer, -1});
    c->writer[buffer] = -1;
    return id;
}

int lower_to_server(hp_lower_ctx *c, int group, int server, int bucket, int64_t first, int64_t count) {
    hp_task t = bucket_collective(c, HP_TASK_REDUCE, bucket, first, count);
    lower_rooted(c, group, server, &t);
    return in_place(c, &t, HP_BUF_GRADS);
}

void lower_from_server(hp_lower_ctx *c, int group, int server, int bucket, int64_t first, int64_t count,
                       int updated) {
    hp_task t = bucket_collective(c, HP_TASK_BROADCAST, bucket, first, count);
    lower_rooted(c, group, server, &t);
    lower_dep(c, in_place(c, &t, HP_BUF_WEIGHTS), updated);
}
