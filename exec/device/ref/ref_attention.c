/* ref_attention.c - attention by its definition, float64: one query of one head at a time, its scores with
 * all keys that it attends to, their softmax, and the mean of the values (Vaswani et al. 2017). Heads of
 * queries share those of keys and values in groups (Ainslie et al. 2023); rotary positions turn pairs of
 * channels c, c + d/2 by the place of the pixel (Su et al. 2021). A part of the output's channels is as exact
 * as all of them: gradients are linear in the output's. */
#include "exec/device/ref/ref.h"
#include "networks/graph/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One query of one head. */
typedef struct query {
    int64_t n, pixel;         /* indices in the output's box */
    int y, x, head, from, to; /* in the whole map; channels of the head that are in the output's box */
    double *q;                /* (head channels), turned */
    double *dy;               /* (head channels), 0 where not in the box; backward */
} query;

typedef struct keys {
    int64_t n;
    int64_t *pixel; /* in the box of keys and values */
    int *at;        /* in the whole map: row by row */
    double *weight; /* scores, then their softmax */
} keys;

typedef struct attention {
    const hp_bound *b;
    int channels; /* channels of a head */
    double scale;
    keys k;
    double *turned; /* a key */
} attention;

typedef void query_fn(attention *a, const query *q);

static void *room(int64_t n, size_t size) {
    void *p = calloc((size_t)n + 1, size);
    HP_ASSERT(p);
    return p;
}

/* --- rotary positions --- */

/* Turns pairs of channels by angles that fall from 1 to 1 / base per place. */
static void turn(const attention *a, double *v, int64_t place, double sign) {
    const int half = a->channels / 2;
    for (int i = 0; i < half && a->b->layer->attention.rotary > 0; i++) {
        const double angle = sign * (double)place * pow(a->b->layer->attention.rotary, -(double)i / half);
        const double x = v[i], y = v[i + half];
        v[i] = x * cos(angle) - y * sin(angle);
        v[i + half] = x * sin(angle) + y * cos(angle);
    }
}

static int64_t place_of(const attention *a, int y, int x) {
    return (int64_t)y * a->b->graph->tensor[a->b->layer->out].w + x;
}

/* --- where things are --- */

static int64_t pixels_of(const hp_box *b) {
    return (int64_t)hp_box_len(b, HP_AXIS_H) * hp_box_len(b, HP_AXIS_W);
}

/* First channel of a head of queries in the box of input 0; of its shared keys and values in those of inputs
 * 1, 2. */
static int64_t query_at(const attention *a, const query *q) {
    const hp_box *box = &a->b->map.in_box[0];
    const int64_t row = q->y - box->lo[HP_AXIS_H], col = q->x - box->lo[HP_AXIS_W];
    return ((q->n * hp_box_len(box, HP_AXIS_H) + row) * hp_box_len(box, HP_AXIS_W) + col) *
               hp_box_len(box, HP_AXIS_C) +
           q->head * a->channels - box->lo[HP_AXIS_C];
}

static int64_t key_at(const attention *a, const query *q, int64_t pixel) {
    const hp_box *box = &a->b->map.in_box[1];
    const int shared = q->head / (a->b->layer->groups / a->b->layer->attention.kv_heads);
    return (q->n * pixels_of(box) + pixel) * hp_box_len(box, HP_AXIS_C) + shared * a->channels -
           box->lo[HP_AXIS_C];
}

static int heads_here(const attention *a) {
    const hp_shape *s = &a->b->shape;
    return (s->oc0 + s->oc + a->channels - 1) / a->channels - s->oc0 / a->channels;
}

/* The logarithm of a query's sum, among those that are saved. */
static double *log_sum(const attention *a, const query *q) {
    const hp_shape *s = &a->b->shape;
    return (double *)a->b->save + (q->n * s->oh * s->ow + q->pixel) * heads_here(a) + q->head -
           s->oc0 / a->channels;
}

