/* observe.c - ranges, histograms and channel means of a running network's tensors; see observe.h. */
#include "exec/run/observe.h"

#include "exec/quant/correct.h"
#include "exec/quant/sharing.h"
#include "plan/program/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Means are sums of integers, so that their order does not matter: elements in units of 2^-20 of the largest
 * magnitude, exact in float64 for 2^33 pixels. */
enum { MEAN_BITS = 20 };

typedef struct watched {
    int32_t channels;
    double *lo, *hi; /* per channel */
    double *most;    /* per channel, after pass 1: the larger magnitude of lo and hi */
    double strange;  /* number of elements that are NaN or infinite */
    double pixels;   /* counted in pass 2 */
    double unit;     /* unit of sum */
    double *sum;     /* per channel: rounded elements / unit */
    hp_histogram *histogram;
} watched;

struct hp_observer {
    hp_arena *arena;
    const hp_graph *real, *quantised;
    int32_t *of;     /* per tensor of quantised: the tensor of real */
    int32_t *tensor; /* per watched tensor: its id in real */
    int32_t *index;  /* per tensor of real: index in watched, or -1 */
    int n, passes;   /* passes: completed */
    watched *watch;
    const double **most; /* per tensor of real */
    double *row;         /* the channels of a pixel */
};

/* --- opening --- */

static void watch_tensor(hp_observer *o, int32_t tensor) {
    if (o->index[tensor] >= 0) return;
    const int32_t c = o->real->tensor[tensor].c;
    watched *w = &o->watch[o->n];
    *w = (watched){.channels = c, .lo = HP_NEW(o->arena, double, c), .hi = HP_NEW(o->arena, double, c)};
    for (int i = 0; i < c; i++) w->lo[i] = INFINITY, w->hi[i] = -INFINITY;
    o->most[tensor] = w->most = HP_NEW(o->arena, double, c);
    o->tensor[o->n] = tensor;
    o->index[tensor] = o->n++;
}

hp_status hp_observer_new(const hp_graph *real, const hp_graph *quantised, hp_observer **out, hp_error *err) {
    hp_arena *a = hp_arena_new();
    hp_observer *o = HP_NEW(a, hp_observer, 1);
    *o = (hp_observer){.arena = a, .real = real, .quantised = quantised};
    const hp_status s = hp_float_counterparts(a, quantised, real, &o->of, err);
    if (s != HP_OK) {
        hp_arena_free(a);
        return s;
    }
    o->tensor = HP_NEW(a, int32_t, real->n_tensor);
    o->index = HP_NEW(a, int32_t, real->n_tensor);
    o->watch = HP_NEW(a, watched, real->n_tensor);
    o->most = HP_NEW(a, const double *, real->n_tensor);
    int32_t widest = 1;
    for (int t = 0; t < real->n_tensor; t++) {
        o->index[t] = -1;
        if (real->tensor[t].c > widest) widest = real->tensor[t].c;
    }
    o->row = HP_NEW(a, double, widest);
    for (int t = 0; t < quantised->n_tensor; t++)
        if (hp_tensor_wants_qparam(quantised, t)) watch_tensor(o, o->of[t]);
    for (int l = 0; l < quantised->n_layer; l++) /* the image, for its mean */
        if (hp_layer_weights8(quantised, l)) watch_tensor(o, o->of[quantised->layer[l].in[0]]);
    *out = o;
    return HP_OK;
}

void hp_observer_free(hp_observer *o) {
    if (o) hp_arena_free(o->arena);
}

/* --- elements --- */

static void observe_range(watched *w, const double *x, int32_t first, int32_t n) {
    for (int32_t c = 0; c < n; c++) {
        double *lo = &w->lo[first + c], *hi = &w->hi[first + c];
        *lo = x[c] < *lo ? x[c] : *lo;
        *hi = x[c] > *hi ? x[c] : *hi;
        w->strange += !isfinite(x[c]);
    }
}

static void observe_count(watched *w, const double *x, int32_t first, int32_t n) {
    hp_histogram_count(w->histogram, x, n);
    for (int32_t c = 0; c < n; c++) w->sum[first + c] += rint(x[c] / w->unit);
}

/* Channels of one pixel. */
static const double *pixel_of(const hp_observer *o, hp_dtype dtype, const void *data, int64_t at, int32_t n) {
    if (dtype == HP_F64) return (const double *)data + at;
    const float *x = (const float *)data + at;
    for (int32_t c = 0; c < n; c++) o->row[c] = (double)x[c];
    return o->row;
}

