/* check_gradients.c - every parameter's gradient passes through its states on every rank that holds it.
 *
 * The states: unset, summed over the rank's micro-batches, summed over the ranks that share it, checked for
 * overflow where needed, applied and, where each rank applies a part, gathered. With zero >= 2, every
 * micro-batch's gradient is cleared, summed, reduced and added to the kept part. Nothing is counted twice or
 * left out. With a parameter server, the sum is formed and applied on one rank, which sends the parameters to
 * all. With local updates, each replica sums its own gradients, and parameters and momentum are averaged over
 * replicas. */
#include "networks/graph/precision.h"
#include "plan/check/check_inside.h"

#include <string.h>

typedef enum grad_state {
    UNSET,
    CLEARED,
    SUMMED,
    ENCODED,
    REDUCED,
    KEPT,
    LOOKED_AT,
    APPLIED,
    GATHERED
} grad_state;

/* A code of the gradients [from, from + count); count 0: none yet. */
typedef struct code {
    int64_t from, count;
    int32_t group;    /* group whose codes were summed or gathered; -1: only this rank's */
    int32_t residual; /* factored code: buffer that keeps the residual */
    int32_t other;    /* factor P: the Q computed from it; 0: none yet */
} code;
enum { MEAN_PARAM = 1, MEAN_MOMENTUM = 2, MEAN_BOTH = 3 };

typedef struct walker {
    hp_check_at at; /* the task */
    const hp_program *p;
    const hp_graph *g;
    const hp_role *r;
    const hp_task *t;
    grad_state *grad; /* per parameter */
    bool *kept;       /* per parameter: the part holds a micro-batch's gradient */
    bool *measured;   /* per parameter: the norm includes its gradient */
    code *code;       /* per buffer */
    int32_t *server;  /* per parameter: the member that sums it; -1: all do */
    int32_t *mean;    /* per parameter: what is averaged over replicas */
    bool agreed;      /* all ranks have the same metric */
    hp_placed placed; /* trained parameters in memory order */
} walker;

/* Does the task write the gradients of all local rows? If not, they must have been set before. */
static bool all_rows(const walker *w, const hp_layer *l, int i, const hp_box *out) {
    const hp_param_place *at = &w->r->place[l->param[i]];
    const hp_elements e = hp_param_elements(w->g, l, i, out->lo[HP_AXIS_C], out->hi[HP_AXIS_C]);
    return e.first == at->first && e.count == at->count;
}

static hp_status write_gradients(walker *w) {
    const hp_layer *l = &w->g->layer[w->t->layer];
    const hp_operands o = hp_operands_of(w->g, w->r, w->t);
    const hp_box *out = &w->r->buffer[o.dy].box;
    const bool add = w->t->flags & HP_FLAG_ADD;
    for (int i = 0; i < l->n_param; i++) {
        const int param = l->param[i];
        const char *name = w->g->param[param].name;
        if (!hp_param_trained(&w->g->param[param])) continue;
        grad_state *s = &w->grad[param];
        if (*s > SUMMED && *s != KEPT)
            return hp_check_refuse(&w->at, "E-LOST", "the gradient of %s has been reduced or applied before",
                                   name);
        if (*s == SUMMED && !add)
            return hp_check_refuse(&w->at, "E-LOST", "overwrites the gradient of %s, which no task has used",
                                   name);
        if (hp_keeps_parts(w->p, HP_BUF_GRADS) && *s < CLEARED)
            return hp_check_refuse(&w->at, "E-UNSET", "no task has cleared the block for the gradient of %s",
                                   name);
        if (*s == KEPT)
            return hp_check_refuse(&w->at, "E-LOST", "the gradient of %s is in its part already", name);
        if (*s == UNSET && (add || !all_rows(w, l, i, out)))
            return hp_check_refuse(&w->at, "E-UNSET", "adds to the gradient of %s, which no task has set",
                                   name);
        *s = SUMMED;
    }
    return HP_OK;
}

/* Calls for the parameters in elements [from, from + count). */
typedef hp_status param_fn(walker *w, int param);

static hp_status each_param(walker *w, int64_t from, int64_t count, param_fn *fn) {
    for (int i = hp_placed_from(w->r, &w->placed, from); i < w->placed.n; i++) {
        const int param = w->placed.param[i];
        const hp_param_place *at = &w->r->place[param];
        if (at->offset >= from + count) break;
        if (at->offset < from || at->offset + at->count > from + count)
            return hp_check_refuse(&w->at, "E-COUNT", "cuts parameter %s in two", w->g->param[param].name);
        HP_TRY(fn(w, param));
    }
    return HP_OK;
}

