/* shape.c - output shapes. Windows are counted as in torch.nn (Conv2d, ConvTranspose2d, MaxPool2d, AvgPool2d,
 * including ceil mode), unless the layer gives their number. */
#include "networks/graph/shape.h"

#include "networks/graph/graph_gather.h"
#include "networks/graph/summands.h"

#include <inttypes.h>

/* Number of windows along one axis; 0 when none fits. In ceil mode the last window may extend beyond the end
 * but must start inside the image or its leading padding (torch, pooling_output_shape). */
static int64_t windows(int64_t in, int k, int stride, int pad, int dil, bool ceil_mode) {
    const int64_t room = in + 2 * (int64_t)pad - (int64_t)dil * (k - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    if (room < 0) return 0;
    const int64_t n = room / stride + 1;
    return ceil_mode && (n - 1) * stride >= in + pad ? n - 1 : n;
}

static hp_status window_shape(const hp_graph *g, const hp_layer *l, int c, hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const int64_t h = windows(x->h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h,
                              l->window.ceil_mode),
                  w = windows(x->w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w,
                              l->window.ceil_mode);
    *out = (hp_tensor){
        .h = l->out_h > 0 ? l->out_h : (int32_t)h, .w = l->out_w > 0 ? l->out_w : (int32_t)w, .c = c};
    if (out->h > 0 && out->w > 0) return HP_OK;
    return hp_fail(err, HP_EPLAN, "layer %s: a %dx%d window does not fit into %dx%d", l->name, l->window.kh,
                   l->window.kw, x->h, x->w);
}

static hp_status check_groups(const hp_graph *g, const hp_layer *l, int out_c, hp_error *err) {
    const int in_c = g->tensor[l->in[0]].c;
    if (l->groups > 0 && in_c % l->groups == 0 && out_c % l->groups == 0) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "layer %s: %d groups do not divide %d inputs and %d outputs", l->name,
                   l->groups, in_c, out_c);
}

/* A tensor added to a convolution's output must have its shape. */
static hp_status check_added(const hp_graph *g, const hp_layer *l, const hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[l->n_in - 1]];
    if (!hp_layer_adds(l) || (x->h == out->h && x->w == out->w && x->c == out->c)) return HP_OK;
    return hp_fail(err, HP_EINTERNAL, "layer %s: adds %dx%dx%d to %dx%dx%d", l->name, x->h, x->w, x->c,
                   out->h, out->w, out->c);
}

static hp_status conv_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    HP_TRY(check_groups(g, l, out_c, err));
    HP_TRY(window_shape(g, l, out_c, out, err));
    return check_added(g, l, out, err);
}

/* Length covered by n windows, less `pad` at both ends. */
static int64_t covered(int64_t n, int k, int stride, int pad, int dil) {
    return (n - 1) * stride - 2 * (int64_t)pad + (int64_t)dil * (k - 1) + 1;
}

static hp_status convt_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const int64_t h = l->out_h > 0
                          ? l->out_h
                          : covered(x->h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h),
                  w = l->out_w > 0
                          ? l->out_w
                          : covered(x->w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w);
    HP_TRY(check_groups(g, l, out_c, err));
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return hp_fail(err, HP_EPLAN, "layer %s: %dx%d becomes %" PRId64 "x%" PRId64, l->name, x->h, x->w, h,
                       w);
    *out = (hp_tensor){.h = (int32_t)h, .w = (int32_t)w, .c = out_c};
    return check_added(g, l, out, err);
}

static hp_status pad_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    (void)out_c;
    const hp_tensor *x = &g->tensor[l->in[0]];
    if (l->window.pad_h < 0 || l->window.pad_w < 0 || l->window.pad_h > l->out_h - x->h ||
        l->window.pad_w > l->out_w - x->w)
        return hp_fail(err, HP_EINTERNAL, "layer %s: %dx%d at %d,%d does not lie in %dx%d", l->name, x->h,
                       x->w, l->window.pad_h, l->window.pad_w, l->out_h, l->out_w);
    *out = (hp_tensor){.h = l->out_h, .w = l->out_w, .c = x->c};
    return HP_OK;
}

