/* fix_worlds.c - one set-up per batch, device, precision, mode and image that a fix examines. */
#include "sim/search/fix_worlds.h"

enum { MOST_WORLDS = 16 };

static bool resized(const fix_worlds *w, const hp_question *q) {
    return q->image_h != w->setup.graph->image_h || q->image_w != w->setup.graph->image_w;
}

static bool has_network(const fix_worlds *w, const hp_question *q) {
    return !resized(w, q) && q->infer == (w->setup.mode == HP_MODE_INFER) &&
           q->s.prec == w->setup.graph->prec;
}

static bool same(const hp_question *a, const hp_question *b) {
    return a->image_h == b->image_h && a->image_w == b->image_w && a->infer == b->infer &&
           a->s.prec == b->s.prec && a->device == b->device && hp_question_batch(a) == hp_question_batch(b);
}

/* Builds the network again from the plan's description. */
static const hp_graph *graph_of(fix_worlds *w, const hp_question *q) {
    const hp_plan *asked = w->setup.plan;
    hp_graph *g = NULL;
    if (has_network(w, q)) return w->setup.graph;
    if (!asked || (asked->model && resized(w, q))) return NULL;
    hp_plan plan = *asked;
    plan.image_h = q->image_h;
    plan.image_w = q->image_w;
    plan.mode = (int32_t)(q->infer ? HP_MODE_INFER : HP_MODE_TRAIN);
    plan.strategy = q->s;
    return hp_plan_graph(w->arena, &plan, &g, NULL) == HP_OK ? g : NULL;
}

static hp_eval *eval_of(fix_worlds *w, const hp_question *q) {
    hp_eval_setup setup = w->setup;
    if (same(q, w->asked)) return w->eval;
    setup.graph = graph_of(w, q);
    setup.batch = hp_question_batch(q);
    setup.mode = q->infer ? HP_MODE_INFER : HP_MODE_TRAIN;
    setup.device = q->device;
    if (q->device) setup.dtype = q->device->dtype;
    return setup.graph ? hp_eval_new(w->arena, &setup) : NULL;
}

static bool has_options(const hp_question *a, const hp_question *b) {
    return a->batch == b->batch && a->n_devices == b->n_devices && a->image_h == b->image_h &&
           a->image_w == b->image_w && a->infer == b->infer && a->device == b->device;
}

fix_world *fix_world_of(fix_worlds *w, const hp_question *q) {
    if (w->asked->keys_only && !has_options(q, w->asked)) return NULL;
    for (fix_world *one = w->first; one; one = one->next)
        if (same(&one->q, q)) return one->eval ? one : NULL;
    if (w->n++ == MOST_WORLDS) return NULL;
    fix_world *one = HP_NEW(w->arena, fix_world, 1);
    *one = (fix_world){.q = *q, .eval = eval_of(w, q), .next = w->first};
    w->first = one;
    return one->eval ? one : NULL;
}

/* Cores may be shared; GPUs are limited to the existing ones. 0: any number. */
int fix_most_devices(const hp_machine *m, const hp_question *q) {
    const int there = m->device.is_cpu ? 0 : hp_machine_devices(m);
    return !q->n_devices || (there && there < q->n_devices) ? there : q->n_devices;
}

bool fix_is_legal(const hp_eval *e, const hp_question *q, hp_reject *why) {
    const hp_eval_setup *setup = hp_eval_get(e);
    return hp_eval_allows(setup, &q->s, fix_most_devices(setup->machine, q), why);
}