/* Row of the bias table, by where the key lies from the query; -1: there is none. */
static int64_t bias_at(const attention *a, const query *q, int at) {
    const hp_layer *l = a->b->layer;
    const int w = a->b->graph->tensor[l->in[1]].w, dy = q->y - at / w, dx = q->x - at % w;
    const int64_t places = (2 * (int64_t)l->window.kh - 1) * (2 * l->window.kw - 1);
    if (l->n_param == 0) return -1;
    return (q->head - a->b->shape.oc0 / a->channels) * places +
           (dy + l->window.kh - 1) * (2 * (int64_t)l->window.kw - 1) + dx + l->window.kw - 1;
}

/* --- scores --- */

static void find_keys(attention *a, const query *q) {
    const hp_bound *b = a->b;
    const hp_box *box = &b->map.in_box[1];
    const int w = b->graph->tensor[b->layer->in[1]].w;
    const hp_extent rows = hp_attention_keys(b->graph, b->layer, true, (hp_extent){q->y, q->y + 1});
    a->k.n = 0;
    for (int row = rows.lo; row < rows.hi; row++) {
        const hp_extent cols = hp_attention_row(b->graph, b->layer, q->y, q->x, row);
        for (int col = cols.lo; col < cols.hi; col++) {
            a->k.at[a->k.n] = row * w + col;
            a->k.pixel[a->k.n++] =
                (int64_t)(row - box->lo[HP_AXIS_H]) * hp_box_len(box, HP_AXIS_W) + col - box->lo[HP_AXIS_W];
        }
    }
}

static const double *turned_key(attention *a, const query *q, int64_t i) {
    memcpy(a->turned, (const double *)a->b->x[1] + key_at(a, q, a->k.pixel[i]),
           (size_t)a->channels * sizeof *a->turned);
    turn(a, a->turned, a->k.at[i], 1);
    return a->turned;
}

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void score(attention *a, const query *q) {
    find_keys(a, q);
    for (int64_t i = 0; i < a->k.n; i++) {
        const int64_t bias = bias_at(a, q, a->k.at[i]);
        a->k.weight[i] = a->scale * dot(q->q, turned_key(a, q, i), a->channels) +
                         (bias < 0 ? 0 : ((const double *)a->b->param[0])[bias]);
    }
}

/* --- tasks --- */

static void every_query(attention *a, query_fn *visit) {
    const hp_bound *b = a->b;
    const hp_shape *s = &b->shape;
    const int first = s->oc0 / a->channels;
    query q = {.q = room(a->channels, sizeof(double)), .dy = room(a->channels, sizeof(double))};
    for (q.n = 0; q.n < s->n; q.n++)
        for (q.pixel = 0; q.pixel < (int64_t)s->oh * s->ow; q.pixel++)
            for (q.head = first; q.head < first + heads_here(a); q.head++) {
                const int c0 = q.head * a->channels, c1 = c0 + a->channels;
                q.y = s->oy0 + (int)(q.pixel / s->ow);
                q.x = s->ox0 + (int)(q.pixel % s->ow);
                q.from = c0 > s->oc0 ? c0 : s->oc0;
                q.to = c1 < s->oc0 + s->oc ? c1 : s->oc0 + s->oc;
                memcpy(q.q, (const double *)b->x[0] + query_at(a, &q), (size_t)a->channels * sizeof *q.q);
                turn(a, q.q, place_of(a, q.y, q.x), 1);
                visit(a, &q);
            }
    free(q.q);
    free(q.dy);
}

static attention attention_new(const hp_bound *b) {
    const int64_t n = pixels_of(&b->map.in_box[1]);
    attention a = {.b = b, .channels = hp_head_channels(b->graph, b->layer)};
    a.scale = 1 / sqrt(a.channels);
    a.k = (keys){
        .pixel = room(n, sizeof(int64_t)), .at = room(n, sizeof(int)), .weight = room(n, sizeof(double))};
    a.turned = room(a.channels, sizeof(double));
    return a;
}

static void attention_free(attention *a) {
    free(a->k.pixel);
    free(a->k.at);
    free(a->k.weight);
    free(a->turned);
}

/* First channel of the query's head in a buffer of the output's box. */
static int64_t out_at(const attention *a, const query *q, int c) {
    const hp_shape *s = &a->b->shape;
    return (q->n * s->oh * s->ow + q->pixel) * s->oc + c - s->oc0;
}

