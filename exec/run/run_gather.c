/* run_gather.c - collects what is distributed over ranks: running statistics over tiles, mirror images and
 * replicas, trained parameters over stages and channel slices. */
#include "exec/run/run_gather.h"

#include "exec/run/run_parts.h"

#include "exec/data/weights/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = (1 << 24) + 1 }; /* above the tags of programs and of exec_clock.c */

static const hp_role *role_of(const hp_job *j) {
    return &j->plan.program->role[j->role];
}

static int64_t elem_bytes(const hp_job *j) {
    return hp_dtype_bytes((hp_dtype)j->plan.program->dtype);
}

static bool is_state(const hp_job *j, int param) {
    return !hp_param_trained(&j->plan.graph->param[param]);
}

/* Timeout for collecting a whole network's weights: that of a step, plus a minute for rank 0's disk. */
static double limit_s(const hp_job *j) {
    return hp_patience_limit_s(&j->timing.patience) + (j->timing.patience.fixed_s > 0 ? 0 : 60);
}

/* --- host views of the role's buffers --- */

static hp_status view_open(hp_job *j, hp_buffer_kind kind, hp_error *err) {
    const hp_buffer *b = &role_of(j)->buffer[kind];
    return hp_memory_view(&j->device.memory, j->device.arena + b->offset, b->bytes, &j->device.view[kind],
                          err);
}

static hp_status view_close(hp_job *j, hp_buffer_kind kind, bool changed, hp_error *err) {
    const hp_buffer *b = &role_of(j)->buffer[kind];
    const hp_status s = hp_memory_view_end(&j->device.memory, j->device.arena + b->offset, b->bytes,
                                           j->device.view[kind], changed, err);
    j->device.view[kind] = NULL;
    return s;
}

/* This rank's slice of the parameter. */
static unsigned char *param_at(const hp_job *j, int param) {
    unsigned char *view = j->device.view[is_state(j, param) ? HP_BUF_STATE : HP_BUF_WEIGHTS];
    return view + role_of(j)->place[param].offset * elem_bytes(j);
}

/* --- running statistics --- */

int64_t hp_job_state_bytes(const hp_job *j) {
    return role_of(j)->buffer[HP_BUF_STATE].bytes;
}

static unsigned char *state_at(const hp_job *j) {
    return j->device.arena + role_of(j)->buffer[HP_BUF_STATE].offset;
}

/* Does this rank's value count in the sum? bn=all: every replica has the full value. */
static bool is_counted(const hp_job *j, const hp_param_place *at) {
    return (at->here & HP_HOME) && (j->replica == 0 || j->plan.program->bn != HP_BN_ALL);
}

static bool in_group(const hp_job *j, int param, int group) {
    const hp_param_place *at = &role_of(j)->place[param];
    return is_state(j, param) && at->here && at->group == group;
}

/* The lowest group above `last` in which this rank shares statistics; -1: none. */
static int next_group(const hp_job *j, int last) {
    int least = -1;
    for (int i = 0; i < j->plan.graph->n_param; i++) {
        const int group = role_of(j)->place[i].group;
        if (group > last && (least < 0 || group < least) && in_group(j, i, group)) least = group;
    }
    return least;
}

/* Number of elements of the group's statistics, which are packed in the order of the parameters: the same on
 * all members. */
static int64_t group_elems(const hp_job *j, int group) {
    int64_t n = 0;
    for (int i = 0; i < j->plan.graph->n_param; i++)
        if (in_group(j, i, group)) n += role_of(j)->place[i].count;
    return n;
}

static void pack(const hp_job *j, int group, unsigned char *to) {
    for (int i = 0; i < j->plan.graph->n_param; i++) {
        if (!in_group(j, i, group)) continue;
        const hp_param_place *at = &role_of(j)->place[i];
        const size_t n = (size_t)(at->count * elem_bytes(j));
        if (is_counted(j, at))
            memcpy(to, param_at(j, i), n);
        else
            memset(to, 0, n);
        to += n;
    }
}

static void unpack(const hp_job *j, int group, const unsigned char *from) {
    for (int i = 0; i < j->plan.graph->n_param; i++) {
        if (!in_group(j, i, group)) continue;
        const size_t n = (size_t)(role_of(j)->place[i].count * elem_bytes(j));
        memcpy(param_at(j, i), from, n);
        from += n;
    }
}

