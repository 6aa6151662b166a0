/* check.c - proves a program safe before it runs, or after it was read from a file.
 *
 * This file checks the structure: every id and number is in range, so that later proofs can follow them.
 * Parameters, boxes, data, messages, the wait-for graph and memory each have a file. Ranks in messages are
 * those of the first replica: the others run the same lists. */
#include "networks/graph/optimizer.h"
#include "plan/strategy/axes/axis_zero.h"
#include "plan/check/check_inside.h"

enum {
    MAX_TASKS = 1 << 26,
    MAX_RANKS = 1 << 24,
    MAX_MICRO = 1 << 20,
    MAX_CHANNEL = 1 << 24, /* below the tags that the executor reserves */
    ALL_FLAGS = HP_FLAG_ADD | HP_FLAG_RECOMPUTE | HP_FLAG_EVAL | HP_FLAG_METRIC | HP_FLAG_FIRST |
                HP_FLAG_LAST | HP_FLAG_AVERAGE
};
static const int64_t MAX_DUMMY_NS = INT64_C(3600) * 1000000000;
static const int64_t MAX_ARENA = INT64_C(1) << 56; /* keeps sums of a few sizes within 63 bits */

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

static hp_status check_degrees(const hp_program *p, hp_error *err) {
    if (p->n_role < 1 || p->n_role > HP_MAX_ROLES || p->dp < 1 || p->dp > MAX_RANKS / p->n_role ||
        p->micro < 1 || p->micro > MAX_MICRO || p->clients < 1 || p->dp % p->clients)
        REFUSE("E-RANGE: %d roles in %d replicas, %d per device, %d micro-batches: out of range", p->n_role,
               p->dp, p->clients, p->micro);
    if (p->zero < 0 || p->zero > HP_ZERO_STAGES) REFUSE("E-RANGE: ZeRO has no stage %d", p->zero);
    const int64_t groups = (int64_t)p->dp * p->micro;
    if (p->micro_batch > INT32_MAX)
        REFUSE("E-RANGE: a micro-batch of %lld samples is too large, at most %d: a smaller --batch, or more "
               "micro-batches",
               (long long)p->micro_batch, INT32_MAX);
    if (p->batch < 1 || p->batch % groups || p->micro_batch != p->batch / groups)
        REFUSE("E-RANGE: a batch of %lld is not %lld micro-batches of %lld", (long long)p->batch,
               (long long)groups, (long long)p->micro_batch);
    if (p->mode < 0 || p->mode > (int)HP_MODE_INFER || p->dtype < 0 || p->dtype > (int)HP_F64 || p->bn < 0 ||
        p->bn > (int)HP_BN_LOCAL || p->local < 0 || p->device < 0 || p->device >= (int)HP_DEVICES)
        REFUSE("E-RANGE: mode %d, type %d, batch norm %d or device %d is unknown", p->mode, p->dtype, p->bn,
               p->device);
    return HP_OK;
}

/* The samples of a micro-batch, divided among replicas that each have the same number of roles. */
static hp_status check_shares(const hp_program *p, hp_error *err) {
    int64_t left = p->micro_batch;
    if (p->n_share == 0) return HP_OK;
    if (p->n_share < 0 || p->n_share > p->n_role || p->n_role % p->n_share || p->dp > 1)
        REFUSE("E-RANGE: %d shares of %d roles in %d replicas", p->n_share, p->n_role, p->dp);
    for (int i = 0; i < p->n_share; i++) {
        if (p->share[i] < 1 || p->share[i] > left)
            REFUSE("E-RANGE: share %d of a micro-batch of %lld samples is %lld", i, (long long)p->micro_batch,
                   (long long)p->share[i]);
        left -= p->share[i];
    }
    if (left) REFUSE("E-RANGE: %lld samples of a micro-batch are in no share", (long long)left);
    return HP_OK;
}

/* --- one role --- */

static hp_status check_slots(const hp_program *p, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    if (r->n_slot < 1 || r->stage < 0 || r->stage >= p->n_role)
        REFUSE("E-RANGE: rank %d has no place in the pipeline", role);
    for (int i = 0; i < r->n_slot; i++) {
        const hp_slot *s = &r->slot[i];
        if (s->stage < 0 || s->stage >= HP_MAX_STAGES || s->part < 0 || s->part >= p->n_role || s->flip < 0 ||
            s->flip > 1)
            REFUSE("E-RANGE: rank %d: slot %d (stage %d part %d) does not exist", role, i, s->stage, s->part);
    }
    return HP_OK;
}

