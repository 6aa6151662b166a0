/* onnx_tokens_masks.c - constants that are added to attention's scores, or replace them: masks that hide
 * later tokens or, in rolled windows, pixels from the other end of the map; biases by relative position. */
#include "networks/onnx/tokens/heads.h"

#include <math.h>

/* Does the constant hide this score, by adding a very low number or by selecting it? */
typedef bool hides(const onnx_const *k, int64_t i);

/* What exporters write for minus infinity; Swin's masks use -100. */
static bool is_low(double v) {
    return v <= -100;
}

static bool adds_low(const onnx_const *k, int64_t i) {
    return is_low(onnx_real(k, i));
}

static bool is_true(const onnx_const *k, int64_t i) {
    return onnx_integer(k, i) != 0;
}

static bool is_false(const onnx_const *k, int64_t i) {
    return onnx_integer(k, i) == 0;
}

/* Scores (.., L, L) and their queries and tokens. */
typedef struct square {
    onnx_heads q, keys;
    int64_t tokens; /* L */
} square;

static bool read_square(const onnx_reader *r, const onnx_value *scores, square *s) {
    const onnx_term *t = scores->term;
    s->tokens = scores->dim[scores->n_dim - 1];
    return scores->dim[scores->n_dim - 2] == s->tokens &&
           onnx_heads_pair(r, &t->x, &t->keys, &s->q, &s->keys) && onnx_heads_ordered(&s->q, &s->keys) &&
           onnx_heads_row_by_row(&s->q);
}

/* --- masks --- */

/* Accepts a mask for all windows alike, or (windows, 1, L, L) before heads. *windows: number of windows it
 * distinguishes; 0: neither form. */
static void read_shape(const onnx_value *scores, const onnx_const *k, const square *s, int64_t samples,
                       int64_t *windows) {
    const int last = k->n_dim - 1, shift = scores->n_dim - k->n_dim;
    int64_t before = 1;
    bool fits = last >= 1 && shift >= 0 && k->dim[last] == s->tokens && k->dim[last - 1] == s->tokens;
    *windows = 1;
    for (int d = 0; d < last - 1 && fits; d++) {
        if (k->dim[d] == 1) continue;
        fits = *windows == 1 && k->dim[d] == s->q.n_window && scores->dim[d + shift] == k->dim[d];
        *windows = k->dim[d];
        for (int e = 0; e < d + shift; e++) before *= scores->dim[e];
        fits &= before == samples;
    }
    if (!fits) *windows = 0;
}

/* Does the shifted window number `k` separate tokens i and j? */
static bool apart(const onnx_reader *r, const square *s, int64_t k, int64_t i, int64_t j) {
    const onnx_heads *q = &s->q;
    const int64_t cols = onnx_extent(r, q->x, HP_AXIS_W) / q->window[HP_AXIS_W], w = q->window[HP_AXIS_W];
    const int64_t at[HP_AXES] = {[HP_AXIS_H] = k / cols, [HP_AXIS_W] = k % cols};
    const int64_t one[HP_AXES] = {[HP_AXIS_H] = i / w, [HP_AXIS_W] = i % w},
                  two[HP_AXES] = {[HP_AXIS_H] = j / w, [HP_AXIS_W] = j % w};
    static const int axes[2] = {HP_AXIS_H, HP_AXIS_W};
    bool differ = false;
    for (int n = 0; n < 2; n++) {
        const int axis = axes[n];
        const int32_t window = (int32_t)q->window[axis], shift = (int32_t)onnx_heads_shift(q, axis),
                      size = (int32_t)onnx_extent(r, q->x, axis);
        const hp_extent a = hp_window_of((int32_t)onnx_heads_place(r, q, axis, at[axis], one[axis]), window,
                                         shift, size),
                        b = hp_window_of((int32_t)onnx_heads_place(r, q, axis, at[axis], two[axis]), window,
                                         shift, size);
        differ |= a.lo != b.lo;
    }
    return differ;
}

static hp_status read_masked(const onnx_call *c, const onnx_value *scores, square *s) {
    if (read_square(c->r, scores, s)) return HP_OK;
    return onnx_fail(c, "masks attention over tokens that are not in one order");
}

hp_status onnx_term_hide_later(onnx_call *c, onnx_value *scores) {
    onnx_term t = *scores->term;
    square s;
    HP_TRY(read_masked(c, scores, &s));
    if (s.q.n_window != 1) return onnx_fail(c, "hides later tokens of a window: not supported");
    t.causal = true;
    onnx_term_result(c, ONNX_SCORES, scores, t);
    return HP_OK;
}

