/* weights_file.c - reads and writes weights as safetensors files with torchvision's state-dict names; see
 * weights.h. */
#include "exec/data/weights/weights_stored.h"

#include <math.h>
#include <string.h>

static bool all_finite(hp_dtype dtype, const void *value, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(dtype == HP_F32 ? (double)((const float *)value)[i] : ((const double *)value)[i]))
            return false;
    return true;
}

/* `to`: where the parameter's place starts. */
static hp_status read_param(const hp_safetensors *st, const hp_weights *w, int param, void *to,
                            const char *path, hp_error *err) {
    const hp_param *p = &w->graph->param[param];
    const hp_param_place *at = &w->role->place[param];
    char name[64];
    hp_stored_read(st, w->graph, param, at->first, at->count, w->dtype, to);
    if (all_finite(w->dtype, to, at->count)) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s: tensor '%s' holds a value that is not a finite number; give weights of a run that did "
        "not diverge",
        path, hp_st_printable(hp_stored_name(p), name));
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
        s = read_param(st, w, i, to, path, err);
        if (!trained && !hp_weights_start(w, at))
            memset(to, 0, (size_t)(at->count * hp_dtype_bytes(w->dtype)));
    }
    hp_safetensors_close(st);
    return s;
}

/* The file's tensors: the counters first (8-byte data), then the parameters in the graph's order. */
typedef struct weight_writer {
    int n_counter, n_index;
    int64_t batches;
    const hp_graph *g;
    int32_t *param;  /* per tensor after the counters: the first parameter in it */
    int32_t *index;  /* per index: its table */
    int64_t *places; /* memory for an index */
    hp_stored_writer *stored;
} weight_writer;

static const hp_layer *attention_of(const weight_writer *w, int i) {
    return &w->g->layer[w->g->param[w->index[i]].layer];
}

static int64_t window_pixels(const hp_layer *l) {
    return (int64_t)l->window.kh * l->window.kw;
}

/* torchvision's relative_position_index: the table's row for each query and key of a window. */
static const void *index_of(weight_writer *w, int i) {
    const hp_layer *l = attention_of(w, i);
    const int64_t n = window_pixels(l);
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++)
            w->places[q * n + k] =
                (q / l->window.kw - k / l->window.kw + l->window.kh - 1) * (2 * l->window.kw - 1) +
                q % l->window.kw - k % l->window.kw + l->window.kw - 1;
    return w->places;
}

static const void *data_of(void *self, int i, hp_error *err) {
    weight_writer *w = self;
    if (i < w->n_counter) return &w->batches;
    if (i < w->n_counter + w->n_index) return index_of(w, i - w->n_counter);
    return hp_stored_bytes(w->stored, w->param[i - w->n_counter - w->n_index], err);
}

/* Replaces the last component of a name: "layer.weight" and "other" give "layer.other". */
static const char *beside(hp_arena *a, const char *name, const char *other) {
    const char *dot = strrchr(name, '.');
    const int length = dot ? (int)(dot - name) : 0;
    return hp_arena_printf(a, "%.*s%s%s", length, name, dot ? "." : "", other);
}

static hp_st_tensor counter_of(hp_arena *a, const hp_param *mean) {
    return (hp_st_tensor){.name = beside(a, mean->name, "num_batches_tracked"), .dtype = HP_ST_I64};
}

static hp_st_tensor tensor_of(const hp_st_expected *e, hp_dtype dtype) {
    hp_st_tensor t = {.name = e->name, .dtype = dtype == HP_F64 ? HP_ST_F64 : HP_ST_F32, .n_dim = e->n_dim};
    for (int i = 0; i < e->n_dim; i++) t.dim[i] = e->dim[i];
    return t;
}

static void add_indices(hp_arena *a, weight_writer *w, hp_st_tensor *tensor) {
    const hp_graph *g = w->g;
    int64_t most = 0;
    w->index = HP_NEW(a, int32_t, g->n_param + 1);
    for (int32_t i = 0; i < g->n_param; i++) {
        if (g->layer[g->param[i].layer].op != HP_ATTENTION) continue;
        const int64_t n = window_pixels(&g->layer[g->param[i].layer]);
        tensor[w->n_index] =
            (hp_st_tensor){.name = beside(a, hp_stored_name(&g->param[i]), "relative_position_index"),
                           .dtype = HP_ST_I64,
                           .n_dim = 1,
                           .dim = {n * n}};
        w->index[w->n_index++] = i;
        most = n * n > most ? n * n : most;
    }
    w->places = HP_NEW(a, int64_t, most + 1);
}

static int add_params(hp_arena *a, weight_writer *w, hp_dtype dtype, hp_st_tensor *tensor) {
    const hp_graph *g = w->g;
    hp_st_expected *want = HP_NEW(a, hp_st_expected, g->n_param + 1);
    const int n = hp_stored_expected(g, want);
    w->param = HP_NEW(a, int32_t, n + 1);
    for (int32_t i = 0, at = 0; i < g->n_param; i++)
        if (hp_stored_first(g, i) == i) w->param[at++] = i;
    for (int i = 0; i < n; i++) tensor[i] = tensor_of(&want[i], dtype);
    return n;
}

hp_status hp_weights_save(const char *path, const hp_graph *g, hp_dtype dtype,
                          const hp_weights_source *source, int64_t batches, hp_error *err) {
    HP_ASSERT(dtype == HP_F32 || dtype == HP_F64);
    hp_arena *a = hp_arena_new();
    hp_st_tensor *tensor = HP_NEW(a, hp_st_tensor, 2 * g->n_param + 1);
    weight_writer w = {.batches = batches, .g = g, .stored = hp_stored_writer_new(a, g, dtype, source)};
    for (int32_t i = 0; i < g->n_param; i++)
        if (g->param[i].kind == HP_PARAM_BN_MEAN) tensor[w.n_counter++] = counter_of(a, &g->param[i]);
    add_indices(a, &w, tensor + w.n_counter);
    const int n = add_params(a, &w, dtype, tensor + w.n_counter + w.n_index);
    const hp_st_source bytes = {.data = data_of, .self = &w};
    const hp_status s = hp_safetensors_write(path, tensor, w.n_counter + w.n_index + n, &bytes, err);
    hp_stored_writer_free(w.stored);
    hp_arena_free(a);
    return s;
}
