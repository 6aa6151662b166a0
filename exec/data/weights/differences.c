/* differences.c - compares names, shapes and types of a safetensors file with the expected ones; see
 * differences.h. */
#include "exec/data/weights/stored.h"

#include "plan/base/arena.h"

#include <stdarg.h>
#include <string.h>

enum { SHOWN = 4 };

static void add_difference(hp_differences *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_difference(hp_differences *d, const char *fmt, ...) {
    if (d->n++ >= SHOWN) return;
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(d->text + d->used, sizeof d->text - d->used, fmt, ap);
    va_end(ap);
    /* fits: 4 names of 63, 2 shapes of 4 + 8 numbers cut below */
    HP_ASSERT(n >= 0 && (size_t)n < sizeof d->text - d->used);
    d->used += (size_t)n;
}

const char *hp_differences_ellipsis(const hp_differences *d) {
    return d->n > SHOWN ? ", ..." : "";
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

static bool same_type(const hp_st_tensor *t, int dtype) {
    return dtype == HP_ST_ANY_REAL ? hp_st_is_real(t) : t->dtype == dtype;
}

static void compare_tensor(const hp_safetensors *st, const hp_st_expected *e, hp_differences *d) {
    char name[64], have[32], want[32];
    int64_t dim[4];
    for (int i = 0; i < e->n_dim; i++) dim[i] = e->dim[i];
    const hp_st_tensor *t = hp_safetensors_find(st, e->name);
    const char *comma = d->n ? ", " : "";
    hp_st_printable(e->name, name);
    if (!t)
        add_difference(d, "%s%s is missing", comma, name);
    else if (!same_shape(t, dim, e->n_dim))
        add_difference(d, "%s%s is %s, not %s", comma, name, shape_text(t->dim, t->n_dim, have),
                       shape_text(dim, e->n_dim, want));
    else if (!same_type(t, e->dtype))
        add_difference(d, "%s%s is %s, not %s", comma, name, hp_st_infos[t->dtype].name,
                       e->dtype == HP_ST_ANY_REAL ? "floating point" : hp_st_infos[e->dtype].name);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What state dicts have beside parameters: counters, the places of biases, masks of attention. */
static bool is_constant(const char *name) {
    static const char *const ends[] = {".num_batches_tracked", ".relative_position_index", ".attn.bias",
                                       ".attn.masked_bias"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return true;
    return false;
}

static void compare_extra(const hp_safetensors *st, const hp_st_expected *want, int n, hp_differences *d) {
    hp_arena *a = hp_arena_new();
    const char **known = HP_NEW(a, const char *, n + 1);
    for (int i = 0; i < n; i++) known[i] = want[i].name;
    if (n) qsort(known, (size_t)n, sizeof *known, by_text);
    for (int i = 0; i < hp_safetensors_count(st); i++) {
        const char *name = hp_safetensors_tensor(st, i)->name;
        char shown[64];
        if (is_constant(name) || bsearch(&name, known, (size_t)n, sizeof *known, by_text)) continue;
        add_difference(d, "%s%s is not in the network", d->n ? ", " : "", hp_st_printable(name, shown));
    }
    hp_arena_free(a);
}

void hp_st_differences(const hp_safetensors *st, const hp_st_expected *want, int n, hp_differences *d) {
    for (int i = 0; i < n; i++) compare_tensor(st, &want[i], d);
    compare_extra(st, want, n, d);
}

hp_status hp_weights_compare(const char *path, const hp_safetensors *st, const hp_graph *g, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_st_expected *want = HP_NEW(a, hp_st_expected, g->n_param + 1);
    hp_differences d = {0};
    hp_st_differences(st, want, hp_stored_accepted(st, g, want), &d);
    hp_arena_free(a);
    if (d.n == 0) return HP_OK;
    return hp_fail(
        err, HP_EDATA,
        "%s does not hold the weights of %s with %d classes: %s%s (%d in all); give weights of this network, "
        "or simulate with the --net and --classes of the file",
        path, g->net, g->classes, d.text, hp_differences_ellipsis(&d), d.n);
}
