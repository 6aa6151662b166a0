/* opset23.c - opset 23 nodes that are whole layers: RMSNormalization, and Attention, which is read as the
 * nodes that exporters wrote before (onnx_tokens_attention.c, onnx_tokens_masks.c). */
#include "networks/onnx/tokens/terms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- Attention --- */

enum { Q, K, V, MASK, PAST_K, PAST_V, LENGTHS };

/* The value with the view `w`, its dimensions permuted. */
static void permuted(const onnx_call *c, onnx_value *out, const onnx_value *x, onnx_view w,
                     const int perm[4]) {
    int64_t dim[4];
    for (int d = 0; d < 4; d++) dim[d] = x->dim[perm[d]];
    onnx_view_permute(&w, perm, 4);
    onnx_result_view(c, out, x, &w, 4, dim);
}

/* Input k as (N, heads, L, d). With three dimensions, the last holds the heads' channels, head by head. */
static hp_status by_heads(const onnx_call *c, int k, const char *count, onnx_value *out) {
    static const int to_front[4] = {0, 2, 1, 3};
    onnx_value *x;
    onnx_view w;
    int64_t heads = 0;
    HP_TRY(onnx_need_view(c, k, &x));
    HP_TRY(onnx_attr_int(c, count, 1, ONNX_MOST_SIZE, &heads));
    *out = *x;
    if (x->n_dim == 4) return HP_OK;
    if (x->n_dim != 3 || heads == 0)
        return onnx_fail(c, "its input %d must have 4 dimensions, or 3 and the attribute %s", k + 1, count);
    if (x->dim[2] % heads)
        return onnx_fail(c, "%s = %" PRId64 " does not divide %" PRId64 " channels", count, heads, x->dim[2]);
    const int64_t dim[4] = {x->dim[0], x->dim[1], heads, x->dim[2] / heads};
    if (!onnx_view_of(c->r, x, &w) || !onnx_view_reshape(&w, dim, 4))
        return onnx_fail(
            c, "its input %d cannot be cut into heads, as its last dimension is not the channels", k + 1);
    onnx_value cut = *x;
    cut.n_dim = 4;
    memcpy(cut.dim, dim, sizeof dim);
    permuted(c, out, &cut, w, to_front);
    return HP_OK;
}

static hp_status refuse_parts(const onnx_call *c) {
    static const struct {
        int input;
        const char *name;
    } parts[] = {{PAST_K, "past_key"}, {PAST_V, "past_value"}, {LENGTHS, "nonpad_kv_seqlen"}};
    double softcap = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (onnx_in(c, parts[i].input))
            return onnx_fail(c, "its input %s is not supported: export attention over whole sequences",
                             parts[i].name);
    HP_TRY(onnx_attr_float(c, "softcap", &softcap));
    if (softcap != 0) return onnx_fail(c, "attribute softcap = %g is not supported: only 0", softcap);
    return HP_OK;
}

/* Converts a boolean mask (true: visible) to numbers to add. */
static hp_status mask_floats(const onnx_call *c, const onnx_const *k, onnx_const *out) {
    *out = *k;
    if (k->type != ONNX_BOOL || !k->data) return HP_OK;
    HP_TRY(onnx_spend(c, 4 * k->count));
    float *f = HP_NEW(c->r->scratch, float, k->count);
    for (int64_t i = 0; i < k->count; i++) f[i] = onnx_integer(k, i) ? 0 : -INFINITY;
    out->type = ONNX_FLOAT;
    out->data = f;
    return HP_OK;
}