static hp_status sum_group(const hp_job *j, int group, hp_error *err) {
    const int64_t n = group_elems(j, group);
    unsigned char *sum = malloc((size_t)(n * elem_bytes(j)) + 1);
    HP_ASSERT(sum);
    pack(j, group, sum);
    const hp_comm_op op = {
        .kind = HP_COMM_COLLECTIVE, .group = group, .dtype = j->plan.program->dtype, .count = n, .data = sum};
    const hp_status s = hp_comm_run(j->comm, &op, limit_s(j), "the running statistics of other ranks", err);
    if (s == HP_OK) unpack(j, group, sum);
    free(sum);
    return s;
}

/* Statistics start with the initial value on one role of replica 0 and with zero elsewhere, and every holder
 * applies the whole step's decay: the true value is the sum over the holders. Inference does not change them,
 * and every rank has the full values. All ranks process groups in ascending order, which avoids deadlock. */
hp_status hp_job_state_sum(hp_job *j, unsigned char *own, hp_error *err) {
    HP_TRY(j->device.memory.ops->get(&j->device.memory, own, state_at(j), hp_job_state_bytes(j), err));
    if (j->plan.program->mode == HP_MODE_INFER) return HP_OK;
    HP_TRY(view_open(j, HP_BUF_STATE, err));
    hp_status s = HP_OK;
    for (int group = next_group(j, -1); s == HP_OK && group >= 0; group = next_group(j, group))
        s = sum_group(j, group, err);
    const hp_status end = view_close(j, HP_BUF_STATE, s == HP_OK, err);
    return s != HP_OK ? s : end;
}

hp_status hp_job_state_restore(hp_job *j, const unsigned char *own, hp_error *err) {
    return j->device.memory.ops->put(&j->device.memory, state_at(j), own, hp_job_state_bytes(j), err);
}

/* --- weights --- */

/* Elements of a parameter, and the role of replica 0 (hence its rank) that sends them. */
typedef struct slice {
    int64_t first, count;
    int32_t role;
} slice;

static int by_first(const void *a, const void *b) {
    const slice *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->role > y->role) - (x->role < y->role);
}

/* The parameter's slices at the roles that hold them, in order. Statistics held twice are equal after the
 * sum: the first holder sends them. */
static int slices_of(const hp_job *j, int param, slice *out) {
    const hp_program *p = j->plan.program;
    int n = 0, kept = 0;
    for (int r = 0; r < p->n_role; r++) {
        const hp_param_place *at = &p->role[r].place[param];
        if ((at->here & HP_HOME) && at->count > 0) out[n++] = (slice){at->first, at->count, r};
    }
    qsort(out, (size_t)n, sizeof *out, by_first);
    for (int i = 0; i < n; i++)
        if (kept == 0 || !is_state(j, param) || out[i].first != out[kept - 1].first) out[kept++] = out[i];
    return kept;
}

static hp_status transfer_slice(const hp_job *j, hp_comm_kind kind, int peer, int param, int64_t count,
                                void *data, hp_error *err) {
    const hp_comm_op op = {.kind = kind,
                           .peer = peer,
                           .tag = TAG,
                           .dtype = j->plan.program->dtype,
                           .count = count,
                           .data = data};
    return hp_comm_run(j->comm, &op, limit_s(j), j->plan.graph->param[param].name, err);
}

typedef struct gather_source {
    hp_job *j;
    slice *slice;         /* room for one per role */
    unsigned char *whole; /* the current parameter */
} gather_source;

static hp_status check_cover(const hp_job *j, int param, const slice *s, int n, hp_error *err) {
    int64_t end = 0;
    int i = 0;
    for (; i < n && s[i].first == end; i++) end += s[i].count;
    if (i == n && end == j->plan.graph->param[param].count) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "the plan's ranks do not hold all of %s exactly once: plan again with hplan simulate",
                   j->plan.graph->param[param].name);
}

