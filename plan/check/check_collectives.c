/* check_collectives.c - arguments of collectives: the operation, root, parts and algorithm exist and fit the
 * group.
 *
 * check/check_messages.c proves that all members call the same collectives in the same order. */
#include "plan/check/check_inside.h"

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

enum { MAX_PARTS = 1 << 28 };
static const int64_t MAX_ELEMENTS = INT64_C(1) << 48;

static hp_status check_call(const hp_program *p, int i, hp_error *err) {
    const hp_call *c = &p->call[i];
    if (c->reduction < 0 || c->reduction >= (int32_t)HP_REDUCTIONS || c->root < 0 || c->per_node < 0 ||
        c->n < 0 || c->first < 0 || c->first > p->n_part - c->n)
        REFUSE("E-RANGE: call %d of collectives has a field out of range", 1 + i);
    for (int32_t k = 0; k < c->n; k++)
        if (p->part[c->first + k] < 0 || p->part[c->first + k] > MAX_ELEMENTS)
            REFUSE("E-COUNT: call %d of collectives: part %d has %lld elements", 1 + i, k,
                   (long long)p->part[c->first + k]);
    return HP_OK;
}

hp_status hp_check_calls(const hp_program *p, hp_error *err) {
    if (p->n_call < 0 || p->n_part < 0 || p->n_part > MAX_PARTS)
        REFUSE("E-RANGE: %d calls of collectives", p->n_call);
    for (int i = 0; i < p->n_call; i++) HP_TRY(check_call(p, i, err));
    return HP_OK;
}

static int64_t sum_of(const int64_t *part, int32_t n, int32_t stride) {
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++) sum += part[(int64_t)i * stride];
    return sum;
}

/* Elements that a member holds in the data or sends in an all-to-all, whichever is larger. */
static int64_t room_of(const hp_collective_case *c, const int64_t *part, int32_t member) {
    if (c->what != HP_COLLECTIVE_ALL_TO_ALL) return sum_of(part, c->size, 1);
    const int64_t out = sum_of(part + (int64_t)member * c->size, c->size, 1),
                  in = sum_of(part + member, c->size, c->size);
    return out > in ? out : in;
}

static hp_status check_parts(const hp_program *p, int role, int id, const hp_collective_case *c,
                             hp_error *err) {
    const hp_task *t = &p->role[role].task[id];
    const hp_call call = hp_task_call(p, t);
    const int64_t wanted = c->what == HP_COLLECTIVE_ALL_TO_ALL ? (int64_t)c->size * c->size
                           : hp_collective_parts(c->what)      ? c->size
                                                               : 0;
    if (!call.n && c->what == HP_COLLECTIVE_ALL_TO_ALL && t->collective.elems % c->size)
        REFUSE("E-COUNT: rank %d task %d: an all-to-all of %lld elements in equal parts among %d members",
               role, id, (long long)t->collective.elems, c->size);
    if (!call.n) return HP_OK;
    if (call.n != wanted)
        REFUSE("E-COUNT: rank %d task %d: %d parts of a %s among %d members, which has %lld", role, id,
               call.n, hp_collective_infos[c->what].name, c->size, (long long)wanted);
    for (int32_t m = 0; m < c->size; m++)
        if (room_of(c, p->part + call.first, m) > t->collective.elems)
            REFUSE("E-COUNT: rank %d task %d: parts of %lld elements in data of %lld", role, id,
                   (long long)room_of(c, p->part + call.first, m), (long long)t->collective.elems);
    return HP_OK;
}

/* Number of elements that a member contributes. */
static int64_t contribution(const hp_collective_case *c, const hp_collective_data *data, int32_t member) {
    const int64_t each = (data->count + c->size - 1) / c->size, left = data->count - member * each;
    if (c->what == HP_COLLECTIVE_BARRIER) return 0;
    switch (hp_collective_infos[c->what].begins) {
    case HP_BLOCKS_ROOT:
        return member == c->root ? data->count : 0;
    case HP_BLOCKS_OWN:
        return data->part ? data->part[member] : left < 0 ? 0 : left < each ? left : each;
    case HP_BLOCKS_EACH:
        return data->part ? sum_of(data->part + (int64_t)member * c->size, c->size, 1) : data->count;
    default:
        return data->count;
    }
}