/* Calls for the parameters that the task is about. */
static hp_status each_of(walker *w, param_fn *fn) {
    const hp_elements range = hp_task_range(w->t);
    return each_param(w, range.first, range.count, fn);
}

static hp_status clear_param(walker *w, int param) {
    if (w->grad[param] != UNSET)
        return hp_check_refuse(&w->at, "E-LOST", "clears the gradient of %s after it was set",
                               w->g->param[param].name);
    w->grad[param] = SUMMED;
    return HP_OK;
}

/* Clears a block for the next micro-batch's gradients. */
static hp_status clear_block_param(walker *w, int param) {
    if (w->grad[param] != UNSET && w->grad[param] != KEPT)
        return hp_check_refuse(&w->at, "E-LOST", "clears the gradient of %s before its part was kept",
                               w->g->param[param].name);
    w->grad[param] = CLEARED;
    return HP_OK;
}

/* Do several ranks hold parts of the gradient that must be summed? */
static bool is_shared(const walker *w, int param) {
    const int group = w->r->place[param].group;
    return group >= 0 && (w->p->local ? w->p->group[group].n : hp_group_size(w->p, group)) > 1;
}

static hp_status keep_param(walker *w, int param) {
    const char *name = w->g->param[param].name;
    const grad_state s = w->grad[param];
    if (w->r->operand[w->t->operand] != HP_BUF_GRADS) return HP_OK; /* parameters for a block */
    if (is_shared(w, param) ? s != REDUCED : s != CLEARED && s != SUMMED)
        return hp_check_refuse(&w->at, "E-LOST", "keeps the gradient of %s, which is not reduced", name);
    if (w->kept[param] != ((w->t->flags & HP_FLAG_ADD) != 0))
        return hp_check_refuse(&w->at, "E-LOST", "%s the part of the gradient of %s",
                               w->kept[param] ? "overwrites" : "adds to nothing in", name);
    w->kept[param] = true;
    w->grad[param] = KEPT;
    return HP_OK;
}

/* Are the members of `group` the ranks that share the gradient? These are all holders of the parameter or, if
 * replicas train separately, the holders in this replica. */
static bool sums_over(const walker *w, int holders, int group) {
    const hp_group *x = &w->p->group[group], *y = holders < 0 ? NULL : &w->p->group[holders];
    if (!w->p->local || !y) return hp_group_equal(w->p, holders, group);
    return !x->all_replicas && x->n == y->n &&
           memcmp(w->p->member + x->first, w->p->member + y->first, sizeof(int32_t) * (size_t)x->n) == 0;
}

/* Gathers the other ranks' parts of the updated weights. */
static hp_status gather_param(walker *w, int param) {
    if (w->grad[param] != APPLIED)
        return hp_check_refuse(&w->at, "E-LOST", "gathers parameter %s before it was updated",
                               w->g->param[param].name);
    w->grad[param] = GATHERED;
    return HP_OK;
}

/* Moves the gradient from one state to the next; fails if a task has already done so. */
static hp_status advance(walker *w, int param, grad_state from, grad_state to) {
    const bool early = w->grad[param] < from;
    if (w->grad[param] != from && !(from == SUMMED && w->grad[param] == CLEARED))
        return hp_check_refuse(&w->at, early ? "E-UNSET" : "E-LOST", "the gradient of %s is %s",
                               w->g->param[param].name,
                               !early           ? "reduced twice"
                               : from == SUMMED ? "not set"
                                                : "not encoded");
    w->grad[param] = to;
    return HP_OK;
}

/* Requires that the sharing ranks have summed it. */
static hp_status want_group(const walker *w, int param, int group) {
    if (!sums_over(w, w->r->place[param].group, group))
        return hp_check_refuse(&w->at, "E-MATCH",
                               "sums the gradient of %s over group %d, but group %d shares it",
                               w->g->param[param].name, group, w->r->place[param].group);
    return HP_OK;
}

static hp_status reduce_param(walker *w, int param) {
    if ((w->t->op == HP_TASK_REDUCE_SCATTER) != (w->p->zero > 0 && is_shared(w, param)))
        return hp_check_refuse(&w->at, "E-LOST",
                               "leaves the sum of the gradient of %s with others than update it",
                               w->g->param[param].name);
    HP_TRY(advance(w, param, SUMMED, REDUCED));
    if (w->t->op == HP_TASK_REDUCE) w->server[param] = hp_task_call(w->p, w->t).root;
    return want_group(w, param, w->r->queue[w->t->queue].peer);
}

