/* check_messages.c - both ends of every message agree, and so do all members of every collective. */
#include "base/hash.h"
#include "plan/check/check_inside.h"

#define REFUSE(...) return hp_fail(err, HP_EPLAN, __VA_ARGS__)

/* Rejects two queues with the same destination: the order of their messages would be undefined. */
static hp_status check_twins(const hp_wired_role *w, int role, hp_error *err) {
    const hp_role *r = w->role;
    for (int i = 1; i < r->n_queue; i++) {
        const int a = w->sorted_queue[i - 1], b = w->sorted_queue[i];
        if (hp_queue_compare(&r->queue[a], &r->queue[b]) == 0)
            REFUSE("E-RANGE: rank %d: queues %d and %d lead to the same place", role, a, b);
    }
    return HP_OK;
}

/* --- messages --- */

typedef struct messages {
    const hp_program *p;
    const hp_graph *g;
    const hp_wiring *w;
    hp_payload *const *payload;
} messages;

/* Message `k` of a channel: its send and its receive. */
typedef struct message {
    int from, to, channel, k, send, recv;
} message;

static const hp_task *send_task(const messages *m, const message *e) {
    return &m->p->role[e->from].task[e->send];
}

static const hp_task *recv_task(const messages *m, const message *e) {
    return &m->p->role[e->to].task[e->recv];
}

/* The sent part of the tensor must be the part that the receiver expects. */
static hp_status check_payload(const messages *m, const message *e, hp_error *err) {
    const hp_role *a = &m->p->role[e->from], *b = &m->p->role[e->to];
    const hp_buffer *x = &a->buffer[a->operand[send_task(m, e)->operand]],
                    *y = &b->buffer[b->operand[recv_task(m, e)->operand]];
    const hp_payload payload = m->payload[e->from][e->send];
    const int gradient = y->kind == HP_BUF_TENSOR ? 0 : y->kind == HP_BUF_GRADIENT ? 1 : -1;
    if (payload.tensor < 0 && y->what < 0) return HP_OK;
    if (payload.tensor != y->what || (payload.gradient >= 0 && gradient >= 0 && payload.gradient != gradient))
        REFUSE("E-BOX: message %d on channel %d: rank %d sends tensor %d%s, rank %d expects tensor %d%s",
               e->k, e->channel, e->from, payload.tensor, payload.gradient == 1 ? "'s gradient" : "", e->to,
               y->what, gradient == 1 ? "'s gradient" : "");
    if (x->codec != y->codec)
        REFUSE("E-TYPE: message %d on channel %d: ranks %d and %d code it in other ways", e->k, e->channel,
               e->from, e->to);
    if (!hp_box_equal(&x->box, &y->box))
        REFUSE(
            "E-BOX: message %d on channel %d: rank %d sends another part of tensor %d than rank %d expects",
            e->k, e->channel, e->from, payload.tensor, e->to);
    return HP_OK;
}

static hp_status check_message(const messages *m, const message *e, hp_error *err) {
    const hp_task *x = send_task(m, e), *y = recv_task(m, e);
    if (x->dtype != y->dtype)
        REFUSE("E-TYPE: message %d on channel %d: rank %d sends %s, rank %d expects %s", e->k, e->channel,
               e->from, hp_dtype_names[x->dtype], e->to, hp_dtype_names[y->dtype]);
    if (x->message.position != y->message.position || x->micro != y->micro)
        REFUSE(
            "E-ORDER: message %d on channel %d: rank %d sends tag %d of micro-batch %d, rank %d expects tag "
            "%d of %d",
            e->k, e->channel, e->from, x->message.position, x->micro, e->to, y->message.position, y->micro);
    if (x->message.elems != y->message.elems)
        REFUSE("E-COUNT: message %d on channel %d: rank %d sends %lld elements, rank %d expects %lld", e->k,
               e->channel, e->from, (long long)x->message.elems, e->to, (long long)y->message.elems);
    return check_payload(m, e, err);
}

static int count_tasks(const messages *m, int role, int q) {
    return q < 0 ? 0 : m->w->role[role].queue[q].n;
}

/* Number of tasks at the other end of a channel. */
static int count_partners(const messages *m, int role, int q) {
    return count_tasks(m, m->p->role[role].queue[q].peer, m->w->role[role].queue[q].partner);
}

/* Compares the messages of send queue `q` of role `from` with the receives of its peer. */
static hp_status check_channel(const messages *m, int from, int q, hp_error *err) {
    const hp_queue *queue = &m->p->role[from].queue[q];
    const int32_t *task = m->w->role[from].queue[q].task;
    const int n = count_tasks(m, from, q), n_back = count_partners(m, from, q);
    for (int k = 0; k < n && k < n_back; k++) {
        const message e = {from, queue->peer, queue->channel,
                           k,    task[k],     hp_wired_other_end(m->w, from, task[k])};
        HP_TRY(check_message(m, &e, err));
    }
    if (n > n_back)
        REFUSE("E-MATCH: rank %d sends %d messages on channel %d, rank %d receives %d", from, n,
               queue->channel, queue->peer, n_back);
    return HP_OK;
}