static hp_status check_queues(const hp_program *p, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int q = 0; q < r->n_queue; q++) {
        const hp_queue *queue = &r->queue[q];
        const bool compute = queue->kind == HP_QUEUE_COMPUTE, coll = queue->kind == HP_QUEUE_COLL;
        if (queue->kind < 0 || queue->kind > (int32_t)HP_QUEUE_COLL || (q == 0) != compute ||
            (!compute &&
             (queue->peer < 0 || queue->peer >= (coll ? p->n_group : p->n_role) || queue->channel < 0)) ||
            queue->backend < 0 || queue->backend >= (int32_t)HP_BACKENDS || (coll && queue->channel != 0) ||
            (!compute && !coll && queue->peer == role))
            REFUSE("E-RANGE: rank %d queue %d is broken", role, q);
        if (coll && !hp_group_has_role(p, queue->peer, role))
            REFUSE("E-MATCH: rank %d calls collectives of group %d, of which it is no member", role,
                   queue->peer);
    }
    return HP_OK;
}

static hp_status check_buffers(const hp_program *p, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    if (r->arena_bytes < 0 || r->arena_bytes > MAX_ARENA || r->live_bytes < 0)
        REFUSE("E-RANGE: rank %d: an arena of %lld bytes", role, (long long)r->arena_bytes);
    for (int i = 0; i < r->n_buffer; i++) {
        const hp_buffer *b = &r->buffer[i];
        const bool kind = i < HP_BUF_FIXED ? b->kind == i : b->kind >= HP_BUF_FIXED && b->kind < HP_BUF_KINDS;
        if (!kind || b->dtype >= HP_DTYPES || b->micro < -1 || b->micro >= p->micro)
            REFUSE("E-RANGE: rank %d buffer %d has a field out of range", role, i);
        if (b->bytes < 0 || b->offset < 0 || b->offset % 64 || b->bytes > r->arena_bytes ||
            b->offset > r->arena_bytes - b->bytes)
            REFUSE("E-RANGE: rank %d buffer %d lies outside the arena of %lld bytes", role, i,
                   (long long)r->arena_bytes);
    }
    return HP_OK;
}

/* Elements of the buffer of parameters, gradients or optimiser state. */
static int64_t kept_elems(const hp_program *p, const hp_graph *g, const hp_role *r, int buffer) {
    const int64_t elems = hp_keeps_parts(p, buffer) ? hp_part_elems(r) : r->trained_elems;
    return buffer == HP_BUF_OPTIMIZER ? hp_optimizer_of(g)->states * elems : elems;
}

/* Checks the fixed buffers of every role; gradients and optimiser state are absent where nothing is
 * trained. */
static hp_status check_fixed(const hp_program *p, const hp_graph *g, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_buffer *b = r->buffer;
    const int types[HP_BUF_FIXED] = {p->dtype, p->dtype, p->dtype, p->dtype, HP_F64, HP_U8};
    for (int i = 0; i < HP_BUF_FIXED; i++)
        if (b[i].dtype != types[i])
            REFUSE("E-TYPE: rank %d buffer %d holds %s", role, i, hp_dtype_names[b[i].dtype]);
    if (r->trained_elems < 0 || r->trained_elems > MAX_ARENA / hp_dtype_bytes(HP_F64) || r->n_bucket < 0 ||
        b[HP_BUF_METRIC].bytes < HP_METRICS * 8)
        REFUSE("E-RANGE: rank %d: weights or metrics have the wrong size", role);
    if (r->n_bucket) HP_TRY(hp_check_bucket_list(p, role, err));
    const int most = p->mode == (int)HP_MODE_TRAIN ? HP_BUF_OPTIMIZER : HP_BUF_WEIGHTS;
    for (int i = HP_BUF_WEIGHTS; i <= most; i++)
        if (b[i].bytes != kept_elems(p, g, r, i) * hp_dtype_bytes((hp_dtype)p->dtype))
            REFUSE("E-RANGE: rank %d: weights, gradients or the optimiser's state (buffer %d) have the wrong "
                   "size",
                   role, i);
    return HP_OK;
}

/* --- one task --- */