static hp_status encode_param(walker *w, int param) {
    return advance(w, param, SUMMED, ENCODED);
}

static hp_status decode_param(walker *w, int param) {
    HP_TRY(advance(w, param, ENCODED, REDUCED));
    return want_group(w, param, w->code[w->r->operand[w->t->operand + 1]].group);
}

/* Does the task run on the rank that holds the sum? */
static hp_status by_server(const walker *w, int param) {
    const int server = w->server[param], root = hp_task_call_index(w->t) ? hp_task_call(w->p, w->t).root : -1;
    if (root == server) return HP_OK;
    return hp_check_refuse(&w->at, "E-ROOT", "is of member %d (-1: all), but %s is summed at member %d", root,
                           w->g->param[param].name, server);
}

/* Is the gradient final, that is, summed over all ranks that contribute? */
static hp_status final_param(walker *w, int param) {
    const char *name = w->g->param[param].name;
    const int group = w->r->place[param].group;
    if (hp_keeps_parts(w->p, HP_BUF_GRADS) && w->grad[param] < KEPT)
        return hp_check_refuse(&w->at, "E-UNSET", "the part of the gradient of %s is not kept", name);
    if (w->grad[param] == UNSET)
        return hp_check_refuse(&w->at, "E-UNSET", "the gradient of %s is not set", name);
    if (w->grad[param] >= APPLIED)
        return hp_check_refuse(&w->at, "E-LOST", "the gradient of %s is applied twice", name);
    if (w->grad[param] == ENCODED)
        return hp_check_refuse(&w->at, "E-LOST", "no task has decoded the gradient of %s", name);
    if (is_shared(w, param) && w->grad[param] < REDUCED)
        return hp_check_refuse(&w->at, "E-LOST", "the gradient of %s is not summed over group %d", name,
                               group);
    return by_server(w, param);
}

static hp_status look_at_param(walker *w, int param) {
    HP_TRY(final_param(w, param));
    if (w->grad[param] == LOOKED_AT)
        return hp_check_refuse(&w->at, "E-LOST", "counts twice what has overflowed of %s",
                               w->g->param[param].name);
    w->grad[param] = LOOKED_AT;
    return HP_OK;
}

static hp_status measure_param(walker *w, int param) {
    HP_TRY(final_param(w, param));
    if (w->measured[param] || w->agreed)
        return hp_check_refuse(&w->at, "E-LOST", "counts the gradient of %s twice in the norm, or too late",
                               w->g->param[param].name);
    w->measured[param] = true;
    return HP_OK;
}

static hp_status apply_param(walker *w, int param) {
    HP_TRY(final_param(w, param));
    if (w->g->clips && (!w->measured[param] || !w->agreed))
        return hp_check_refuse(&w->at, "E-UNSET", "the gradient of %s is in no norm that all ranks know",
                               w->g->param[param].name);
    if (hp_graph_scales_loss(w->g) && (w->grad[param] != LOOKED_AT || !w->agreed))
        return hp_check_refuse(&w->at, "E-UNSET", "no task has checked whether the gradient of %s overflowed",
                               w->g->param[param].name);
    w->grad[param] = APPLIED;
    return HP_OK;
}

/* Sends the server's parameters to all ranks that share them. */
static hp_status send_param(walker *w, int param) {
    const char *name = w->g->param[param].name;
    const int root = hp_task_call(w->p, w->t).root;
    if (w->grad[param] != APPLIED)
        return hp_check_refuse(&w->at, w->grad[param] == GATHERED ? "E-LOST" : "E-UNSET", "%s is %s", name,
                               w->grad[param] == GATHERED ? "sent twice" : "not updated yet");
    if (root != w->server[param])
        return hp_check_refuse(&w->at, "E-ROOT", "sends %s from member %d, member %d (-1: all) updates it",
                               name, root, w->server[param]);
    if (!hp_group_equal(w->p, w->r->place[param].group, w->r->queue[w->t->queue].peer))
        return hp_check_refuse(&w->at, "E-MATCH", "sends %s to others than those who share it", name);
    w->grad[param] = GATHERED;
    return HP_OK;
}