/* Does every one of `out` windows overlap the map of length `in`? */
static bool all_inside(int out, int in, int k, int stride, int pad, int dil) {
    return pad <= (int64_t)dil * (k - 1) && (int64_t)(out - 1) * stride - pad < in;
}

static hp_status pool_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    (void)out_c;
    const hp_tensor *x = &g->tensor[l->in[0]];
    if (l->op == HP_AVGPOOL && (l->window.dil_h > 1 || l->window.dil_w > 1))
        return hp_fail(err, HP_EUNAVAIL, "layer %s: mean pooling with dilation", l->name);
    HP_TRY(window_shape(g, l, x->c, out, err));
    if ((l->out_h <= 0 ||
         all_inside(out->h, x->h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h)) &&
        (l->out_w <= 0 ||
         all_inside(out->w, x->w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w)))
        return HP_OK;
    return hp_fail(err, HP_EPLAN, "layer %s: some of %dx%d windows lie beside the %dx%d map", l->name, out->h,
                   out->w, x->h, x->w);
}

static hp_status linear_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                              hp_error *err) {
    const int64_t in = hp_tensor_elems(g, l->in[0]);
    if (in > INT32_MAX)
        return hp_fail(err, HP_EPLAN, "layer %s: %" PRId64 " inputs, at most %d: use a smaller image",
                       l->name, in, INT32_MAX);
    *out = (hp_tensor){.h = 1, .w = 1, .c = out_c};
    return HP_OK;
}

static hp_status sized_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    (void)out_c;
    if (l->out_h < 1 || l->out_w < 1)
        return hp_fail(err, HP_EPLAN, "layer %s: a map of %dx%d", l->name, l->out_h, l->out_w);
    *out = (hp_tensor){.h = l->out_h, .w = l->out_w, .c = g->tensor[l->in[0]].c};
    return HP_OK;
}

static hp_status concat_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                              hp_error *err) {
    (void)out_c;
    *out = g->tensor[l->in[0]];
    for (int i = 1; i < l->n_in; i++) {
        const hp_tensor *x = &g->tensor[l->in[i]];
        if (x->h != out->h || x->w != out->w)
            return hp_fail(err, HP_EINTERNAL, "layer %s: joins %dx%d with %dx%d", l->name, out->h, out->w,
                           x->h, x->w);
        out->c += x->c;
    }
    return HP_OK;
}

static hp_status same_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    (void)out_c;
    *out = g->tensor[l->in[0]];
    for (int i = 1; i < l->n_in; i++) {
        const hp_tensor *x = &g->tensor[l->in[i]];
        if (x->h != out->h || x->w != out->w || x->c != out->c)
            return hp_fail(err, HP_EINTERNAL, "layer %s: adds %dx%dx%d to %dx%dx%d", l->name, x->h, x->w,
                           x->c, out->h, out->w, out->c);
    }
    return HP_OK;
}

/* The second factor has the size of the first, or is one vector for all pixels. */
static hp_status mul_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]], *factor = &g->tensor[l->in[1]];
    if (factor->h != 1 || factor->w != 1 || factor->c != x->c) return same_shape(g, l, out_c, out, err);
    *out = *x;
    return HP_OK;
}

/* The number of heads divides the channels. Keys and values have the same pixels, and those of the queries
 * where the layer distinguishes pixels. */
