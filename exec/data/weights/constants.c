/* constants.c - opens the source of a deployed network's constants, and sets the qparams of its
 * tensors; see constants.h. */
#include "exec/data/weights/constants_state.h"

#include "exec/data/weights/quantised.h"
#include "exec/data/weights/weights_stored.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* Frees scratch memory. It is mapped rather than on the heap, so that a hundred megabytes used once really go
 * back to the system. */
static void release_scratch(constants_scratch *room) {
    if (room->at) munmap(room->at, room->bytes);
    *room = (constants_scratch){0};
}

void *constants_reserve(constants_scratch *room, size_t bytes) {
    if (room->at && bytes <= room->bytes) return room->at;
    release_scratch(room);
    room->bytes = bytes > 0 ? bytes : 1;
    room->at = mmap(NULL, room->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HP_ASSERT(room->at != MAP_FAILED);
    return room->at;
}

constants_shape constants_shape_of(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    const hp_param *w = &g->param[l->param[0]];
    constants_shape s = {.lead = 1, .outs = w->dim[0], .per = w->count / w->dim[0], .groups = 1};
    if (l->op == HP_CONVT)
        s = (constants_shape){.lead = w->dim[0],
                              .outs = w->dim[1],
                              .per = w->count / w->dim[0] / w->dim[1],
                              .groups = l->groups > 1 ? l->groups : 1};
    s.channels = s.outs * s.groups;
    return s;
}

constants_shape constants_slice_shape(const constants_shape *whole, int64_t first, int64_t outs) {
    HP_ASSERT(first >= 0 && outs > 0 && first + outs <= whole->channels);
    HP_ASSERT(whole->groups == 1 || outs == whole->channels);
    constants_shape s = *whole;
    if (s.groups == 1) s.outs = s.channels = outs;
    return s;
}

bool hp_layer_weights8(const hp_graph *g, int layer) {
    const hp_layer *l = &g->layer[layer];
    return (l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR) &&
           (l->deployed.dynamic || g->tensor[l->in[0]].store == HP_STORE_U8);
}

/* --- opening --- */

static void set_pixels(hp_constants *c) {
    for (int i = 0; i < 4; i++) {
        const int from = c->o.n_mean == 1 ? 0 : i;
        const bool given = from < c->o.n_mean;
        const double mean = given ? c->o.mean[from] : 0.5, std = given ? c->o.std[from] : 0.5;
        c->pixel_scale[i] = 1.0 / (255.0 * std);
        c->pixel_zero[i] = 255.0 * mean;
    }
}

static hp_constants *start(const hp_constants_options *o) {
    HP_ASSERT(o->n_mean >= 0 && o->n_mean <= 4);
    hp_arena *arena = hp_arena_new();
    hp_constants *c = HP_NEW(arena, hp_constants, 1);
    *c = (hp_constants){.o = *o, .graph = o->graph, .arena = arena};
    c->qparam = HP_NEW(arena, hp_qparam, c->graph->n_tensor);
    c->known = HP_NEW(arena, bool, c->graph->n_tensor);
    c->foreign = HP_NEW(arena, bool, c->graph->n_param);
    c->change = HP_NEW(arena, constants_change, c->graph->n_layer);
    if (o->path) c->o.path = hp_arena_strdup(arena, o->path);
    return c;
}

static hp_status finish(hp_constants *c, hp_status s, hp_constants **out) {
    if (s != HP_OK) {
        hp_constants_close(c);
        return s;
    }
    set_pixels(c);
    *out = c;
    return HP_OK;
}

static hp_status open_file(hp_constants *c, hp_error *err) {
    HP_TRY(hp_safetensors_open(c->o.path, &c->st, err));
    c->stored = hp_is_quantised_file(c->st);
    return c->stored ? constants_stored_open(c, err) : hp_weights_compare(c->o.path, c->st, c->graph, err);
}

hp_status hp_constants_open(const hp_constants_options *o, hp_constants **out, hp_error *err) {
    hp_constants *c = start(o);
    return finish(c, o->path ? open_file(c, err) : HP_OK, out);
}

/* The file is known to be the network's; only sizes may differ. */
static hp_status open_other_size(hp_constants *c, const hp_safetensors *as, hp_error *err) {
    const char *strip, *prefix;
    HP_TRY(hp_safetensors_open(c->o.path, &c->st, err));
    hp_safetensors_prefix(as, &strip, &prefix);
    hp_safetensors_use_prefix(c->st, strip, prefix);
    for (int32_t i = 0; i < c->graph->n_param; i++) c->foreign[i] = !hp_stored_fits(c->st, c->graph, i);
    return HP_OK;
}

hp_status hp_constants_open_as(const hp_constants *c, const hp_graph *graph, hp_constants **out,
                               hp_error *err) {
    HP_ASSERT(!c->stored);
    hp_constants_options o = c->o;
    o.graph = graph;
    hp_constants *other = start(&o);
    return finish(other, o.path ? open_other_size(other, c->st, err) : HP_OK, out);
}

void hp_constants_release(hp_constants *c) {
    constants_scratch *rooms[] = {&c->weight, &c->weight8, &c->scale, &c->bias, &c->row};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) release_scratch(rooms[i]);
}