static hp_status average_param(walker *w, int param) {
    const char *name = w->g->param[param].name;
    const int which = w->r->operand[w->t->operand] == HP_BUF_WEIGHTS ? MEAN_PARAM : MEAN_MOMENTUM;
    if (w->grad[param] != APPLIED)
        return hp_check_refuse(&w->at, "E-UNSET", "averages %s before it is updated", name);
    if (!w->p->local)
        return hp_check_refuse(&w->at, "E-TYPE", "averages %s of replicas that are alike", name);
    if (w->mean[param] & which) return hp_check_refuse(&w->at, "E-LOST", "averages %s twice", name);
    if (!hp_group_equal(w->p, w->r->place[param].group, w->r->queue[w->t->queue].peer))
        return hp_check_refuse(&w->at, "E-MATCH", "averages %s over others than those who hold it", name);
    w->mean[param] |= which;
    return HP_OK;
}

/* --- codes --- */

static bool is_code(const walker *w, int i) {
    const int32_t id = i < w->t->n_operand ? w->r->operand[w->t->operand + i] : -1;
    return id >= 0 && hp_buffer_is_code(&w->r->buffer[id]) && w->r->buffer[id].what < 0;
}

static code *code_of(const walker *w, int i) {
    return &w->code[w->r->operand[w->t->operand + i]];
}

static hp_status walk_encode(walker *w) {
    if (code_of(w, 0)->count) return hp_check_refuse(&w->at, "E-LOST", "a code of gradients is made twice");
    *code_of(w, 0) = (code){w->t->code.first, w->t->code.values, .group = -1};
    return each_of(w, encode_param);
}

/* Sums or gathers the codes of all members. */
static hp_status walk_sum(walker *w) {
    const code own = *code_of(w, w->t->n_operand - 1);
    if (!own.count) return hp_check_refuse(&w->at, "E-UNSET", "sums a code that no task has made");
    if (own.group >= 0 || (w->t->n_operand > 1 && code_of(w, 0)->count))
        return hp_check_refuse(&w->at, "E-LOST", "sums a code of gradients twice");
    *code_of(w, 0) = own;
    code_of(w, 0)->group = w->r->queue[w->t->queue].peer;
    return HP_OK;
}

static hp_status walk_decode(walker *w) {
    const code of = *code_of(w, 1);
    if (of.group < 0 || of.from != w->t->code.first || of.count != w->t->code.values)
        return hp_check_refuse(&w->at, "E-LOST", "decodes another code than the sum of these gradients");
    return each_of(w, decode_param);
}

/* --- factors --- */

static hp_status walk_project(walker *w) {
    const int32_t residual = w->r->operand[w->t->operand + 2];
    if (code_of(w, 0)->count) return hp_check_refuse(&w->at, "E-LOST", "a code of gradients is made twice");
    *code_of(w, 0) = (code){w->t->code.first, w->t->code.values, .group = -1, .residual = residual};
    return each_of(w, encode_param);
}

/* Is operand i a code of the task's gradients and residual, already summed? */
static bool is_summed(const walker *w, int i, int32_t residual) {
    const code *c = code_of(w, i);
    return c->group >= 0 && c->from == w->t->code.first && c->count == w->t->code.values &&
           c->residual == residual;
}

static hp_status walk_factor(walker *w) {
    const int32_t residual = w->r->operand[w->t->operand + 2], q = w->r->operand[w->t->operand];
    if (!is_summed(w, 1, residual) || code_of(w, 1)->other || w->code[q].count)
        return hp_check_refuse(&w->at, "E-LOST", "factors something else than the sum of these gradients' P");
    code_of(w, 1)->other = q;
    w->code[q] = (code){w->t->code.first, w->t->code.values, .group = -1, .residual = residual};
    return HP_OK;
}

static hp_status walk_expand(walker *w) {
    const int32_t residual = w->r->operand[w->t->operand + 3], q = w->r->operand[w->t->operand + 2];
    if (!is_summed(w, 1, residual) || !is_summed(w, 2, residual) || code_of(w, 1)->other != q ||
        !hp_group_equal(w->p, code_of(w, 1)->group, code_of(w, 2)->group))
        return hp_check_refuse(&w->at, "E-LOST", "expands other factors than the sums of these gradients'");
    return each_of(w, decode_param);
}

/* --- tasks --- */

/* Calls fn for the parameters in a task's buffer: its range of a fixed buffer, or a whole block. */
static hp_status each_in(walker *w, int32_t id, param_fn *fn) {
    if (id < HP_BUF_FIXED) return each_of(w, fn);
    const hp_bucket *b = &w->r->bucket[w->r->buffer[id].what];
    return each_param(w, b->first, b->count, fn);
}