/* The largest contribution of any replica of the role. */
static int64_t most_contributed(const hp_program *p, int role, const hp_task *t,
                                const hp_collective_case *c) {
    const hp_collective_data data = hp_task_data(p, t);
    const hp_group *g = &p->group[p->role[role].queue[t->queue].peer];
    int32_t at = 0;
    int64_t most = 0;
    while (p->member[g->first + at] != role) at++;
    for (int32_t member = at; member < c->size; member += g->n) {
        const int64_t n = contribution(c, &data, member);
        most = n > most ? n : most;
    }
    return most;
}

/* Checks the source buffer of a contribution that is not already in the data. */
static hp_status check_source(const hp_program *p, int role, int id, const hp_collective_case *c,
                              hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    const int32_t source = t->n_operand > 1 ? r->operand[t->operand + 1] : -1;
    if (source < 0) return HP_OK;
    const hp_buffer *b = &r->buffer[source];
    if (source < HP_BUF_FIXED)
        REFUSE(
            "E-OVERLAP: rank %d task %d: a %s reads what it contributes from buffer %d, which every role has",
            role, id, hp_task_infos[t->op].name, source);
    if (b->dtype != t->dtype)
        REFUSE("E-TYPE: rank %d task %d: a %s of %s from a source of %s", role, id, hp_task_infos[t->op].name,
               hp_dtype_names[t->dtype], hp_dtype_names[b->dtype]);
    const int64_t room = b->bytes / hp_dtype_bytes((hp_dtype)b->dtype),
                  most = most_contributed(p, role, t, c);
    if (most > room)
        REFUSE("E-COUNT: rank %d task %d: a %s of %lld elements from a source of %lld", role, id,
               hp_task_infos[t->op].name, (long long)most, (long long)room);
    return HP_OK;
}

/* Rejects an operation that the back end cannot do as plan/collectives defines it. */
static hp_status check_backend(const hp_program *p, int role, int id, int32_t backend, hp_error *err) {
    const hp_task *t = &p->role[role].task[id];
    const char *lacks =
        hp_backend_lacks(backend, hp_task_collective(t), (hp_reduction)hp_task_call(p, t).reduction,
                         (hp_dtype)t->dtype, t->n_operand == 1);
    if (!lacks) return HP_OK;
    REFUSE("E-TYPE: rank %d task %d: %s of %s: %s", role, id, hp_task_infos[t->op].name,
           hp_dtype_names[t->dtype], lacks);
}

/* Gradients, statistics, tensor boxes and metrics are summed, in place. */
static bool wants_sum(const hp_role *r, const hp_task *t) {
    const int32_t id = r->operand[t->operand];
    const hp_buffer *b = &r->buffer[id];
    if (id < HP_BUF_FIXED) return id == HP_BUF_METRIC || r->trained_elems > 0;
    return b->kind == HP_BUF_SUMS || hp_buffer_has_box(b);
}

/* Does the collective work on a bucket of which each member keeps one of the equal parts? */
static bool is_of_parts(const hp_program *p, const hp_role *r, const hp_task *t) {
    const int32_t id = r->operand[t->operand];
    const bool block = r->buffer[id].kind == HP_BUF_BLOCK;
    if (t->collective.bucket < 0 || t->collective.bucket >= r->n_bucket || t->n_operand > 1 ||
        hp_task_call(p, t).n)
        return false;
    const hp_bucket *b = &r->bucket[t->collective.bucket];
    if (b->parts < 2 || t->collective.elems != b->count || t->collective.first != (block ? 0 : b->first) ||
        !hp_group_equal(p, b->group, r->queue[t->queue].peer))
        return false;
    if (block) return r->buffer[id].what == t->collective.bucket;
    return id == (t->op == HP_TASK_ALL_GATHER ? HP_BUF_WEIGHTS : HP_BUF_GRADS) && !hp_keeps_parts(p, id);
}