static void observe_row(hp_observer *o, watched *w, hp_dtype dtype, const void *data, int64_t at,
                        int64_t pitch, const hp_box *seen) {
    const int32_t first = seen->lo[HP_AXIS_C], n = hp_box_len(seen, HP_AXIS_C);
    for (int32_t x = 0; x < hp_box_len(seen, HP_AXIS_W); x++) {
        const double *pixel = pixel_of(o, dtype, data, at + x * pitch, n);
        (o->passes == 0 ? observe_range : observe_count)(w, pixel, first, n);
    }
    /* where several ranks hold channels of a pixel, the one with channel 0 counts it */
    if (o->passes == 1 && first == 0) w->pixels += hp_box_len(seen, HP_AXIS_W);
}

void hp_observe_box(hp_observer *o, int tensor, hp_dtype dtype, const void *data, const hp_box *have,
                    const hp_box *count) {
    HP_ASSERT(dtype == HP_F32 || dtype == HP_F64);
    const hp_box seen = hp_box_and(have, count);
    if (o->index[tensor] < 0 || o->passes > 1 || hp_box_empty(&seen)) return;
    const int64_t c = hp_box_len(have, HP_AXIS_C), w = hp_box_len(have, HP_AXIS_W);
    for (int32_t n = seen.lo[HP_AXIS_N]; n < seen.hi[HP_AXIS_N]; n++)
        for (int32_t y = seen.lo[HP_AXIS_H]; y < seen.hi[HP_AXIS_H]; y++) {
            const int64_t row =
                (int64_t)(n - have->lo[HP_AXIS_N]) * hp_box_len(have, HP_AXIS_H) + y - have->lo[HP_AXIS_H];
            const int64_t at = (row * w + seen.lo[HP_AXIS_W] - have->lo[HP_AXIS_W]) * c + seen.lo[HP_AXIS_C] -
                               have->lo[HP_AXIS_C];
            observe_row(o, &o->watch[o->index[tensor]], dtype, data, at, c, &seen);
        }
}

void hp_observe_task(hp_observer *o, const hp_role *role, int task, const unsigned char *arena,
                     const hp_box *own) {
    const hp_task *t = &role->task[task];
    if (t->op != HP_TASK_FWD && t->op != HP_TASK_LOAD) return;
    const int32_t buffer = role->operand[t->operand];
    if (buffer < 0) return;
    const hp_buffer *b = &role->buffer[buffer];
    const int tensor = t->op == HP_TASK_LOAD ? b->what : o->real->layer[t->layer].out;
    const hp_box made = hp_task_box(t, &b->box), count = own ? hp_box_and(&made, own) : made;
    hp_observe_box(o, tensor, (hp_dtype)b->dtype, arena + b->offset, &b->box, &count);
}

/* --- merging over ranks --- */

static const double REDUCE_LIMIT_S = 120; /* as for exchanges in comm.c: ranks end a pass together */

static hp_status sum_over(hp_comm *comm, double *value, int64_t n, hp_error *err) {
    const hp_comm_op op = {
        .kind = HP_COMM_COLLECTIVE, .group = HP_COMM_WORLD, .dtype = HP_F64, .count = n, .data = value};
    return hp_comm_run(comm, &op, REDUCE_LIMIT_S, "the other ranks' calibration", err);
}

/* Gathers every rank's ranges as a sum of arrays that are zero elsewhere; then takes minimum and maximum. */
static hp_status reduce_range(hp_comm *comm, watched *w, double *all, hp_error *err) {
    const int64_t c = w->channels, each = 2 * c + 1;
    memset(all, 0, sizeof *all * (size_t)(each * comm->size));
    double *mine = all + each * comm->rank;
    memcpy(mine, w->lo, sizeof *mine * (size_t)c);
    memcpy(mine + c, w->hi, sizeof *mine * (size_t)c);
    mine[2 * c] = w->strange;
    HP_TRY(sum_over(comm, all, each * comm->size, err));
    w->strange = 0;
    for (int r = 0; r < comm->size; r++) {
        const double *theirs = all + each * r;
        for (int64_t i = 0; i < c; i++) {
            w->lo[i] = fmin(w->lo[i], theirs[i]);
            w->hi[i] = fmax(w->hi[i], theirs[c + i]);
        }
        w->strange += theirs[2 * c];
    }
    return HP_OK;
}