static hp_status collect_param(gather_source *g, int param, int n, hp_error *err) {
    const hp_job *j = g->j;
    free(g->whole);
    g->whole = malloc((size_t)(j->plan.graph->param[param].count * elem_bytes(j)) + 1);
    HP_ASSERT(g->whole);
    for (int i = 0; i < n; i++) {
        const slice *s = &g->slice[i];
        unsigned char *to = g->whole + s->first * elem_bytes(j);
        if (s->role == 0)
            memcpy(to, param_at(j, param), (size_t)(s->count * elem_bytes(j)));
        else
            HP_TRY(transfer_slice(j, HP_COMM_RECV, s->role, param, s->count, to, err));
    }
    return HP_OK;
}

static const void *get_param(void *self, int param, hp_error *err) {
    gather_source *g = self;
    const int n = slices_of(g->j, param, g->slice);
    if (check_cover(g->j, param, g->slice, n, err) != HP_OK) return NULL;
    if (n == 1 && g->slice[0].role == 0) return param_at(g->j, param);
    return collect_param(g, param, n, err) == HP_OK ? g->whole : NULL;
}

static hp_status write_all(gather_source *g, hp_error *err) {
    const hp_job *j = g->j;
    const hp_weights_source source = {.get = get_param, .self = g};
    return hp_weights_save(j->options->save, j->plan.graph, (hp_dtype)j->plan.program->dtype, &source,
                           hp_job_updates(j, j->steps), err);
}

static hp_status send_all(gather_source *g, hp_error *err) {
    const hp_job *j = g->j;
    for (int p = 0; j->replica == 0 && p < j->plan.graph->n_param; p++) {
        const int n = slices_of(j, p, g->slice);
        for (int i = 0; i < n; i++)
            if (g->slice[i].role == j->role)
                HP_TRY(transfer_slice(j, HP_COMM_SEND, 0, p, g->slice[i].count, param_at(j, p), err));
    }
    return HP_OK;
}

/* Rank 0 writes parameter by parameter and receives each when it is due; the other ranks send in the same
 * order. */
static hp_status save_viewed(hp_job *j, hp_error *err) {
    gather_source g = {.j = j, .slice = calloc((size_t)j->plan.program->n_role, sizeof(slice))};
    HP_ASSERT(g.slice);
    const hp_status s = j->comm->rank == 0 ? write_all(&g, err) : send_all(&g, err);
    free(g.whole);
    free(g.slice);
    return s;
}

static hp_status save_weights(hp_job *j, hp_error *err) {
    hp_status s = view_open(j, HP_BUF_WEIGHTS, err);
    unsigned char *const own = j->device.view[HP_BUF_WEIGHTS], *whole = NULL;
    if (s == HP_OK && hp_keeps_parts(j->plan.program, HP_BUF_WEIGHTS)) {
        j->device.view[HP_BUF_WEIGHTS] = whole =
            malloc((size_t)(role_of(j)->trained_elems * elem_bytes(j)) + 1);
        HP_ASSERT(whole);
        s = hp_parts_join(j->comm, j->plan.program, j->role, j->replica, own, whole, limit_s(j), err);
    }
    if (s == HP_OK) s = view_open(j, HP_BUF_STATE, err);
    if (s == HP_OK) s = save_viewed(j, err);
    j->device.view[HP_BUF_WEIGHTS] = own;
    free(whole);
    view_close(j, HP_BUF_WEIGHTS, false, err);
    view_close(j, HP_BUF_STATE, false, err);
    return s;
}

/* Every rank has the same loss, and so comes to the same answer. */
static hp_status check_finite(const hp_job *j, hp_error *err) {
    if (isfinite(j->scores.loss)) return HP_OK;
    return hp_fail(
        err, HP_EPLAN,
        "the loss of step %lld is not a finite number: the weights are not written to %s; lower --lr",
        (long long)j->steps, j->options->save);
}

hp_status hp_job_save(hp_job *j, hp_error *err) {
    HP_TRY(check_finite(j, err));
    unsigned char *own = malloc((size_t)hp_job_state_bytes(j) + 1);
    HP_ASSERT(own);
    hp_status s = hp_job_state_sum(j, own, err);
    if (s == HP_OK) s = save_weights(j, err);
    if (s == HP_OK) s = hp_job_state_restore(j, own, err);
    free(own);
    return s;
}