static hp_status add_mask(onnx_call *c, const onnx_value *scores, const onnx_const *k, hides *hidden) {
    onnx_term t = *scores->term;
    square s;
    int64_t windows;
    if (!k->data) return onnx_fail(c, "masks attention by what is not stored");
    HP_TRY(read_masked(c, scores, &s));
    read_shape(scores, k, &s, c->r->batch, &windows);
    if (windows == 0)
        return onnx_fail(c, "its mask is not one of (tokens, tokens) for all heads, nor one for each window");
    HP_TRY(onnx_spend(c, k->count));
    const int64_t n = s.tokens * s.tokens;
    bool none = true, later = s.q.n_window == 1, rolled = windows == s.q.n_window;
    for (int64_t e = 0; e < k->count; e++) {
        const bool hide = hidden(k, e);
        const int64_t i = e % n / s.tokens, j = e % s.tokens;
        none &= !hide;
        later = later && hide == (j > i);
        rolled = rolled && hide == apart(c->r, &s, e / n, i, j);
    }
    if (!none && !later && !rolled)
        return onnx_fail(c,
                         "its mask hides other tokens than those that come later, or that were rolled into a "
                         "window: not supported");
    t.causal |= !none && later;
    t.windowed |= !none && !later;
    onnx_term_result(c, ONNX_SCORES, scores, t);
    return HP_OK;
}

/* --- biases --- */

/* Does it have the shape (.., heads, L, L), with different values per head? */
static bool has_heads(const onnx_const *k, const square *s) {
    const int last = k->n_dim - 1;
    int64_t others = 1;
    for (int d = 0; d < last - 2; d++) others *= k->dim[d];
    return last >= 2 && others == 1 && k->dim[last - 2] == s->q.n && k->dim[last - 1] == s->tokens &&
           k->dim[last] == s->tokens;
}

static bool is_mask(const onnx_const *k) {
    bool mask = k->data != NULL;
    for (int64_t i = 0; mask && i < k->count; i++) mask = onnx_real(k, i) == 0 || adds_low(k, i);
    return mask;
}

hp_status onnx_term_plus_mask(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_const *k = &in[1]->c;
    onnx_term t = *in[0]->term;
    square s;
    (void)fits;
    if (is_mask(k)) return add_mask(c, in[0], k, adds_low);
    if (t.bias || !read_square(c->r, in[0], &s) || !has_heads(k, &s) || in[0]->dim[in[0]->n_dim - 3] != s.q.n)
        return onnx_fail(
            c, "adds to attention's scores what is neither a mask nor a bias of (heads, tokens, tokens) by "
               "relative position");
    t.bias = k;
    onnx_term_result(c, ONNX_SCORES, in[0], t);
    return HP_OK;
}

/* Fills (heads, places): the number for each difference of rows and columns; false if it depends on more than
 * these. */
static bool bias_floats(const onnx_call *c, const onnx_const *k, const onnx_heads *q, float *table) {
    const int64_t w = q->window[HP_AXIS_W], tokens = q->window[HP_AXIS_H] * w, wide = 2 * w - 1,
                  places = (2 * q->window[HP_AXIS_H] - 1) * wide;
    bool *seen = HP_NEW(c->r->scratch, bool, q->n *places);
    for (int64_t e = 0; e < k->count; e++) {
        const int64_t i = e / tokens % tokens, j = e % tokens;
        const int64_t at = e / tokens / tokens * places + (i / w - j / w + q->window[HP_AXIS_H] - 1) * wide +
                           i % w - j % w + w - 1;
        const float v = (float)onnx_real(k, e);
        if (!isfinite(v) || (seen[at] && table[at] != v)) return false;
        seen[at] = true;
        table[at] = v;
    }
    return true;
}

hp_status onnx_emit_bias_table(const onnx_call *c, const onnx_const *k, const onnx_heads *q) {
    const int64_t places = (2 * q->window[HP_AXIS_H] - 1) * (2 * q->window[HP_AXIS_W] - 1),
                  dim[2] = {q->n, places};
    float *table = NULL;
    HP_TRY(onnx_spend(c, q->n * places));
    if (k->data) {
        table = HP_NEW(c->r->arena, float, q->n *places);
        if (!bias_floats(c, k, q, table))
            return onnx_fail(c, "adds a bias that is not by relative position, or not finite: not supported");
    }
    return onnx_emit_param(c, HP_PARAM_TABLE, k->name, "bias", 2, dim, places, (hp_onnx_param){table});
}

/* --- Where --- */

static hp_status where_mask(onnx_call *c, const onnx_value *scores, const onnx_value *choice,
                            const onnx_value *other, hides *hidden) {
    double low = 0;
    if (!onnx_is_number(other, &low) || !is_low(low))
        return onnx_fail(c, "replaces attention's scores by another number than minus infinity");
    return add_mask(c, scores, &choice->c, hidden);
}

hp_status onnx_term_where_hidden(onnx_call *c, onnx_value *const *in, bool *fits) {
    (void)fits;
    return where_mask(c, in[2], in[0], in[1], is_true);
}

hp_status onnx_term_where_seen(onnx_call *c, onnx_value *const *in, bool *fits) {
    (void)fits;
    return where_mask(c, in[1], in[0], in[2], is_false);
}