/* Receive queue `q` of role `to` must have as many sends as receives. */
static hp_status check_receives(const messages *m, int to, int q, hp_error *err) {
    const hp_queue *queue = &m->p->role[to].queue[q];
    const int n = count_tasks(m, to, q), n_back = count_partners(m, to, q);
    if (n > n_back)
        REFUSE("E-MATCH: rank %d receives %d messages on channel %d, rank %d sends %d", to, n, queue->channel,
               queue->peer, n_back);
    return HP_OK;
}

static hp_status check_role_messages(const messages *m, int role, hp_error *err) {
    HP_TRY(check_twins(&m->w->role[role], role, err));
    for (int q = 1; q < m->p->role[role].n_queue; q++) {
        const int kind = m->p->role[role].queue[q].kind;
        if (kind == HP_QUEUE_SEND) HP_TRY(check_channel(m, role, q, err));
        if (kind == HP_QUEUE_RECV) HP_TRY(check_receives(m, role, q, err));
    }
    return HP_OK;
}

/* --- collectives --- */

/* What a member contributes to a sum: rows of parameters and their places, a layer's sums, or a part of a
 * tensor. */
typedef struct summand {
    int32_t kind, what;
    int64_t first, count, at;
    hp_box box;
} summand;
_Static_assert(sizeof(summand) == 64, "hashed without hidden padding");

static uint64_t add_summand(uint64_t h, const summand *s) {
    return hp_hash64(s, sizeof *s, h);
}

/* Hash of the parameters, or gradients, in elements [from, from + count). */
static uint64_t sum_of_params(const hp_program *p, int role, const hp_placed *placed, int kind, int64_t from,
                              int64_t count) {
    const hp_role *r = &p->role[role];
    uint64_t h = 0;
    for (int i = hp_placed_from(r, placed, from); i < placed->n; i++) {
        const hp_param_place *at = &r->place[placed->param[i]];
        if (at->offset >= from + count) break;
        const summand s = {kind, placed->param[i], at->first, at->count, at->offset - from, {{0}, {0}}};
        h = add_summand(h, &s);
    }
    return h;
}

/* Hash of what was encoded, and how. */
static uint64_t sum_of_codes(const hp_program *p, int role, const hp_placed *placed, const hp_task *t) {
    const hp_role *r = &p->role[role];
    const int32_t code = r->operand[t->operand + t->n_operand - 1];
    const hp_task *encoder = hp_check_encoder(r, code);
    const summand s = {
        .kind = HP_BUF_CODE, .what = r->buffer[code].codec, .first = encoder ? encoder->op : 0};
    const uint64_t of =
        encoder ? sum_of_params(p, role, placed, HP_BUF_GRADS, encoder->code.first, encoder->code.values) : 0;
    return add_summand(of, &s);
}

static uint64_t sum_of(const hp_program *p, int role, const hp_placed *placed, const hp_task *t) {
    const hp_role *r = &p->role[role];
    const int32_t id = r->operand[t->operand];
    const hp_buffer *b = &r->buffer[id];
    if (id >= HP_BUF_WEIGHTS && id <= HP_BUF_OPTIMIZER)
        return sum_of_params(p, role, placed, id, t->collective.first, t->collective.elems);
    if (b->kind == HP_BUF_BLOCK)
        return sum_of_params(p, role, placed, b->kind, r->bucket[b->what].first, r->bucket[b->what].count);
    if (hp_buffer_is_code(b)) return sum_of_codes(p, role, placed, t);
    const summand s = {.kind = b->kind, .what = b->what, .box = b->box};
    return add_summand(0, &s);
}

typedef struct collectives {
    const messages *m;
    const hp_placed *placed; /* per role */
    int group, first, role;  /* first: the member that the others are compared with */
} collectives;

/* Compares reduction, root, nodes and parts by the content of the calls, wherever these are stored. */
static hp_status check_how(const collectives *c, int k, const hp_task *a, const hp_task *b, hp_error *err) {
    const hp_program *p = c->m->p;
    const hp_call x = hp_task_call(p, a), y = hp_task_call(p, b);
    const int32_t x_nodes = hp_task_case(p, &p->role[c->first], a).per_node,
                  y_nodes = hp_task_case(p, &p->role[c->role], b).per_node;
    if (x.reduction != y.reduction)
        REFUSE("E-ORDER: collective %d of group %d: rank %d takes the %s, rank %d the %s", k, c->group,
               c->first, hp_reduction_names[x.reduction], c->role, hp_reduction_names[y.reduction]);
    if (x.root != y.root)
        REFUSE("E-ROOT: collective %d of group %d: for rank %d member %d is the root, for rank %d member %d",
               k, c->group, c->first, x.root, c->role, y.root);
    if (x_nodes != y_nodes)
        REFUSE("E-ORDER: collective %d of group %d: for rank %d a node has %d members, for rank %d %d", k,
               c->group, c->first, x_nodes, c->role, y_nodes);
    if (x.n != y.n)
        REFUSE("E-COUNT: collective %d of group %d: rank %d has %d parts, rank %d %d (0: equal ones)", k,
               c->group, c->first, x.n, c->role, y.n);
    for (int32_t i = 0; i < x.n; i++)
        if (p->part[x.first + i] != p->part[y.first + i])
            REFUSE(
                "E-COUNT: collective %d of group %d: part %d has %lld elements for rank %d, %lld for rank %d",
                k, c->group, i, (long long)p->part[x.first + i], c->first, (long long)p->part[y.first + i],
                c->role);
    return HP_OK;
}