static void forward_query(attention *a, const query *q) {
    double most = -INFINITY, sum = 0, *y = a->b->y;
    score(a, q);
    for (int64_t i = 0; i < a->k.n; i++) most = fmax(most, a->k.weight[i]);
    for (int64_t i = 0; i < a->k.n; i++) sum += a->k.weight[i] = exp(a->k.weight[i] - most);
    for (int c = q->from; c < q->to; c++) {
        double mean = 0;
        for (int64_t i = 0; i < a->k.n; i++)
            mean += a->k.weight[i] *
                    ((const double *)a->b->x[2])[key_at(a, q, a->k.pixel[i]) + c - q->head * a->channels];
        y[out_at(a, q, c)] = mean / sum;
    }
    if (a->b->save) *log_sum(a, q) = most + log(sum);
}

void hp_ref_attention_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    attention a = attention_new(b);
    every_query(&a, forward_query);
    attention_free(&a);
}

/* What a key's score and value give to the gradients. */
static void backward_key(attention *a, const query *q, int64_t i, double product, const double *dy) {
    const hp_bound *b = a->b;
    const int64_t at = key_at(a, q, a->k.pixel[i]), bias = bias_at(a, q, a->k.at[i]);
    const double weight = a->k.weight[i], *v = (const double *)b->x[2] + at, *k = turned_key(a, q, i);
    const double ds = weight * (dot(dy, v, a->channels) - product);
    for (int c = 0; c < a->channels; c++) {
        if (b->dx[0]) ((double *)b->dx[0])[query_at(a, q) + c] += a->scale * ds * k[c];
        if (b->dx[1]) ((double *)b->dx[1])[at + c] += a->scale * ds * q->q[c];
        if (b->dx[2]) ((double *)b->dx[2])[at + c] += weight * dy[c];
    }
    if (bias >= 0) ((double *)b->grad[0])[bias] += ds;
}

static void backward_query(attention *a, const query *q) {
    const double *dy = a->b->dy, *y = a->b->y;
    double product = 0;
    memset(q->dy, 0, (size_t)a->channels * sizeof *q->dy);
    for (int c = q->from; c < q->to; c++) {
        const int64_t at = out_at(a, q, c);
        q->dy[c - q->head * a->channels] = dy[at];
        product += dy[at] * y[at];
    }
    score(a, q);
    for (int64_t i = 0; i < a->k.n; i++) {
        a->k.weight[i] = exp(a->k.weight[i] - *log_sum(a, q));
        backward_key(a, q, i, product, q->dy);
    }
    if (a->b->dx[0]) turn(a, (double *)a->b->dx[0] + query_at(a, q), place_of(a, q->y, q->x), -1);
}

/* Gradients of keys were added up turned. */
static void turn_keys_back(const attention *a) {
    const hp_box *box = &a->b->map.in_box[1];
    double *dk = a->b->dx[1];
    for (int64_t n = 0; dk && n < a->b->shape.n; n++)
        for (int y = box->lo[HP_AXIS_H]; y < box->hi[HP_AXIS_H]; y++)
            for (int x = box->lo[HP_AXIS_W]; x < box->hi[HP_AXIS_W]; x++)
                for (int c = 0; c < hp_box_len(box, HP_AXIS_C); c += a->channels, dk += a->channels)
                    turn(a, dk, place_of(a, y, x), -1);
}

void hp_ref_attention_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    attention a = attention_new(b);
    const hp_layer *l = b->layer;
    for (int k = 0; k < 3; k++)
        if (b->dx[k]) memset(b->dx[k], 0, (size_t)hp_box_elems(&b->map.in_box[k > 0]) * sizeof(double));
    if (l->n_param && !(b->task->flags & HP_FLAG_ADD)) {
        const hp_elements e = hp_param_elements(b->graph, l, 0, b->shape.oc0, b->shape.oc0 + b->shape.oc);
        memset(b->grad[0], 0, (size_t)e.count * sizeof(double));
    }
    every_query(&a, backward_query);
    turn_keys_back(&a);
    attention_free(&a);
}
