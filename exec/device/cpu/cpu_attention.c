/* cpu_attention.c - attention tasks: each head of each sample, over the whole box or window by window. */
#include "exec/device/cpu/cpu_train.h"
#include "exec/device/rotary.h"
#include "base/round.h"
#include "networks/graph/attention.h"
#include "plan/memory/memory_device.h"

#include <math.h>
#include <string.h>

typedef void attend_fn(const hp_attend *a);

/* Prepares a table, like those of pooling's windows. */
hp_status hp_cpu_attention_prepare(hp_device *d, const hp_bound *b, hp_error *err) {
    const int64_t n = hp_rotary_elems(b);
    (void)err;
    if (n == 0 || d->turns[b->layer_id]) return HP_OK;
    float *turn = HP_NEW(d->arena, float, n);
    hp_rotary_fill(b, turn);
    d->turns[b->layer_id] = turn;
    return HP_OK;
}

static int64_t pixels_of(const hp_box *box) {
    return (int64_t)hp_box_len(box, HP_AXIS_H) * hp_box_len(box, HP_AXIS_W);
}

/* Sample n of a buffer for this box, from a channel of it on. */
static hp_attend_map map_of(void *buffer, const hp_box *box, int64_t n, int64_t channel, int64_t channels) {
    float *at = buffer;
    return (hp_attend_map){.at = at ? at + n * pixels_of(box) * channels + channel : NULL,
                           .y0 = box->lo[HP_AXIS_H],
                           .x0 = box->lo[HP_AXIS_W],
                           .w = hp_box_len(box, HP_AXIS_W),
                           .step = channels};
}

static hp_rect rect_of(const hp_box *box) {
    return (hp_rect){box->lo[HP_AXIS_H], box->lo[HP_AXIS_W], hp_box_len(box, HP_AXIS_H),
                     hp_box_len(box, HP_AXIS_W)};
}

static int first_head(const hp_bound *b, int channels) {
    return b->shape.oc0 / channels;
}
static int end_head(const hp_bound *b, int channels) {
    return (b->shape.oc0 + b->shape.oc + channels - 1) / channels;
}

static void set_head(const hp_bound *b, hp_attend *a, int64_t n, int head) {
    const hp_layer *l = b->layer;
    const hp_box *own = &b->map.in_box[0], *keys = &b->map.in_box[1], *out = &b->map.out_box;
    const int c = a->channels, shared = head / (l->groups / l->attention.kv_heads), low = head * c,
              heads = end_head(b, c) - first_head(b, c);
    const int at_q = low - own->lo[HP_AXIS_C], at_k = shared * c - keys->lo[HP_AXIS_C],
              qs = hp_box_len(own, HP_AXIS_C), ks = hp_box_len(keys, HP_AXIS_C),
              end = b->shape.oc0 + b->shape.oc;
    a->from = low > b->shape.oc0 ? 0 : b->shape.oc0 - low;
    a->to = low + c < end ? c : end - low;
    const int at_y = low + a->from - b->shape.oc0;
    a->q = map_of(b->x[0], own, n, at_q, qs);
    a->k = map_of(b->x[1], keys, n, at_k, ks);
    a->v = map_of(b->x[2], keys, n, at_k, ks);
    a->y = map_of(b->y, out, n, at_y, b->shape.oc);
    a->dy = map_of(b->dy, out, n, at_y, b->shape.oc);
    a->dq = map_of(b->dx[0], own, n, at_q, qs);
    a->dk = map_of(b->dx[1], keys, n, at_k, ks);
    a->dv = map_of(b->dx[2], keys, n, at_k, ks);
    a->log_sum = map_of(b->save, out, n, head - first_head(b, c), heads);
}

/* A bias's gradient is a sum over all windows of the map: in float64, at the end of scratch. */
static int64_t bias_elems(const hp_bound *b) {
    return hp_param_elements(b->graph, b->layer, 0, b->shape.oc0, b->shape.oc0 + b->shape.oc).count;
}

static double *bias_sums(const hp_bound *b) {
    const int64_t room = hp_round_up(4 * hp_attend_scratch(hp_head_channels(b->graph, b->layer)), 64);
    return (double *)(void *)((unsigned char *)b->scratch.at + room);
}