/* Numbers, positions and rows that are possible at all. */
static bool family_fits(const hp_graph *g, const hp_task *t) {
    const hp_elements range = hp_task_range(t);
    const hp_rows rows = hp_task_rows(t);
    if (range.first < 0 || range.count < 0 || hp_task_bucket(t) < -1) return false;
    if (rows.lo < 0 || rows.hi < 0 || (!g->deployed && rows.hi)) return false;
    switch (hp_task_family_of(t)) {
    case HP_FAMILY_FORWARD:
        return t->forward.skipped >= 0 && t->forward.pixels >= 0;
    case HP_FAMILY_BACKWARD:
        return t->backward.pixels >= 0;
    case HP_FAMILY_MAXSUM:
        return t->maxsum.first >= 0;
    case HP_FAMILY_MESSAGE:
        return t->message.position >= -1;
    case HP_FAMILY_DUMMY:
        return t->dummy.ns >= 0;
    default:
        return true;
    }
}

static hp_status check_fields(const hp_program *p, const hp_graph *g, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    if (t->op >= HP_TASK_OPS || t->queue < 0 || t->queue >= r->n_queue || t->chunk < 0 ||
        t->chunk >= r->n_slot || t->layer < -1 || t->layer >= g->n_layer || t->micro < -1 ||
        t->micro >= p->micro || t->operand < 0 || t->n_operand < 0 ||
        t->n_operand > r->n_operand - t->operand || t->dtype >= HP_DTYPES || t->flags & ~ALL_FLAGS ||
        !family_fits(g, t))
        REFUSE("E-RANGE: rank %d task %d has a field out of range", role, id);
    const hp_task_info *info = &hp_task_infos[t->op];
    if (r->queue[t->queue].kind != (int)info->queue)
        REFUSE("E-TYPE: rank %d task %d: a %s cannot run on queue %d", role, id, info->name, t->queue);
    if ((hp_task_is_layer(t) || t->op == HP_TASK_PACK) && t->layer < 1)
        REFUSE("E-RANGE: rank %d task %d: a %s needs a layer", role, id, info->name);
    if (!hp_operand_count_fits(g, t))
        REFUSE("E-COUNT: rank %d task %d: a %s does not have %d operands", role, id, info->name,
               t->n_operand);
    for (int i = 0; i < t->n_operand; i++)
        if (r->operand[t->operand + i] < -1 || r->operand[t->operand + i] >= r->n_buffer)
            REFUSE("E-RANGE: rank %d task %d operand %d is no buffer", role, id, i);
    return HP_OK;
}

/* Dependencies point backwards in the list, so they cannot form a cycle within a role. */
static hp_status check_deps(const hp_role *r, int role, int id, hp_error *err) {
    const int from = r->dep_first[id], to = r->dep_first[id + 1];
    if (from < 0 || from > to || to > r->n_dep)
        REFUSE("E-RANGE: rank %d task %d has dependencies out of range", role, id);
    for (int i = from; i < to; i++) {
        if (r->dep[i] < 0 || r->dep[i] >= r->n_task)
            REFUSE("E-RANGE: rank %d task %d waits for task %d", role, id, r->dep[i]);
        if (r->dep[i] >= id)
            REFUSE("E-CYCLE: rank %d task %d waits for task %d, which does not come before it", role, id,
                   r->dep[i]);
    }
    return HP_OK;
}

/* Does the task work on a bucket? */
static bool of_bucket(const hp_task *t) {
    return t->op == HP_TASK_UPDATE || t->op == HP_TASK_FINITE || t->op == HP_TASK_NORM ||
           t->op == HP_TASK_PART;
}

static hp_status check_count(const hp_program *p, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    const bool moves = hp_task_infos[t->op].queue != HP_QUEUE_COMPUTE;
    if (t->op == HP_TASK_DUMMY && t->dummy.ns > MAX_DUMMY_NS)
        REFUSE("E-RANGE: rank %d task %d computes nothing for more than an hour", role, id);
    if (!moves && t->op != HP_TASK_ZERO) return HP_OK;
    if (r->operand[t->operand] < 0)
        REFUSE("E-COUNT: rank %d task %d: a %s without a buffer", role, id, hp_task_infos[t->op].name);
    if (moves && r->buffer[r->operand[t->operand]].dtype != t->dtype)
        REFUSE("E-TYPE: rank %d task %d moves %s from a buffer of %s", role, id, hp_dtype_names[t->dtype],
               hp_dtype_names[r->buffer[r->operand[t->operand]].dtype]);
    const hp_buffer *b = &r->buffer[r->operand[t->operand]];
    const hp_elements range = hp_task_range(t);
    const int64_t room = b->bytes / hp_dtype_bytes((hp_dtype)b->dtype);
    if (range.first > room || range.count > room - range.first)
        REFUSE("E-COUNT: rank %d task %d: elements %lld+%lld of %lld", role, id, (long long)range.first,
               (long long)range.count, (long long)room);
    return HP_OK;
}

