/* weights_stored.c - see weights_stored.h. torch.nn.MultiheadAttention stores queries, keys and values in one
 * matrix. So does GPT-2, transposed: (I, O) instead of (O, I). */
#include "exec/data/weights/weights_stored.h"

#include "exec/data/weights/weights_places.h"

#include <stdlib.h>
#include <string.h>

const char *hp_stored_name(const hp_param *p) {
    return p->stored.name ? p->stored.name : p->name;
}

int hp_stored_first(const hp_graph *g, int param) {
    const char *name = g->param[param].stored.name;
    for (int i = 0; name && i < param; i++)
        if (g->param[i].stored.name && strcmp(g->param[i].stored.name, name) == 0) return i;
    return param;
}

static hp_st_expected expected_of(const hp_param *p) {
    const bool own = p->stored.n_dim == 0;
    hp_st_expected e = {
        .name = hp_stored_name(p), .dtype = HP_ST_ANY_REAL, .n_dim = own ? p->n_dim : p->stored.n_dim};
    memcpy(e.dim, own ? p->dim : p->stored.dim, sizeof e.dim);
    return e;
}

int hp_stored_expected(const hp_graph *g, hp_st_expected *want) {
    int n = 0;
    for (int i = 0; i < g->n_param; i++)
        if (hp_stored_first(g, i) == i) want[n++] = expected_of(&g->param[i]);
    return n;
}

int hp_stored_accepted(const hp_safetensors *st, const hp_graph *g, hp_st_expected *want) {
    const int n = hp_stored_expected(g, want);
    for (int i = 0, at = 0; i < g->n_param; i++) {
        if (hp_stored_first(g, i) != i) continue;
        const hp_st_tensor *t = hp_safetensors_find(st, want[at].name);
        if (hp_places_stretch(t, g, i)) want[at].dim[1] = (int32_t)t->dim[1];
        at++;
    }
    return n;
}

/* Index in the file's tensor of an element of a transposed parameter: the tensor is (columns, rows). */
static int64_t turned_at(const hp_param *p, int64_t element) {
    const int64_t at = p->stored.first + element, cols = p->stored.dim[0], rows = p->stored.dim[1];
    return at % cols * rows + at / cols;
}

static void convert(const hp_st_tensor *t, hp_dtype dtype, void *to, int64_t at) {
    if (dtype == HP_F32)
        hp_st_to_f32(t, (float *)to + at);
    else
        hp_st_to_f64(t, (double *)to + at);
}

static void read_stretched(const hp_st_tensor *t, const hp_graph *g, int param, int64_t first, int64_t count,
                           hp_dtype dtype, void *to) {
    for (int64_t i = 0; i < count; i++) {
        double v;
        hp_places_read(t, g, param, first + i, 1, &v);
        if (dtype == HP_F32)
            ((float *)to)[i] = (float)v;
        else
            ((double *)to)[i] = v;
    }
}

void hp_stored_read(const hp_safetensors *st, const hp_graph *g, int param, int64_t first, int64_t count,
                    hp_dtype dtype, void *to) {
    const hp_param *p = &g->param[param];
    const hp_st_tensor *t = hp_safetensors_find(st, hp_stored_name(p));
    if (hp_places_stretch(t, g, param)) {
        read_stretched(t, g, param, first, count, dtype, to);
        return;
    }
    if (!p->stored.turned) {
        const hp_st_tensor slice = hp_st_slice(t, p->stored.first + first, count);
        convert(&slice, dtype, to, 0);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const hp_st_tensor one = hp_st_slice(t, turned_at(p, first + i), 1);
        convert(&one, dtype, to, i);
    }
}

void hp_stored_read_apart(const hp_safetensors *st, const hp_graph *g, int param, int64_t first,
                          int64_t count, int64_t step, double *to) {
    const hp_param *p = &g->param[param];
    const hp_st_tensor *t = hp_safetensors_find(st, hp_stored_name(p));
    HP_ASSERT(!hp_places_stretch(t, g, param));
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = first + i * step;
        const hp_st_tensor one =
            hp_st_slice(t, p->stored.turned ? turned_at(p, at) : p->stored.first + at, 1);
        hp_st_to_f64(&one, &to[i]);
    }
}

bool hp_stored_fits(const hp_safetensors *st, const hp_graph *g, int param) {
    const hp_st_expected e = expected_of(&g->param[param]);
    const hp_st_tensor *t = hp_safetensors_find(st, e.name);
    int64_t count = 1;
    for (int d = 0; d < e.n_dim; d++) count *= e.dim[d];
    return t && hp_st_is_real(t) && (t->count == count || hp_places_stretch(t, g, param));
}

/* --- writing --- */

struct hp_stored_writer {
    const hp_graph *g;
    const hp_weights_source *source;
    size_t element;
    unsigned char **kept; /* per parameter: a copy until its tensor is written */
    int next;             /* next parameter to take */
    unsigned char *whole;
};

hp_stored_writer *hp_stored_writer_new(hp_arena *arena, const hp_graph *g, hp_dtype dtype,
                                       const hp_weights_source *source) {
    hp_stored_writer *w = HP_NEW(arena, hp_stored_writer, 1);
    *w = (hp_stored_writer){.g = g,
                            .source = source,
                            .element = (size_t)hp_dtype_bytes(dtype),
                            .kept = HP_NEW(arena, unsigned char *, g->n_param + 1)};
    return w;
}

void hp_stored_writer_free(hp_stored_writer *w) {
    for (int i = 0; i < w->g->n_param; i++) free(w->kept[i]);
    free(w->whole);
}

static unsigned char *room(size_t bytes) {
    unsigned char *p = malloc(bytes + 1);
    HP_ASSERT(p);
    return p;
}

/* Takes parameters up to `param`, so that all ranks provide them in the same order. */
static bool take(hp_stored_writer *w, int param, hp_error *err) {
    for (; w->next <= param; w->next++) {
        const size_t bytes = (size_t)w->g->param[w->next].count * w->element;
        const void *from = w->source->get(w->source->self, w->next, err);
        if (!from) return false;
        w->kept[w->next] = room(bytes);
        memcpy(w->kept[w->next], from, bytes);
    }
    return true;
}

static void put(const hp_stored_writer *w, int param) {
    const hp_param *p = &w->g->param[param];
    if (!p->stored.turned) {
        memcpy(w->whole + (size_t)p->stored.first * w->element, w->kept[param],
               (size_t)p->count * w->element);
        return;
    }
    for (int64_t i = 0; i < p->count; i++)
        memcpy(w->whole + (size_t)turned_at(p, i) * w->element, w->kept[param] + (size_t)i * w->element,
               w->element);
}

const void *hp_stored_bytes(hp_stored_writer *w, int param, hp_error *err) {
    const hp_graph *g = w->g;
    const hp_st_expected e = expected_of(&g->param[param]);
    size_t bytes = w->element;
    if (!g->param[param].stored.n_dim && param == w->next)
        return w->source->get(w->source->self, w->next++, err);
    for (int d = 0; d < e.n_dim; d++) bytes *= (size_t)e.dim[d];
    free(w->whole);
    w->whole = room(bytes);
    for (int i = param; i < g->n_param; i++) {
        if (hp_stored_first(g, i) != param) continue;
        if (!take(w, i, err)) return NULL;
        put(w, i);
        free(w->kept[i]);
        w->kept[i] = NULL;
    }
    return w->whole;
}