/* After those, the queries' gradients of a head, which are sums over all keys. */
static double *query_sums(const hp_bound *b) {
    const int64_t bias = b->layer->n_param ? hp_round_up(8 * bias_elems(b), 64) : 0;
    return (double *)(void *)((unsigned char *)bias_sums(b) + bias);
}

static void clear_bias(const hp_bound *b) {
    double *sums = bias_sums(b);
    for (int64_t i = 0; i < bias_elems(b); i++) sums[i] = 0;
}

static void put_bias(const hp_bound *b) {
    const bool add = b->task->flags & HP_FLAG_ADD;
    const double *sums = bias_sums(b);
    float *to = b->grad[0];
    for (int64_t i = 0; i < bias_elems(b); i++) to[i] = (add ? to[i] : 0.0f) + (float)sums[i];
}

/* Points to the table's middle: distance 0 between query and key. */
static void set_bias(const hp_bound *b, hp_attend *a, int head) {
    const hp_layer *l = b->layer;
    const int64_t places = (2 * (int64_t)l->window.kh - 1) * (2 * l->window.kw - 1),
                  at = (head - first_head(b, a->channels)) * places +
                       (l->window.kh - 1) * (2 * (int64_t)l->window.kw - 1) + l->window.kw - 1;
    if (!l->n_param) return;
    a->bias_w = 2 * l->window.kw - 1;
    a->bias = (const float *)b->param[0] + at;
    a->dbias = b->grad[0] ? bias_sums(b) + at : NULL;
}

/* Visits the windows that the output's box touches. */
static void every_window(const hp_bound *b, hp_attend *a, attend_fn *attend) {
    const hp_layer *l = b->layer;
    const hp_rect all = rect_of(&b->map.out_box);
    const hp_tensor *map = &b->graph->tensor[l->in[1]];
    for (int32_t y = all.y0; y < all.y0 + all.h; y = a->queries.y0 + a->queries.h) {
        const hp_extent rows = hp_window_of(y, l->window.kh, l->window.pad_h, map->h);
        const int32_t y1 = rows.hi < all.y0 + all.h ? rows.hi : all.y0 + all.h;
        for (int32_t x = all.x0; x < all.x0 + all.w; x = a->queries.x0 + a->queries.w) {
            const hp_extent cols = hp_window_of(x, l->window.kw, l->window.pad_w, map->w);
            const int32_t x1 = cols.hi < all.x0 + all.w ? cols.hi : all.x0 + all.w;
            a->queries = (hp_rect){y, x, y1 - y, x1 - x};
            a->keys = (hp_rect){rows.lo, cols.lo, rows.hi - rows.lo, cols.hi - cols.lo};
            attend(a);
        }
    }
}

static void every_head(hp_device *d, const hp_bound *b, attend_fn *attend) {
    const hp_layer *l = b->layer;
    hp_attend a = {.channels = hp_head_channels(b->graph, l),
                   .map_w = b->shape.full.ow,
                   .causal = l->attention.causal,
                   .turn = d->turns[b->layer_id],
                   .scratch = b->scratch.at,
                   .dq_sums = query_sums(b)};
    a.scale = (float)(1 / sqrt(a.channels));
    for (int64_t n = 0; n < b->shape.n; n++)
        for (int head = first_head(b, a.channels); head < end_head(b, a.channels); head++) {
            set_head(b, &a, n, head);
            set_bias(b, &a, head);
            a.queries = rect_of(&b->map.out_box);
            a.keys = rect_of(&b->map.in_box[1]);
            if (hp_layer_is_windowed(l))
                every_window(b, &a, attend);
            else
                attend(&a);
        }
}

hp_status hp_cpu_attention_fwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    every_head(d, b, d->kernels->attend.fwd);
    return HP_OK;
}

hp_status hp_cpu_attention_bwd(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err) {
    (void)s;
    (void)err;
    for (int k = 0; k < 3; k++)
        if (b->dx[k]) memset(b->dx[k], 0, (size_t)hp_box_elems(&b->map.in_box[k > 0]) * sizeof(float));
    if (b->layer->n_param) clear_bias(b);
    every_head(d, b, d->kernels->attend.bwd);
    if (b->layer->n_param) put_bias(b);
    return HP_OK;
}