static bool has_source(const hp_role *r, const hp_task *t) {
    return t->n_operand > 1 && r->operand[t->operand + 1] >= 0;
}

/* As MPI requires, either all contributing members have a source buffer or none has. */
static hp_status check_sources(const collectives *c, int k, const hp_task *a, const hp_task *b,
                               hp_error *err) {
    const hp_program *p = c->m->p;
    const bool x = has_source(&p->role[c->first], a), y = has_source(&p->role[c->role], b);
    if (x != y && hp_collective_infos[hp_task_collective(a)].begins != HP_BLOCKS_ROOT)
        REFUSE(
            "E-ORDER: collective %d of group %d: rank %d has a source, rank %d none: all have one, or none",
            k, c->group, x ? c->first : c->role, x ? c->role : c->first);
    return HP_OK;
}

static hp_status check_call(const collectives *c, int k, const hp_task *a, const hp_task *b, hp_error *err) {
    const hp_program *p = c->m->p;
    if (a->dtype != b->dtype)
        REFUSE("E-TYPE: collective %d of group %d: rank %d has %s, rank %d %s", k, c->group, c->first,
               hp_dtype_names[a->dtype], c->role, hp_dtype_names[b->dtype]);
    if (a->op != b->op)
        REFUSE("E-ORDER: collective %d of group %d: rank %d calls a %s, rank %d a %s", k, c->group, c->first,
               hp_task_infos[a->op].name, c->role, hp_task_infos[b->op].name);
    if (a->collective.call != b->collective.call) HP_TRY(check_how(c, k, a, b, err));
    if (a->algorithm != b->algorithm)
        REFUSE("E-ORDER: collective %d of group %d: rank %d runs %s, rank %d %s", k, c->group, c->first,
               hp_algorithms[a->algorithm]->name, c->role, hp_algorithms[b->algorithm]->name);
    if (a->collective.elems != b->collective.elems)
        REFUSE("E-COUNT: collective %d of group %d: rank %d has %lld elements, rank %d %lld", k, c->group,
               c->first, (long long)a->collective.elems, c->role, (long long)b->collective.elems);
    HP_TRY(check_sources(c, k, a, b, err));
    if (a->flags != b->flags ||
        sum_of(p, c->first, &c->placed[c->first], a) != sum_of(p, c->role, &c->placed[c->role], b))
        REFUSE("E-ORDER: collective %d of group %d: rank %d adds up other things than rank %d", k, c->group,
               c->role, c->first);
    return HP_OK;
}

static hp_status check_member(const collectives *c, hp_error *err) {
    const messages *m = c->m;
    const hp_wired_role *a = &m->w->role[c->first], *b = &m->w->role[c->role];
    const int qa = hp_wired_find(a, HP_QUEUE_COLL, c->group, 0),
              qb = hp_wired_find(b, HP_QUEUE_COLL, c->group, 0);
    const int na = count_tasks(m, c->first, qa), nb = count_tasks(m, c->role, qb);
    for (int k = 0; k < na && k < nb; k++)
        HP_TRY(check_call(c, k, &a->role->task[a->queue[qa].task[k]], &b->role->task[b->queue[qb].task[k]],
                          err));
    if (na != nb)
        REFUSE("E-MATCH: group %d: rank %d calls %d collectives, rank %d calls %d", c->group, c->first, na,
               c->role, nb);
    return HP_OK;
}

static hp_status check_collectives(hp_arena *arena, const messages *m, hp_error *err) {
    hp_placed *placed = HP_NEW(arena, hp_placed, m->p->n_role);
    for (int r = 0; r < m->p->n_role; r++) placed[r] = hp_placed_params(arena, &m->p->role[r], m->g, true);
    for (int i = 0; i < m->p->n_group; i++) {
        const hp_group *group = &m->p->group[i];
        const int32_t *member = m->p->member + group->first;
        for (int k = 1; k < group->n; k++) {
            const collectives c = {m, placed, i, member[0], member[k]};
            HP_TRY(check_member(&c, err));
        }
    }
    return HP_OK;
}

hp_status hp_check_messages(hp_arena *arena, const hp_wiring *w, const hp_graph *g,
                            hp_payload *const *payload, hp_error *err) {
    const messages m = {w->program, g, w, payload};
    for (int r = 0; r < w->program->n_role; r++) HP_TRY(check_role_messages(&m, r, err));
    return check_collectives(arena, &m, err);
}