static hp_status attention_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                                 hp_error *err) {
    const hp_tensor *q = &g->tensor[l->in[0]], *k = &g->tensor[l->in[1]], *v = &g->tensor[l->in[2]];
    const bool placed = l->attention.causal || l->window.kh > 0 || l->n_param > 0 || l->attention.rotary > 0;
    const int heads = l->groups, kv_heads = l->attention.kv_heads;
    (void)out_c;
    *out = *q;
    if (heads < 1 || kv_heads < 1 || q->c % heads || heads % kv_heads || k->c != q->c / heads * kv_heads)
        return hp_fail(err, HP_EPLAN, "layer %s: %d channels in %d heads, %d in %d", l->name, q->c, heads,
                       k->c, kv_heads);
    if (k->h != v->h || k->w != v->w || k->c != v->c || (placed && (k->h != q->h || k->w != q->w)))
        return hp_fail(err, HP_EINTERNAL, "layer %s: queries, keys and values of other shapes", l->name);
    if ((l->window.kh > 0) != (l->window.kw > 0) || (l->window.kh > 0 && l->attention.causal) ||
        (l->attention.rotary > 0 && q->c / heads % 2))
        return hp_fail(err, HP_EINTERNAL, "layer %s: attends to no such pixels", l->name);
    return HP_OK;
}

static hp_status embedding_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                                 hp_error *err) {
    *out = g->tensor[l->in[0]];
    if (out->c != 1) return hp_fail(err, HP_EINTERNAL, "layer %s: ids of %d channels", l->name, out->c);
    out->c = out_c;
    return HP_OK;
}

static hp_status classtoken_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                                  hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const int64_t tokens = 1 + (int64_t)x->h * x->w;
    (void)out_c;
    if (tokens > INT32_MAX) return hp_fail(err, HP_EPLAN, "layer %s: too many tokens", l->name);
    *out = (hp_tensor){.h = (int32_t)tokens, .w = 1, .c = x->c};
    return HP_OK;
}

static hp_status crop_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    (void)out_c;
    if (l->window.pad_h < 0 || l->window.pad_w < 0 || l->out_h < 1 || l->out_w < 1 ||
        l->window.pad_h > x->h - l->out_h || l->window.pad_w > x->w - l->out_w)
        return hp_fail(err, HP_EINTERNAL, "layer %s: %dx%d at %d,%d do not lie in %dx%d", l->name, l->out_h,
                       l->out_w, l->window.pad_h, l->window.pad_w, x->h, x->w);
    *out = (hp_tensor){.h = l->out_h, .w = l->out_w, .c = x->c};
    return HP_OK;
}

static hp_status merge_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    (void)l, (void)out_c, (void)err;
    *out = (hp_tensor){.h = (x->h + 1) / 2, .w = (x->w + 1) / 2, .c = 4 * x->c};
    return HP_OK;
}

/* Does the border rule cover `before` and `after` rows outside a map of n rows? */
static bool border_reaches(hp_border border, int64_t n, int64_t before, int64_t after) {
    const int64_t most[HP_BORDERS] = {0, INT32_MAX, n - 1, n};
    return before >= 0 && after >= 0 && before <= most[border] && after <= most[border];
}

/* Are all channels in range? The first and last step suffice. */
static bool channels_within(const hp_layer *l, int64_t channels) {
    const int64_t block = (int64_t)l->window.kh * l->window.kw;
    if (l->window.kh < 1 || l->window.kw < 1 || l->gather.out_c < 1 || l->groups < 1 || block > INT32_MAX)
        return false;
    const int64_t n = block * l->gather.out_c, outer = n / l->groups - 1;
    const double last =
        (double)l->gather.first + (double)(l->groups - 1) * l->gather.step +
        (double)outer * l->gather.step_outer; /* exact up to 2^53, more than any channel count */
    return n % l->groups == 0 && last < (double)channels;
}

static hp_status gather_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                              hp_error *err) {
    const hp_tensor *x = &g->tensor[l->in[0]];
    const int64_t h = (int64_t)x->h * l->window.kh, w = (int64_t)x->w * l->window.kw;
    (void)out_c;
    if (!channels_within(l, x->c))
        return hp_fail(err, HP_EINTERNAL, "layer %s: gathers channels that %d do not have", l->name, x->c);
    if (l->out_h < 1 || l->out_w < 1 ||
        !border_reaches((hp_border)l->gather.border, h, l->window.pad_h, l->out_h - l->window.pad_h - h) ||
        !border_reaches((hp_border)l->gather.border, w, l->window.pad_w, l->out_w - l->window.pad_w - w))
        return hp_fail(err, HP_EPLAN, "layer %s: %dx%d cannot be made of %" PRId64 "x%" PRId64 " pixels",
                       l->name, l->out_h, l->out_w, h, w);
    *out = (hp_tensor){.h = l->out_h, .w = l->out_w, .c = l->gather.out_c};
    return HP_OK;
}

