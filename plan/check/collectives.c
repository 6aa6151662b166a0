/* collectives.c - how collectives are called: operations, roots, parts and algorithms that exist and fit the group.
 * That all members call the same ones in the same order is check/messages.c's. */
#include "plan/check/inside.h"

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

/* Elements that a member keeps in the data, or in what an all-to-all sends: the larger of the two. */
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
    if (!call.n && c->what == HP_COLLECTIVE_ALL_TO_ALL && t->count % c->size)
        REFUSE("E-COUNT: rank %d task %d: an all-to-all of %lld elements in equal parts among %d members",
               role, id, (long long)t->count, c->size);
    if (!call.n) return HP_OK;
    if (call.n != wanted)
        REFUSE("E-COUNT: rank %d task %d: %d parts of a %s among %d members, which has %lld", role, id,
               call.n, hp_collective_infos[c->what].name, c->size, (long long)wanted);
    for (int32_t m = 0; m < c->size; m++)
        if (room_of(c, p->part + call.first, m) > t->count)
            REFUSE("E-COUNT: rank %d task %d: parts of %lld elements in data of %lld", role, id,
                   (long long)room_of(c, p->part + call.first, m), (long long)t->count);
    return HP_OK;
}

hp_status hp_check_collective(const hp_program *p, int role, int id, hp_error *err) {
    const hp_role *r = &p->role[role];
    const hp_task *t = &r->task[id];
    if (!hp_task_is_collective(t)) {
        if (t->algorithm || t->call)
            REFUSE("E-RANGE: rank %d task %d: a %s is no collective", role, id, hp_task_infos[t->op].name);
        return HP_OK;
    }
    if (t->call < 0 || t->call > p->n_call)
        REFUSE("E-RANGE: rank %d task %d: call %d does not exist", role, id, t->call);
    const hp_collective_case c = hp_task_case(p, r, t);
    if (c.root >= c.size)
        REFUSE("E-ROOT: rank %d task %d: member %d of a group of %d is the root", role, id, c.root, c.size);
    HP_TRY(check_parts(p, role, id, &c, err));
    const int32_t backend = r->queue[t->queue].backend;
    const char *lacks = hp_backend_lacks(backend, c.what, (hp_reduction)hp_task_call(p, t).reduction,
                                         (hp_dtype)t->dtype, t->n_operand == 1);
    if (lacks)
        REFUSE("E-TYPE: rank %d task %d: %s of %s: %s", role, id, hp_collective_infos[c.what].name,
               hp_dtype_names[t->dtype], lacks);
    const bool steps = hp_backend_steps(backend);
    if (t->algorithm >= HP_ALGORITHMS || steps != (t->algorithm != HP_ALGORITHM_LIBRARY))
        REFUSE("E-RANGE: rank %d task %d has no algorithm %d of a collective", role, id, t->algorithm);
    if (steps && !hp_algorithm_does((hp_algorithm)t->algorithm, &c, hp_task_data(p, t).part == NULL))
        REFUSE("E-RANGE: rank %d task %d: %s does no %s among %d members", role, id,
               hp_algorithms[t->algorithm]->name, hp_collective_infos[c.what].name, c.size);
    return HP_OK;
}