void hp_constants_close(hp_constants *c) {
    if (!c) return;
    hp_constants_release(c);
    hp_safetensors_close(c->st);
    hp_arena_free(c->arena);
}

const hp_graph *hp_constants_graph(const hp_constants *c) {
    return c->graph;
}

/* --- qparams of tensors --- */

bool hp_tensor_wants_qparam(const hp_graph *g, int tensor) {
    return g->tensor[tensor].store == HP_STORE_U8 && g->layer[g->tensor[tensor].producer].op != HP_INPUT;
}

bool hp_constants_calibrated(const hp_constants *c) {
    for (int t = 0; t < c->graph->n_tensor; t++)
        if (hp_tensor_wants_qparam(c->graph, t) && !c->known[t]) return false;
    return true;
}

void hp_constants_set_qparam(hp_constants *c, int tensor, hp_qparam q) {
    HP_ASSERT(tensor >= 0 && tensor < c->graph->n_tensor && q.scale > 0 && q.zero >= 0 && q.zero <= 255);
    c->qparam[tensor] = q;
    c->known[tensor] = true;
}

hp_qparam hp_constants_qparam(const hp_constants *c, int tensor) {
    HP_ASSERT(tensor >= 0 && tensor < c->graph->n_tensor && c->known[tensor]);
    return c->qparam[tensor];
}

void hp_constants_pixels(const hp_constants *c, float scale[4], float zero[4]) {
    for (int i = 0; i < 4; i++) {
        scale[i] = (float)c->pixel_scale[i];
        zero[i] = (float)c->pixel_zero[i];
    }
}

/* --- weights --- */

hp_status hp_constants_filter(hp_constants *c, int layer, int64_t first, int64_t outs, bool quantised,
                              hp_filter *f, hp_error *err) {
    HP_ASSERT(c->graph->layer[layer].n_param > 0);
    const hp_status s =
        (c->stored ? constants_stored : constants_fold)(c, layer, first, outs, quantised, f, err);
    /* everything was copied; keep at most one layer of the file in memory */
    if (c->st) hp_safetensors_release_pages(c->st);
    return s;
}

hp_status hp_constants_param(hp_constants *c, int param, hp_dtype dtype, void *to, hp_error *err) {
    const hp_param *p = &c->graph->param[param];
    double *value = constants_reserve(&c->row, (size_t)p->count * sizeof *value);
    if (c->stored)
        hp_st_to_f64(hp_safetensors_find(c->st, p->name), value);
    else
        constants_read_param(c, param, 0, p->count, value);
    for (int64_t i = 0; i < p->count; i++) {
        if (!isfinite(value[i]))
            return hp_fail(err, HP_EDATA,
                           "%s: %s is not all finite numbers; give weights of a run that did not diverge",
                           c->o.path ? c->o.path : "drawn weights", p->name);
        if (dtype == HP_F64)
            ((double *)to)[i] = value[i];
        else
            ((float *)to)[i] = (float)value[i];
    }
    if (c->st) hp_safetensors_release_pages(c->st);
    return HP_OK;
}

static const float *kept(hp_constants *c, const float *from, int64_t n) {
    if (!from) return NULL;
    float *copy = HP_NEW(c->arena, float, n);
    memcpy(copy, from, (size_t)n * sizeof *copy);
    return copy;
}

void hp_constants_set_factors(hp_constants *c, int layer, const float *in, const float *out) {
    const hp_layer *l = &c->graph->layer[layer];
    HP_ASSERT(!c->stored && (!in || (l->op != HP_BN && l->op != HP_SCALE)));
    c->change[layer].in = kept(c, in, c->graph->tensor[l->in[0]].c);
    c->change[layer].out = kept(c, out, constants_shape_of(c->graph, layer).channels);
}

void hp_constants_set_correction(hp_constants *c, int layer, const float *delta) {
    HP_ASSERT(!c->stored);
    c->change[layer].delta = kept(c, delta, constants_shape_of(c->graph, layer).channels);
}
