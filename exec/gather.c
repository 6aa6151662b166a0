/* gather.c - what lies spread over ranks: running statistics over the replicas, weights over the stages. */
#include "exec/job.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = (1 << 24) + 1 }; /* above the tags of programs and of clock.c */

static const hp_role *role_of(const hp_job *j) {
    return &j->plan.program->role[j->role];
}

/* Longest wait for a whole network's weights: the patience of a step, and a minute for the disk of rank 0. */
static double limit_s(const hp_job *j) {
    return hp_patience_limit_s(&j->patience) + (j->patience.fixed_s > 0 ? 0 : 60);
}

int64_t hp_job_state_bytes(const hp_job *j) {
    return role_of(j)->buffer[HP_BUF_STATE].bytes;
}

static unsigned char *state_at(const hp_job *j) {
    return j->arena + role_of(j)->buffer[HP_BUF_STATE].offset;
}

static int replicas_group(const hp_job *j) {
    const hp_role *r = role_of(j);
    for (int i = 0; i < j->plan.graph->n_param; i++)
        if (r->place[i].here && !hp_param_trained(&j->plan.graph->param[i])) return r->place[i].group;
    return -1;
}

/* Replica 0 started from the initial statistics, the others from zero, and each decayed by the whole step's
 * factor: the true value is their sum. Inference changes none, and every replica has them all. */
hp_status hp_job_state_sum(hp_job *j, unsigned char *own, hp_error *err) {
    const int64_t bytes = hp_job_state_bytes(j);
    memcpy(own, state_at(j), (size_t)bytes);
    const int group = replicas_group(j);
    if (j->plan.program->dp == 1 || j->plan.mode == HP_MODE_INFER || bytes == 0) return HP_OK;
    HP_ASSERT(group >= 0);
    const hp_dtype dtype = (hp_dtype)j->plan.program->dtype;
    const hp_comm_op op = {.kind = HP_COMM_ALLREDUCE,
                           .group = group,
                           .dtype = dtype,
                           .count = bytes / hp_dtype_bytes(dtype),
                           .data = state_at(j)};
    return hp_comm_run(j->comm, &op, limit_s(j), "the running statistics of the other replicas", err);
}

void hp_job_state_restore(hp_job *j, const unsigned char *own) {
    memcpy(state_at(j), own, (size_t)hp_job_state_bytes(j));
}

/* --- weights --- */

static unsigned char *param_at(const hp_job *j, int param) {
    const hp_role *r = role_of(j);
    const hp_buffer *b =
        &r->buffer[hp_param_trained(&j->plan.graph->param[param]) ? HP_BUF_WEIGHTS : HP_BUF_STATE];
    return j->arena + b->offset + r->place[param].offset * hp_dtype_bytes((hp_dtype)j->plan.program->dtype);
}

static int holder(const hp_job *j, int param) {
    int role = 0;
    while (!j->plan.program->role[role].place[param].here) role++;
    return role; /* of replica 0, so the rank's number too */
}

static hp_status move(const hp_job *j, hp_comm_kind kind, int peer, int param, void *data, hp_error *err) {
    const hp_comm_op op = {.kind = kind,
                           .peer = peer,
                           .tag = TAG,
                           .dtype = j->plan.program->dtype,
                           .count = j->plan.graph->param[param].count,
                           .data = data};
    return hp_comm_run(j->comm, &op, limit_s(j), j->plan.graph->param[param].name, err);
}

typedef struct gather_source {
    hp_job *j;
    unsigned char *came; /* the parameter of another rank, until the next one */
} gather_source;

static const void *get(void *self, int param, hp_error *err) {
    gather_source *g = self;
    const int rank = holder(g->j, param);
    if (rank == 0) return param_at(g->j, param);
    const hp_dtype dtype = (hp_dtype)g->j->plan.program->dtype;
    free(g->came);
    g->came = malloc((size_t)(g->j->plan.graph->param[param].count * hp_dtype_bytes(dtype)) + 1);
    HP_ASSERT(g->came);
    return move(g->j, HP_COMM_RECV, rank, param, g->came, err) == HP_OK ? g->came : NULL;
}

/* Rank 0 writes parameter by parameter and asks for each when its turn comes; the stages send theirs in that
 * order. */
static hp_status save(hp_job *j, hp_error *err) {
    const hp_graph *g = j->plan.graph;
    if (j->comm->rank == 0) {
        gather_source self = {.j = j, .came = NULL};
        const hp_weights_source source = {.get = get, .self = &self};
        const bool training = j->plan.mode == HP_MODE_TRAIN; /* inference adds nothing to the statistics */
        const int64_t batches = training ? j->steps * j->plan.program->micro * j->plan.program->dp : 0;
        const hp_status s =
            hp_weights_save(j->options->save, g, (hp_dtype)j->plan.program->dtype, &source, batches, err);
        free(self.came);
        return s;
    }
    for (int p = 0; j->replica == 0 && p < g->n_param; p++)
        if (holder(j, p) == j->role) HP_TRY(move(j, HP_COMM_SEND, 0, p, param_at(j, p), err));
    return HP_OK;
}

hp_status hp_job_save(hp_job *j, hp_error *err) {
    unsigned char *own = malloc((size_t)hp_job_state_bytes(j) + 1);
    HP_ASSERT(own);
    hp_status s = hp_job_state_sum(j, own, err);
    if (s == HP_OK) s = save(j, err);
    hp_job_state_restore(j, own);
    free(own);
    return s;
}
