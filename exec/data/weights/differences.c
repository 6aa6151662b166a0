/* differences.c - compares names, shapes and types of a safetensors file with the expected ones; see
 * differences.h. */
#include "exec/data/weights/weights_stored.h"

#include "base/arena.h"

#include <stdarg.h>
#include <string.h>

enum { SHOWN = 3 }; /* missing or different tensors, and as many unexpected ones */

static void add_difference(hp_differences *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_difference(hp_differences *d, const char *fmt, ...) {
    const char *comma = d->n++ > 0 ? ", " : "";
    if (d->shown > SHOWN) return;
    va_list ap;
    va_start(ap, fmt);
    size_t room = sizeof d->text - d->used;
    int n = snprintf(d->text + d->used, room, "%s", comma);
    n += d->shown++ == SHOWN ? snprintf(d->text + d->used + n, room - (size_t)n, "...")
                             : vsnprintf(d->text + d->used + n, room - (size_t)n, fmt, ap);
    va_end(ap);
    /* fits: two times 3 names of 63, 2 shapes of 4 + 8 numbers cut below */
    HP_ASSERT(n >= 0 && (size_t)n < room);
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

static bool same_type(const hp_st_tensor *t, int dtype) {
    return dtype == HP_ST_ANY_REAL ? hp_st_is_real(t) : t->dtype == dtype;
}

static void compare_tensor(const hp_safetensors *st, const hp_st_expected *e, hp_differences *d) {
    char name[64], have[32], want[32];
    int64_t dim[4];
    for (int i = 0; i < e->n_dim; i++) dim[i] = e->dim[i];
    const hp_st_tensor *t = hp_safetensors_find(st, e->name);
    hp_st_printable(e->name, name);
    if (!t)
        add_difference(d, "%s is missing", name);
    else if (!same_shape(t, dim, e->n_dim))
        add_difference(d, "%s is %s, not %s", name, shape_text(t->dim, t->n_dim, have),
                       shape_text(dim, e->n_dim, want));
    else if (!same_type(t, e->dtype))
        add_difference(d, "%s is %s, not %s", name, hp_st_infos[t->dtype].name,
                       e->dtype == HP_ST_ANY_REAL ? "floating point" : hp_st_infos[e->dtype].name);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What state dicts contain beside parameters: counters, indices of biases, attention masks. */
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
        const char *const full = hp_safetensors_tensor(st, i)->name, *name = full;
        char shown[64];
        if (is_constant(name) || !(name = hp_safetensors_own_name(st, name)) ||
            bsearch(&name, known, (size_t)n, sizeof *known, by_text))
            continue;
        add_difference(d, "%s is not in the network", hp_st_printable(full, shown));
    }
    hp_arena_free(a);
}

void hp_st_differences(const hp_safetensors *st, const hp_st_expected *want, int n, hp_differences *d) {
    for (int i = 0; i < n; i++) compare_tensor(st, &want[i], d);
    d->shown = 0;
    compare_extra(st, want, n, d);
}

bool hp_st_has(const hp_safetensors *st, const hp_st_expected *want, int n) {
    hp_differences d = {0};
    for (int i = 0; i < n && d.n == 0; i++) compare_tensor(st, &want[i], &d);
    return d.n == 0;
}