static hp_status walk_collective(walker *w) {
    const int32_t id = w->r->operand[w->t->operand];
    const bool block = w->r->buffer[id].kind == HP_BUF_BLOCK;
    w->agreed |= w->t->op == HP_TASK_ALLREDUCE && w->t->flags & HP_FLAG_METRIC;
    if (w->t->flags & HP_FLAG_AVERAGE) return each_in(w, id, average_param);
    if (w->t->op == HP_TASK_BROADCAST) return id == HP_BUF_WEIGHTS ? each_in(w, id, send_param) : HP_OK;
    if (w->t->op == HP_TASK_ALL_GATHER) return id == HP_BUF_WEIGHTS ? each_in(w, id, gather_param) : HP_OK;
    return block || id == HP_BUF_GRADS ? each_in(w, id, reduce_param) : HP_OK;
}

static hp_status walk_task(walker *w) {
    const hp_task *t = w->t;
    const int32_t id = t->n_operand ? w->r->operand[t->operand] : -1;
    if (hp_task_is_layer(t)) return hp_task_gradient(w->g, w->r, t) ? write_gradients(w) : HP_OK;
    if (t->op == HP_TASK_UPDATE) return each_of(w, apply_param);
    if (t->op == HP_TASK_FINITE) return each_of(w, look_at_param);
    if (t->op == HP_TASK_NORM) return each_of(w, measure_param);
    if (t->op == HP_TASK_ENCODE && is_code(w, 0)) return walk_encode(w);
    if (t->op == HP_TASK_DECODE && is_code(w, 1)) return walk_decode(w);
    if (t->op == HP_TASK_PROJECT) return walk_project(w);
    if (t->op == HP_TASK_FACTOR) return walk_factor(w);
    if (t->op == HP_TASK_EXPAND) return walk_expand(w);
    if (hp_task_is_collective(t) && is_code(w, 0)) return walk_sum(w);
    if (t->op == HP_TASK_PART) return each_of(w, keep_param);
    if (hp_task_is_collective(t)) return walk_collective(w);
    if (t->op != HP_TASK_ZERO) return HP_OK;
    if (id == HP_BUF_GRADS) return each_in(w, id, clear_param);
    return w->r->buffer[id].kind == HP_BUF_BLOCK ? each_in(w, id, clear_block_param) : HP_OK;
}

/* The state that a parameter's gradient must reach. */
static grad_state last_state(const walker *w, int param) {
    const bool gathers =
        w->server[param] >= 0 || (w->p->zero && is_shared(w, param) && !hp_keeps_parts(w->p, HP_BUF_WEIGHTS));
    return gathers ? GATHERED : APPLIED;
}

/* Requires that the parameter was updated, identically on all ranks. */
static hp_status check_end(const walker *w, int param) {
    const char *name = w->g->param[param].name;
    if (w->grad[param] != last_state(w, param))
        return hp_fail(w->at.err, HP_EPLAN, "E-LOST: rank %d never %s parameter %s", w->at.role,
                       w->grad[param] == APPLIED ? "gathers" : "updates", name);
    if (w->p->local && w->mean[param] != MEAN_BOTH)
        return hp_fail(w->at.err, HP_EPLAN, "E-LOST: rank %d never averages parameter %s over replicas",
                       w->at.role, name);
    return HP_OK;
}

static hp_status walk_role(hp_arena *arena, walker *w) {
    w->grad = HP_NEW(arena, grad_state, w->g->n_param);
    w->mean = HP_NEW(arena, int32_t, w->g->n_param);
    w->server = HP_NEW(arena, int32_t, w->g->n_param);
    for (int i = 0; i < w->g->n_param; i++) w->server[i] = -1;
    w->kept = HP_NEW(arena, bool, w->g->n_param);
    w->measured = HP_NEW(arena, bool, w->g->n_param);
    w->code = HP_NEW(arena, code, w->r->n_buffer);
    w->placed = hp_placed_params(arena, w->r, w->g, true);
    for (w->at.task = 0; w->at.task < w->r->n_task; w->at.task++) {
        w->t = &w->r->task[w->at.task];
        HP_TRY(walk_task(w));
    }
    for (int i = 0; i < w->placed.n && w->p->mode == (int)HP_MODE_TRAIN; i++)
        HP_TRY(check_end(w, w->placed.param[i]));
    return HP_OK;
}

hp_status hp_check_gradients(const hp_program *p, const hp_graph *g, hp_error *err) {
    hp_status s = HP_OK;
    for (int role = 0; role < p->n_role && s == HP_OK; role++) {
        hp_arena *arena = hp_arena_new();
        walker w = {.at = {p, g, role, 0, err}, .p = p, .g = g, .r = &p->role[role]};
        s = walk_role(arena, &w);
        hp_arena_free(arena);
    }
    return s;
}
