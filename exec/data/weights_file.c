/* weights_file.c - weights from and to safetensors files, by torchvision's state-dict names; see weights.h.
 */
#include "exec/data/safetensors.h"
#include "exec/data/weights.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* The first differences between file and network, in words. */
typedef struct differences {
    int n;
    size_t used;
    char text[640];
} differences;

enum { SHOWN = 4 };

static void differ(differences *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void differ(differences *d, const char *fmt, ...) {
    if (d->n++ >= SHOWN) return;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(d->text + d->used, sizeof d->text - d->used, fmt, ap);
    va_end(ap);
    HP_ASSERT(n >= 0 &&
              (size_t)n < sizeof d->text - d->used); /* 4 names of 63, 2 shapes of 4 + 8 numbers cut below */
    d->used += (size_t)n;
}

/* "64x3x7x7", at most 31 characters. */
static const char *shape_text(const int64_t *dim, int n, char out[32]) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n && used < 31; i++) {
        const int k = snprintf(out + used, 32 - used, i ? "x%lld" : "%lld", (long long)dim[i]);
        used = used + (size_t)k < 31 ? used + (size_t)k : 31;
    }
    return n ? out : "scalar";
}

static bool same_shape(const hp_st_tensor *t, const int64_t *dim, int n) {
    if (t->n_dim != n) return false;
    for (int i = 0; i < n; i++)
        if (t->dim[i] != dim[i]) return false;
    return true;
}

static void compare_param(const hp_safetensors *st, const hp_param *p, differences *d) {
    char name[64], have[32], want[32];
    int64_t dim[4];
    for (int i = 0; i < p->n_dim; i++) dim[i] = p->dim[i];
    const hp_st_tensor *t = hp_safetensors_find(st, p->name);
    hp_st_printable(p->name, name);
    if (!t)
        differ(d, "%s%s is missing", d->n ? ", " : "", name);
    else if (!same_shape(t, dim, p->n_dim))
        differ(d, "%s%s is %s, not %s", d->n ? ", " : "", name, shape_text(t->dim, t->n_dim, have),
               shape_text(dim, p->n_dim, want));
    else if (!hp_st_is_real(t))
        differ(d, "%s%s is %s, not floating point", d->n ? ", " : "", name, hp_st_infos[t->dtype].name);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void compare_extra(const hp_safetensors *st, const hp_graph *g, differences *d) {
    hp_arena *a = hp_arena_new();
    const char **known = HP_NEW(a, const char *, g->n_param + 1);
    for (int32_t i = 0; i < g->n_param; i++) known[i] = g->param[i].name;
    if (g->n_param) qsort(known, (size_t)g->n_param, sizeof *known, by_text);
    for (int i = 0; i < hp_safetensors_count(st); i++) {
        const char *name = hp_safetensors_tensor(st, i)->name;
        char shown[64];
        if (ends_with(name, ".num_batches_tracked") ||
            bsearch(&name, known, (size_t)g->n_param, sizeof *known, by_text))
            continue;
        differ(d, "%s%s is not in the network", d->n ? ", " : "", hp_st_printable(name, shown));
    }
    hp_arena_free(a);
}

static hp_status compare(const char *path, const hp_safetensors *st, const hp_graph *g, hp_error *err) {
    differences d = {0};
    for (int32_t i = 0; i < g->n_param; i++) compare_param(st, &g->param[i], &d);
    compare_extra(st, g, &d);
    if (d.n == 0) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s does not hold the weights of %s with %d classes: %s%s (%d in all); give weights of this network, "
        "or simulate with the --net and --classes of the file",
        path, g->net, g->classes, d.text, d.n > SHOWN ? ", ..." : "", d.n);
}

static bool all_finite(hp_dtype dtype, const void *value, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(dtype == HP_F32 ? (double)((const float *)value)[i] : ((const double *)value)[i]))
            return false;
    return true;
}

/* Elements first .. first+count-1 of the tensor, as one of its own. */
static hp_st_tensor slice_of(const hp_st_tensor *t, int64_t first, int64_t count) {
    HP_ASSERT(first >= 0 && count >= 0 && first + count <= t->count);
    hp_st_tensor slice = *t;
    slice.n_dim = 1;
    slice.dim[0] = slice.count = count;
    slice.data = t->data + first * hp_st_infos[t->dtype].bytes;
    return slice;
}

/* `to` is the start of the parameter's place. */
static hp_status take(hp_dtype dtype, const hp_st_tensor *t, void *to, const char *path, hp_error *err) {
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
    hp_status s = compare(path, st, w->graph, err);
    for (int32_t i = 0; s == HP_OK && i < w->graph->n_param; i++) {
        const hp_param *p = &w->graph->param[i];
        const hp_param_place *at = &w->role->place[i];
        if (!at->here) continue;
        const bool trained = hp_param_trained(p);
        char *to = (char *)(trained ? w->weights : w->state) + at->offset * hp_dtype_bytes(w->dtype);
        const hp_st_tensor slice = slice_of(hp_safetensors_find(st, p->name), at->first, at->count);
        s = take(w->dtype, &slice, to, path, err);
        if (!trained && !hp_weights_start(w, at))
            memset(to, 0, (size_t)(at->count * hp_dtype_bytes(w->dtype)));
    }
    hp_safetensors_close(st);
    return s;
}

/* The file's tensors: the counters first (8-byte data), then the parameters in the graph's order. */
typedef struct writing {
    int n_counter;
    int64_t batches;
    const hp_weights_source *source;
} writing;

static const void *data_of(void *self, int i, hp_error *err) {
    writing *w = self;
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
    writing w = {.batches = batches, .source = source};
    for (int32_t i = 0; i < g->n_param; i++)
        if (g->param[i].kind == HP_PARAM_BN_MEAN) tensor[w.n_counter++] = counter_of(a, &g->param[i]);
    for (int32_t i = 0; i < g->n_param; i++) tensor[w.n_counter + i] = tensor_of(&g->param[i], dtype);
    const hp_st_source bytes = {data_of, &w};
    const hp_status s = hp_safetensors_write(path, tensor, w.n_counter + g->n_param, &bytes, err);
    hp_arena_free(a);
    return s;
}
