/* file.c - reads and writes weights as safetensors files with torchvision's state-dict names; see
 * weights.h. */
#include "exec/data/weights/differences.h"
#include "exec/data/weights/weights.h"

#include <math.h>
#include <string.h>

static bool all_finite(hp_dtype dtype, const void *value, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(dtype == HP_F32 ? (double)((const float *)value)[i] : ((const double *)value)[i]))
            return false;
    return true;
}

/* `to`: the start of the parameter's place. */
static hp_status convert_tensor(hp_dtype dtype, const hp_st_tensor *t, void *to, const char *path,
                                hp_error *err) {
    char name[64];
    if (dtype == HP_F32)
        hp_st_to_f32(t, to);
    else
        hp_st_to_f64(t, to);
    if (all_finite(dtype, to, t->count)) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s: tensor '%s' holds a value that is not a finite number; give weights of a run that did "
        "not diverge",
        path, hp_st_printable(t->name, name));
}

hp_status hp_weights_load(const char *path, const hp_weights *w, hp_error *err) {
    HP_ASSERT(w->dtype == HP_F32 || w->dtype == HP_F64);
    hp_safetensors *st;
    HP_TRY(hp_safetensors_open(path, &st, err));
    hp_status s = hp_weights_compare(path, st, w->graph, err);
    for (int32_t i = 0; s == HP_OK && i < w->graph->n_param; i++) {
        const hp_param *p = &w->graph->param[i];
        const hp_param_place *at = &w->role->place[i];
        if (!at->here) continue;
        const bool trained = hp_param_trained(p);
        char *to = (char *)(trained ? w->weights : w->state) + at->offset * hp_dtype_bytes(w->dtype);
        const hp_st_tensor slice = hp_st_slice(hp_safetensors_find(st, p->name), at->first, at->count);
        s = convert_tensor(w->dtype, &slice, to, path, err);
        if (!trained && !hp_weights_start(w, at))
            memset(to, 0, (size_t)(at->count * hp_dtype_bytes(w->dtype)));
    }
    hp_safetensors_close(st);
    return s;
}

/* The file's tensors: the counters first (8-byte data), then the parameters in the graph's order. */
typedef struct weight_writer {
    int n_counter;
    int64_t batches;
    const hp_weights_source *source;
} weight_writer;

static const void *data_of(void *self, int i, hp_error *err) {
    weight_writer *w = self;
    return i < w->n_counter ? (const void *)&w->batches
                            : w->source->get(w->source->self, i - w->n_counter, err);
}

static hp_st_tensor counter_of(hp_arena *a, const hp_param *mean) {
    const char *dot = strrchr(mean->name, '.');
    const int length = dot ? (int)(dot - mean->name) : 0;
    return (hp_st_tensor){
        .name = hp_arena_printf(a, "%.*s%snum_batches_tracked", length, mean->name, dot ? "." : ""),
        .dtype = HP_ST_I64};
}

static hp_st_tensor tensor_of(const hp_param *p, hp_dtype dtype) {
    hp_st_tensor t = {.name = p->name, .dtype = dtype == HP_F64 ? HP_ST_F64 : HP_ST_F32, .n_dim = p->n_dim};
    for (int i = 0; i < p->n_dim; i++) t.dim[i] = p->dim[i];
    return t;
}

hp_status hp_weights_save(const char *path, const hp_graph *g, hp_dtype dtype,
                          const hp_weights_source *source, int64_t batches, hp_error *err) {
    HP_ASSERT(dtype == HP_F32 || dtype == HP_F64);
    hp_arena *a = hp_arena_new();
    hp_st_tensor *tensor = HP_NEW(a, hp_st_tensor, 2 * g->n_param + 1);
    weight_writer w = {.batches = batches, .source = source};
    for (int32_t i = 0; i < g->n_param; i++)
        if (g->param[i].kind == HP_PARAM_BN_MEAN) tensor[w.n_counter++] = counter_of(a, &g->param[i]);
    for (int32_t i = 0; i < g->n_param; i++) tensor[w.n_counter + i] = tensor_of(&g->param[i], dtype);
    const hp_st_source bytes = {.data = data_of, .self = &w};
    const hp_status s = hp_safetensors_write(path, tensor, w.n_counter + g->n_param, &bytes, err);
    hp_arena_free(a);
    return s;
}