static hp_status reduce_counts(hp_comm *comm, watched *w, double *all, hp_error *err) {
    hp_histogram *h = w->histogram;
    const int64_t c = w->channels;
    all[0] = w->pixels;
    all[1] = (double)h->zeros;
    for (int i = 0; i < HP_BINS; i++) all[2 + i] = (double)h->count[i];
    memcpy(all + 2 + HP_BINS, w->sum, sizeof *all * (size_t)c);
    HP_TRY(sum_over(comm, all, 2 + HP_BINS + c, err));
    w->pixels = all[0];
    h->zeros = (int64_t)all[1];
    for (int i = 0; i < HP_BINS; i++) h->count[i] = (int64_t)all[2 + i];
    memcpy(w->sum, all + 2 + HP_BINS, sizeof *all * (size_t)c);
    return HP_OK;
}

static hp_range range_of(const watched *w) {
    hp_range r = {INFINITY, -INFINITY};
    for (int i = 0; i < w->channels; i++) r = (hp_range){fmin(r.lo, w->lo[i]), fmax(r.hi, w->hi[i])};
    return r;
}

static hp_status check(const hp_observer *o, const watched *w, hp_error *err) {
    const int32_t tensor = o->tensor[w - o->watch];
    const char *name = o->real->layer[o->real->tensor[tensor].producer].name;
    const hp_range r = range_of(w);
    if (w->strange > 0)
        return hp_fail(err, HP_EDATA,
                       "layer %s gives values that are not finite numbers on the calibration images: are the "
                       "weights of a run that did not diverge?",
                       name);
    if (hp_range_empty(&r))
        return hp_fail(err, HP_EDATA, "no calibration image reached layer %s: give at least one", name);
    return HP_OK;
}

static void start_counting(hp_observer *o, watched *w) {
    for (int i = 0; i < w->channels; i++) w->most[i] = fmax(fabs(w->lo[i]), fabs(w->hi[i]));
    const hp_range r = range_of(w);
    const double most = fmax(fabs(r.lo), fabs(r.hi));
    w->unit = ldexp(most > 0 ? most : 1, -MEAN_BITS);
    w->sum = HP_NEW(o->arena, double, w->channels);
    w->histogram = HP_NEW(o->arena, hp_histogram, 1);
    hp_histogram_start(w->histogram, r);
}

hp_status hp_observer_next(hp_observer *o, hp_comm *comm, hp_error *err) {
    HP_ASSERT(o->passes < 2);
    for (int i = 0; i < o->n; i++) {
        watched *w = &o->watch[i];
        const size_t room = (size_t)(2 * w->channels + 1) * (size_t)comm->size + HP_BINS + 2;
        double *all = malloc(sizeof *all * room);
        HP_ASSERT(all);
        hp_status s = (o->passes == 0 ? reduce_range : reduce_counts)(comm, w, all, err);
        free(all);
        if (s == HP_OK) s = check(o, w, err);
        HP_TRY(s);
        if (o->passes == 0) start_counting(o, w);
    }
    o->passes++;
    return HP_OK;
}

/* --- results --- */

hp_range hp_observer_range(const hp_observer *o, int tensor) {
    HP_ASSERT(o->passes > 0 && o->index[tensor] >= 0);
    return range_of(&o->watch[o->index[tensor]]);
}

const double *const *hp_observer_most(const hp_observer *o) {
    HP_ASSERT(o->passes > 0);
    return o->most;
}

void hp_observer_quantise(const hp_observer *o, const hp_clip_options *clip, hp_constants *c) {
    HP_ASSERT(o->passes == (clip->kind == HP_OBSERVE_MINMAX ? o->passes : 2) && o->passes > 0);
    HP_ASSERT(hp_constants_graph(c) == o->quantised);
    hp_range *kept = calloc((size_t)o->n + 1, sizeof *kept);
    hp_range *range = calloc((size_t)o->quantised->n_tensor, sizeof *range);
    HP_ASSERT(kept && range);
    for (int i = 0; i < o->n; i++) kept[i] = hp_clip(o->watch[i].histogram, clip);
    for (int t = 0; t < o->quantised->n_tensor; t++)
        if (hp_tensor_wants_qparam(o->quantised, t)) range[t] = kept[o->index[o->of[t]]];
    hp_qparams_unify(c, range);
    free(kept);
    free(range);
}

hp_status hp_observer_correct(const hp_observer *o, hp_constants *c, hp_error *err) {
    HP_ASSERT(o->passes == 2 && hp_constants_graph(c) == o->quantised);
    for (int l = 0; l < o->quantised->n_layer; l++) {
        if (!hp_layer_weights8(o->quantised, l)) continue;
        const watched *w = &o->watch[o->index[o->of[o->quantised->layer[l].in[0]]]];
        for (int k = 0; k < w->channels; k++) o->row[k] = w->sum[k] * w->unit / w->pixels;
        HP_TRY(hp_bias_correct(c, l, o->row, err));
    }
    return HP_OK;
}