static hp_status check_packs(const hp_program *p, const hp_graph *g, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    for (int l = 0; l < g->n_layer; l++) {
        const int32_t pack[2] = {r->pack_forward[l], r->pack_backward[l]};
        for (int k = 0; k < 2; k++)
            if (pack[k] != -1 && (pack[k] < HP_BUF_FIXED || pack[k] >= r->n_buffer ||
                                  r->buffer[pack[k]].kind != HP_BUF_PACK || r->buffer[pack[k]].what != l))
                REFUSE("E-RANGE: rank %d: layer %s has a pack out of range", role, g->layer[l].name);
    }
    return HP_OK;
}

static hp_status check_role(const hp_program *p, const hp_graph *g, int role, hp_error *err) {
    const hp_role *r = &p->role[role];
    if (r->n_task < 1 || r->n_task > MAX_TASKS || r->n_queue < 1 || r->n_queue > INT16_MAX ||
        r->n_buffer < HP_BUF_FIXED || r->n_operand < 0 || r->n_dep < 0 || r->dep_first[0] != 0 ||
        r->dep_first[r->n_task] != r->n_dep)
        REFUSE("E-RANGE: rank %d has no tasks, queues or buffers, or its dependency list is broken", role);
    HP_TRY(check_slots(p, role, err));
    HP_TRY(check_queues(p, role, err));
    HP_TRY(check_buffers(p, role, err));
    HP_TRY(check_fixed(p, g, role, err));
    for (int t = 0; t < r->n_task; t++) {
        HP_TRY(check_fields(p, g, role, t, err));
        HP_TRY(check_deps(r, role, t, err));
        HP_TRY(check_count(p, role, t, err));
        HP_TRY(hp_check_collective(p, role, t, err));
    }
    return check_packs(p, g, role, err);
}

static hp_status check_bucket_tasks(const hp_program *p, const hp_graph *g, hp_error *err) {
    for (int role = 0; role < p->n_role; role++)
        for (int t = 0; t < p->role[role].n_task; t++) {
            const hp_check_at at = {p, g, role, t, err};
            if (of_bucket(&p->role[role].task[t])) HP_TRY(hp_check_bucket_task(&at));
        }
    return HP_OK;
}

static hp_status check_rest(hp_arena *arena, const hp_program *p, const hp_graph *g, hp_error *err) {
    hp_payload **payload = NULL;
    HP_TRY(hp_check_places(p, g, err));
    HP_TRY(hp_check_buckets(p, g, err));
    HP_TRY(check_bucket_tasks(p, g, err));
    HP_TRY(hp_check_buffers(p, g, err));
    HP_TRY(hp_check_deployed(arena, p, g, err));
    HP_TRY(hp_check_boxes(p, g, err));
    HP_TRY(hp_check_codes(p, g, err));
    HP_TRY(hp_check_data(arena, p, g, &payload, err));
    HP_TRY(hp_check_gradients(p, g, err));
    const hp_wiring *w = hp_wiring_new(arena, p);
    HP_TRY(hp_check_messages(arena, w, g, payload, err));
    HP_TRY(hp_check_waits(w, g, err));
    HP_TRY(hp_check_lanes(arena, w, g, err));
    return hp_check_memory(p, g, err);
}

hp_status hp_program_check(const hp_program *p, const hp_graph *g, hp_error *err) {
    HP_TRY(check_degrees(p, err));
    HP_TRY(check_shares(p, err));
    HP_TRY(hp_check_groups(p, err));
    HP_TRY(hp_check_calls(p, err));
    for (int r = 0; r < p->n_role; r++) HP_TRY(check_role(p, g, r, err));
    hp_arena *arena = hp_arena_new();
    const hp_status s = check_rest(arena, p, g, err);
    hp_arena_free(arena);
    return s;
}