/* Queries times keys, scaled and masked, up to the softmax. */
static hp_status read_scores(onnx_call *c, onnx_value *q, const onnx_value *k, onnx_value *scores) {
    static const int turn[4] = {0, 1, 3, 2};
    onnx_value keys = *k, *const pair[2] = {q, &keys};
    const onnx_const *given = NULL;
    onnx_call part = *c;
    onnx_view w;
    bool fits = true;
    double scale = 1 / sqrt((double)q->dim[3]);
    int64_t causal = 0;
    HP_TRY(onnx_attr_float(c, "scale", &scale));
    HP_TRY(onnx_attr_int(c, "is_causal", 0, 1, &causal));
    if (!isfinite(scale)) return onnx_fail(c, "its scale is not finite");
    if (!onnx_view_of(c->r, k, &w)) return onnx_fail(c, "its keys are cut in a way that is not supported");
    permuted(c, &keys, k, w, turn);
    *scores = (onnx_value){.name = c->out->name, .producer = c->out->producer};
    part.out = scores;
    HP_TRY(onnx_term_scores(&part, pair, &fits));
    onnx_term t = *scores->term;
    t.factor *= scale;
    onnx_term_result(&part, ONNX_SCORES, scores, t);
    if (causal) HP_TRY(onnx_term_hide_later(&part, scores));
    if (!onnx_in(c, MASK)) return HP_OK;
    HP_TRY(onnx_need_const(c, MASK, "attn_mask", &given));
    onnx_value *mask = HP_NEW(c->r->scratch, onnx_value, 1), *const masked[2] = {scores, mask};
    mask->kind = ONNX_CONST;
    HP_TRY(mask_floats(c, given, &mask->c));
    return onnx_term_plus_mask(&part, masked, &fits);
}

/* (N, heads, L, d) back to (N, L, heads d). */
static hp_status join_heads(const onnx_call *c, onnx_value *y) {
    static const int to_back[4] = {0, 2, 1, 3};
    const int64_t dim[3] = {y->dim[0], y->dim[2], y->dim[1] * y->dim[3]};
    onnx_view w;
    if (!onnx_view_of(c->r, y, &w)) return onnx_fail(c, "its heads cannot be joined");
    permuted(c, y, y, w, to_back);
    if (!onnx_view_of(c->r, y, &w) || !onnx_view_reshape(&w, dim, 3))
        return onnx_fail(c, "its heads cannot be joined");
    onnx_result_view(c, y, y, &w, 3, dim);
    return HP_OK;
}

hp_status onnx_read_attention(onnx_call *c) {
    onnx_value q, k, v, scores, *const parts[2] = {&scores, &v};
    bool fits = true;
    HP_TRY(refuse_parts(c));
    HP_TRY(by_heads(c, Q, "q_num_heads", &q));
    HP_TRY(by_heads(c, K, "kv_num_heads", &k));
    HP_TRY(by_heads(c, V, "kv_num_heads", &v));
    HP_TRY(read_scores(c, &q, &k, &scores));
    HP_TRY(onnx_term_attention(c, parts, &fits));
    return onnx_in(c, Q)->n_dim == 3 ? join_heads(c, c->out) : HP_OK;
}

/* --- RMSNormalization --- */

hp_status onnx_read_rmsnorm(onnx_call *c) {
    onnx_value *x;
    const onnx_const *gamma;
    double eps = (double)1e-5F;
    int64_t given = -1;
    int axis;
    int32_t y;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(onnx_need_const(c, 1, "scale", &gamma));
    HP_TRY(onnx_attr_float(c, "epsilon", &eps));
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (axis != x->n_dim - 1 || !onnx_is_channel_dim(c->r, x, axis))
        return onnx_fail(c, "normalises something else than the channels, its last dimension");
    if (!(eps >= 0 && eps < 1e30)) return onnx_fail(c, "its epsilon is not valid");
    if (gamma->count != channels)
        return onnx_fail(c, "its scale has %" PRId64 " numbers for %" PRId64 " channels", gamma->count,
                         channels);
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_RMSNORM, .n_in = 1, .in = {x->tensor}, .eps = eps}, 0, &y));
    HP_TRY(onnx_emit_param(c, HP_PARAM_BN_GAMMA, gamma->name, "weight", 1, &channels, channels,
                           (hp_onnx_param){onnx_floats(c, gamma)}));
    onnx_result_like(c, y, x);
    return HP_OK;
}