static hp_status reduce_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                              hp_error *err) {
    (void)out_c, (void)err;
    *out = g->tensor[l->in[0]];
    out->c = 1;
    return HP_OK;
}

static hp_status groupnorm_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out,
                                 hp_error *err) {
    HP_TRY(check_groups(g, l, g->tensor[l->in[0]].c, err));
    return same_shape(g, l, out_c, out, err);
}

static hp_status input_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    (void)l, (void)out_c, (void)err;
    *out = (hp_tensor){.h = g->image_h, .w = g->image_w, .c = g->image_c};
    return HP_OK;
}

/* The output has the channels of one block; a layer that no ranks split has one block. */
static hp_status sum_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    *out = g->tensor[l->in[0]];
    if (out_c < 1 || (int64_t)out_c * hp_summands(l) != out->c)
        return hp_fail(err, HP_EINTERNAL, "layer %s: %d channels are not %d blocks of %d", l->name, out->c,
                       hp_summands(l), out_c);
    out->c = out_c;
    return HP_OK;
}

typedef hp_status shape_rule(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err);

static shape_rule *const rules[HP_LAYER_OPS] = {
    [HP_INPUT] = input_shape,
    [HP_CONV] = conv_shape,
    [HP_LINEAR] = linear_shape,
    [HP_BN] = same_shape,
    [HP_ACT] = same_shape,
    [HP_ADD] = same_shape,
    [HP_MAXPOOL] = pool_shape,
    [HP_AVGPOOL] = pool_shape,
    [HP_ADAPTPOOL] = sized_shape,
    [HP_CONCAT] = concat_shape,
    [HP_DROPOUT] = same_shape,
    [HP_CONVT] = convt_shape,
    [HP_PAD] = pad_shape,
    [HP_MUL] = mul_shape,
    [HP_SCALE] = same_shape,
    [HP_RESIZE] = sized_shape,
    [HP_PRELU] = same_shape,
    [HP_SOFTMAX] = same_shape,
    [HP_QUANT] = same_shape,
    [HP_DEQUANT] = same_shape,
    [HP_LAYERNORM] = same_shape,
    [HP_RMSNORM] = same_shape,
    [HP_ATTENTION] = attention_shape,
    [HP_EMBEDDING] = embedding_shape,
    [HP_POSITION] = same_shape,
    [HP_CLASSTOKEN] = classtoken_shape,
    [HP_CROP] = crop_shape,
    [HP_MERGE] = merge_shape,
    [HP_SUM] = sum_shape,
    [HP_GATHER] = gather_shape,
    [HP_REDUCE] = reduce_shape,
    [HP_GROUPNORM] = groupnorm_shape,
};

hp_status hp_layer_shape(const hp_graph *g, const hp_layer *l, int out_c, hp_tensor *out, hp_error *err) {
    HP_ASSERT(l->op >= 0 && l->op < HP_LAYER_OPS && l->n_in <= hp_layer_infos[l->op].max_in);
    return rules[l->op](g, l, out_c, out, err);
}

void hp_graph_index_units(hp_arena *arena, hp_graph *g) {
    hp_graph_mark_split(g);
    g->n_unit = g->layer[g->n_layer - 1].unit + 1;
    g->unit_first = HP_NEW(arena, int32_t, g->n_unit + 1);
    int unit = -1;
    for (int l = 0; l < g->n_layer; l++) {
        if (g->layer[l].unit == unit) continue;
        HP_ASSERT(g->layer[l].unit == unit + 1);
        g->unit_first[++unit] = l;
    }
    g->unit_first[g->n_unit] = g->n_layer;
}