/* Parameter server: gradients go to the server and parameters come back. Local updates: replicas are
 * averaged. */
static bool keeps_alike(const hp_program *p, const hp_role *r, const hp_task *t) {
    const int32_t id = r->operand[t->operand], reduction = hp_task_call(p, t).reduction;
    if (t->n_operand > 1 || hp_keeps_parts(p, id)) return false;
    if (t->flags & HP_FLAG_AVERAGE)
        return t->op == HP_TASK_ALLREDUCE && reduction == HP_REDUCE_AVG &&
               (id == HP_BUF_WEIGHTS || id == HP_BUF_OPTIMIZER);
    return (t->op == HP_TASK_REDUCE && id == HP_BUF_GRADS && reduction == HP_REDUCE_SUM) ||
           (t->op == HP_TASK_BROADCAST && id == HP_BUF_WEIGHTS);
}

static hp_status check_sum(const hp_program *p, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    const int32_t reduction = hp_task_call(p, t).reduction;
    const bool sum = t->op == HP_TASK_ALLREDUCE && reduction == HP_REDUCE_SUM && t->n_operand == 1,
               parts = (t->op == HP_TASK_REDUCE_SCATTER && reduction == HP_REDUCE_SUM) ||
                       t->op == HP_TASK_ALL_GATHER,
               block = r->buffer[r->operand[t->operand]].kind == HP_BUF_BLOCK;
    const bool plain = !(t->flags & HP_FLAG_AVERAGE);
    if (keeps_alike(p, r, t)) return HP_OK;
    if (plain && ((parts && is_of_parts(p, r, t)) || (sum && !block) || (!block && !wants_sum(r, t))))
        return HP_OK;
    REFUSE("E-TYPE: rank %d task %d: a %s (%s) into buffer %d, which a network's all-reduce adds up in place",
           role, id, hp_task_infos[t->op].name, hp_reduction_names[reduction], r->operand[t->operand]);
}

hp_status hp_check_collective(const hp_program *p, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    if (!hp_task_is_collective(t)) {
        const bool served = t->op == HP_TASK_UPDATE || t->op == HP_TASK_FINITE || t->op == HP_TASK_NORM;
        const int32_t call = hp_task_call_index(t);
        if (t->algorithm || call < 0 || call > (served ? p->n_call : 0))
            REFUSE("E-RANGE: rank %d task %d: a %s is no collective", role, id, hp_task_infos[t->op].name);
        return HP_OK;
    }
    if (t->collective.call < 0 || t->collective.call > p->n_call)
        REFUSE("E-RANGE: rank %d task %d: call %d does not exist", role, id, t->collective.call);
    const hp_collective_case c = hp_task_case(p, r, t);
    if (c.root >= c.size)
        REFUSE("E-ROOT: rank %d task %d: member %d of a group of %d is the root", role, id, c.root, c.size);
    HP_TRY(check_parts(p, role, id, &c, err));
    HP_TRY(check_source(p, role, id, &c, err));
    HP_TRY(check_sum(p, role, id, err));
    const int32_t backend = r->queue[t->queue].backend;
    HP_TRY(check_backend(p, role, id, backend, err));
    const bool steps = hp_backend_steps(backend);
    if (t->algorithm >= HP_ALGORITHMS || steps != (t->algorithm != HP_ALGORITHM_LIBRARY))
        REFUSE("E-RANGE: rank %d task %d has no algorithm %d of a collective", role, id, t->algorithm);
    if (steps && !hp_algorithm_does((hp_algorithm)t->algorithm, &c, hp_task_data(p, t).part == NULL))
        REFUSE("E-RANGE: rank %d task %d: %s does no %s among %d members", role, id,
               hp_algorithms[t->algorithm]->name, hp_collective_infos[c.what].name, c.size);
    return HP_OK;
}
