/* draw_layer.c - layers with drawn shapes, run on a device, and compared within a bound. */
#include "tests/support/exec/draw_layer.h"

#include "networks/graph/acts.h"
#include "networks/graph/graph_gather.h"

/* --- drawing shapes --- */

int pick(uint64_t round, uint64_t *counter, int low, int high) {
    return low + (int)hp_rng_below(99, round, (*counter)++, (uint64_t)(high - low + 1));
}

static int out_size(int in, int k, int s, int p, int d, bool ceil_mode) {
    const int span = in + 2 * p - d * (k - 1) - 1;
    int out = (ceil_mode ? span + s - 1 : span) / s + 1;
    if (ceil_mode && (out - 1) * s >= in + p) out--;
    return out;
}

void finish_window(draw *d) {
    hp_layer *l = &d->layer;
    d->out.h = out_size(d->in[0].h, l->window.kh, l->window.stride_h, l->window.pad_h, l->window.dil_h,
                        l->window.ceil_mode);
    d->out.w = out_size(d->in[0].w, l->window.kw, l->window.stride_w, l->window.pad_w, l->window.dil_w,
                        l->window.ceil_mode);
}

/* Different padding after the map than before it: fewer or more windows. */
static void draw_padding_after(draw *d, uint64_t round, uint64_t *c) {
    if (pick(round, c, 0, 4)) return;
    d->out.h += pick(round, c, -1, 2);
    d->out.w += pick(round, c, -1, 2);
}

draw draw_conv(uint64_t round) {
    uint64_t c = 0;
    static const int channels[] = {1, 2, 3, 5, 8, 16, 17, 24, 32, 33, 48, 64, 80};
    static const int kernels[] = {1, 1, 2, 3, 3, 3, 5, 7};
    const int groups = (int[]){1, 1, 1, 2, 3, 4}[pick(round, &c, 0, 5)];
    int ins = channels[pick(round, &c, 0, 12)] * groups, outs = channels[pick(round, &c, 0, 12)] * groups;
    draw d = {.layer = {.op = HP_CONV, .n_in = 1, .groups = groups}, .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    if (pick(round, &c, 0, 5) == 0) outs = l->groups = ins; /* depthwise */
    l->window.kh = kernels[pick(round, &c, 0, 7)];
    l->window.kw = pick(round, &c, 0, 3) ? l->window.kh : kernels[pick(round, &c, 0, 7)];
    l->window.stride_h = pick(round, &c, 1, 2);
    l->window.stride_w = pick(round, &c, 0, 3) ? l->window.stride_h : 3 - l->window.stride_h;
    l->window.dil_h = l->window.dil_w = pick(round, &c, 0, 4) ? 1 : 2;
    l->window.pad_h = pick(round, &c, 0, l->window.kh / 2);
    l->window.pad_w = pick(round, &c, 0, l->window.kw / 2);
    d.in[0] = (hp_tensor){.h = pick(round, &c, 13, 17), .w = pick(round, &c, 13, 19), .c = ins};
    d.out.c = outs;
    d.bias = pick(round, &c, 0, 1);
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    finish_window(&d);
    draw_padding_after(&d, round, &c);
    return d;
}

draw draw_winograd(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_CONV,
                        .n_in = 1,
                        .groups = 1,
                        .window.kh = 3,
                        .window.kw = 3,
                        .window.stride_h = 1,
                        .window.stride_w = 1,
                        .window.dil_h = 1,
                        .window.dil_w = 1,
                        .window.pad_h = pick(round, &c, 0, 2),
                        .window.pad_w = pick(round, &c, 0, 2)}};
    d.samples = pick(round, &c, 1, 5);
    d.in[0] = (hp_tensor){
        .h = pick(round, &c, 7, 20), .w = pick(round, &c, 7, 20), .c = 16 * pick(round, &c, 2, 6)};
    d.out.c = 16 * pick(round, &c, 2, 6);
    d.bias = pick(round, &c, 0, 1);
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    finish_window(&d);
    draw_padding_after(&d, round, &c);
    return d;
}

draw draw_convt(uint64_t round) {
    uint64_t c = 0;
    static const int channels[] = {1, 2, 3, 5, 8, 16, 17, 24, 33};
    draw d = {.layer = {.op = HP_CONVT, .n_in = 1, .groups = 1, .window.dil_h = 1, .window.dil_w = 1},
              .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    const bool doubles = round % 2;
    l->window.kh = doubles ? 2 : pick(round, &c, 1, 5);
    l->window.kw = doubles ? 2 : pick(round, &c, 1, 5);
    l->window.stride_h = doubles ? 2 : pick(round, &c, 1, 4);
    l->window.stride_w = doubles ? 2 : pick(round, &c, 1, 4);
    l->window.pad_h = doubles ? 0 : pick(round, &c, 0, l->window.kh / 2);
    l->window.pad_w = doubles ? 0 : pick(round, &c, 0, l->window.kw / 2);
    d.in[0] = (hp_tensor){
        .h = pick(round, &c, 3, 13), .w = pick(round, &c, 3, 13), .c = channels[pick(round, &c, 0, 8)]};
    d.out = (hp_tensor){.h = (d.in[0].h - 1) * l->window.stride_h - 2 * l->window.pad_h + l->window.kh,
                        .w = (d.in[0].w - 1) * l->window.stride_w - 2 * l->window.pad_w + l->window.kw,
                        .c = channels[pick(round, &c, 0, 8)]};
    d.bias = pick(round, &c, 0, 1);
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    return d;
}

draw draw_pad(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_PAD, .n_in = 1}, .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    l->window.pad_h = pick(round, &c, 0, 4);
    l->window.pad_w = pick(round, &c, 0, 4);
    d.in[0] =
        (hp_tensor){.h = pick(round, &c, 1, 9), .w = pick(round, &c, 1, 9), .c = pick(round, &c, 1, 40)};
    d.out = (hp_tensor){.h = d.in[0].h + l->window.pad_h + pick(round, &c, 0, 4),
                        .w = d.in[0].w + l->window.pad_w + pick(round, &c, 0, 4),
                        .c = d.in[0].c};
    l->out_h = d.out.h;
    l->out_w = d.out.w;
    return d;
}

/* The largest k <= most that divides n. */
static int divisor_up_to(int n, int most) {
    while (n % most) most--;
    return most;
}

/* Rows or columns before the map of n, and the number of outputs. */
static void draw_border(hp_border border, int n, uint64_t round, uint64_t *c, int32_t *before,
                        int32_t *made) {
    const int most[HP_BORDERS] = {0, 3 * n, n - 1, n};
    *before = pick(round, c, 0, most[border]);
    *made = n + *before + pick(round, c, 0, most[border]);
}

draw draw_gather(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_GATHER, .n_in = 1, .gather.border = (int32_t)(round % HP_BORDERS)},
              .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    const int most = round / HP_BORDERS % 3 ? 9 : 1;
    d.in[0] = (hp_tensor){.h = pick(round, &c, 1, most), .w = pick(round, &c, 1, most)};
    l->window.kh = pick(round, &c, 1, 3);
    l->window.kw = pick(round, &c, 1, 2);
    draw_border((hp_border)l->gather.border, d.in[0].h * l->window.kh, round, &c, &l->window.pad_h,
                &l->out_h);
    draw_border((hp_border)l->gather.border, d.in[0].w * l->window.kw, round, &c, &l->window.pad_w,
                &l->out_w);
    l->gather.out_c = pick(round, &c, 1, pick(round, &c, 0, 2) ? 6 : 40);
    const int all = l->window.kh * l->window.kw * l->gather.out_c;
    l->groups = divisor_up_to(all, pick(round, &c, 1, all));
    l->gather.first = pick(round, &c, 0, 4);
    l->gather.step = pick(round, &c, 0, 3);
    l->gather.step_outer = pick(round, &c, 0, 4);
    d.in[0].c = l->gather.first + (l->groups - 1) * l->gather.step +
                (all / l->groups - 1) * l->gather.step_outer + pick(round, &c, 1, 3);
    d.out = (hp_tensor){.h = l->out_h, .w = l->out_w, .c = l->gather.out_c};
    return d;
}

/* Reductions that can be differentiated; from few numbers to many, some of which become
 * equal when rounded. */
draw draw_reduce(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_REDUCE,
                        .n_in = 1,
                        .reduction = (int32_t)(round % 2 ? HP_CHANNELS_MEAN : HP_CHANNELS_MAX)},
              .samples = pick(round, &c, 1, 3)};
    d.in[0] = (hp_tensor){.h = pick(round, &c, 1, 9),
                          .w = pick(round, &c, 1, 9),
                          .c = round / 2 % 2 ? pick(round, &c, 32, 100) : pick(round, &c, 1, 31)};
    d.out = d.in[0];
    d.out.c = 1;
    return d;
}

/* Concatenated maps, or a map and a vector; parametric ReLU; interpolation of any kind;
 * gathers, reductions. */
draw draw_map(uint64_t round) {
    uint64_t c = 0;
    static const int ops[] = {HP_MUL, HP_PRELU, HP_RESIZE, HP_RESIZE};
    if (round % 5 == 4) return round / 5 % 3 ? draw_gather(round / 5) : draw_reduce(round / 15);
    draw d = {.layer = {.op = ops[round % 5], .n_in = 1}, .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    d.in[0] =
        (hp_tensor){.h = pick(round, &c, 1, 9), .w = pick(round, &c, 1, 9), .c = pick(round, &c, 1, 70)};
    d.in[1] = d.out = d.in[0];
    d.flags = l->op == HP_PRELU && pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    if (l->op == HP_PRELU) l->groups = pick(round, &c, 0, 1);
    if (l->op == HP_MUL) l->n_in = 2;
    if (l->op == HP_MUL && pick(round, &c, 0, 1)) d.in[1].h = d.in[1].w = 1;
    if (l->op != HP_RESIZE) return d;
    d.out.h = l->out_h = pick(round, &c, 1, 13);
    d.out.w = l->out_w = pick(round, &c, 1, 13);
    l->resize.interpolation = pick(round, &c, 0, HP_INTERPOLATIONS - 1);
    l->resize.corners = pick(round, &c, 0, HP_CORNERS - 1);
    l->resize.cubic = -0.75;
    l->resize.inside = pick(round, &c, 0, 1);
    if (pick(round, &c, 0, 3)) return d;
    l->resize.scale_h = (d.out.h + 0.5) / d.in[0].h; /* not the ratio of the sizes */
    l->resize.scale_w = (d.out.w + 0.25) / d.in[0].w;
    return d;
}

/* Shares of cubic interpolation are up to 5/4; a gather may read one element many times. */
double terms_of_map(const draw *d) {
    const bool one = (d->layer.op == HP_PRELU && d->layer.groups == 1) || d->layer.op == HP_GATHER;
    return 2 + 4.0 * (double)d->samples * d->out.h * d->out.w * (one ? d->out.c : 1);
}

draw draw_groupnorm(uint64_t round) {
    uint64_t c = 0;
    const int width = pick(round, &c, 0, 3) ? pick(round, &c, 1, 9) : pick(round, &c, 33, 70);
    draw d = {.layer = {.op = HP_GROUPNORM,
                        .n_in = 1,
                        .groups = pick(round, &c, 1, 5),
                        .eps = round % 2 ? 0.05f : 0.4f},
              .samples = pick(round, &c, 1, 3)};
    d.out =
        (hp_tensor){.h = pick(round, &c, 1, 13), .w = pick(round, &c, 1, 13), .c = width * d.layer.groups};
    d.in[0] = d.out;
    d.bias = pick(round, &c, 0, 1);
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    return d;
}

double bound_of_groupnorm(const draw *d) {
    const double inverse = 1 / sqrt((double)d->layer.eps);
    return 64 * eps() * inverse * inverse * inverse;
}

draw draw_linear(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_LINEAR, .n_in = 1}, .samples = pick(round, &c, 1, 9)};
    const int size = pick(round, &c, 0, 1) ? 1 : pick(round, &c, 2, 7);
    d.in[0] = (hp_tensor){.h = size, .w = size, .c = pick(round, &c, 1, 70)};
    d.out = (hp_tensor){.h = 1, .w = 1, .c = pick(round, &c, 1, 130)};
    d.bias = pick(round, &c, 0, 1);
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    return d;
}

draw draw_bn(uint64_t round) {
    uint64_t c = 0;
    draw d = {.layer = {.op = HP_BN,
                        .n_in = pick(round, &c, 1, 2),
                        .act = pick(round, &c, HP_ACT_NONE, HP_ACT_CLIP),
                        .act_arg.a = -1.5,
                        .act_arg.b = 2.25,
                        .eps = 1e-5f,
                        .momentum = 0.1f},
              .samples = pick(round, &c, 1, 4)};
    d.out =
        (hp_tensor){.h = pick(round, &c, 2, 13), .w = pick(round, &c, 1, 13), .c = pick(round, &c, 1, 70)};
    d.in[0] = d.in[1] = d.out;
    d.flags = pick(round, &c, 0, 1) ? HP_FLAG_ADD : 0;
    return d;
}

draw draw_pool(uint64_t round) {
    uint64_t c = 0;
    static const int ops[] = {HP_MAXPOOL, HP_AVGPOOL, HP_ADAPTPOOL};
    if (round % 4 == 3) return draw_pad(round);
    draw d = {.layer = {.op = ops[round % 4], .n_in = 1, .groups = 1, .window.dil_h = 1, .window.dil_w = 1},
              .samples = pick(round, &c, 1, 3)};
    hp_layer *l = &d.layer;
    l->window.kh = pick(round, &c, 1, 4);
    l->window.kw = pick(round, &c, 1, 4);
    l->window.stride_h = pick(round, &c, 1, 3);
    l->window.stride_w = pick(round, &c, 1, 3);
    l->window.pad_h = pick(round, &c, 0, l->window.kh / 2);
    l->window.pad_w = pick(round, &c, 0, l->window.kw / 2);
    l->window.ceil_mode = pick(round, &c, 0, 1);
    l->window.count_include_pad = pick(round, &c, 0, 1);
    d.in[0] =
        (hp_tensor){.h = pick(round, &c, 5, 14), .w = pick(round, &c, 5, 14), .c = pick(round, &c, 1, 80)};
    d.out.c = d.in[0].c;
    finish_window(&d);
    if (l->op != HP_ADAPTPOOL) return d;
    d.out.h = l->out_h = pick(round, &c, 1, 7);
    d.out.w = l->out_w = pick(round, &c, 1, 7);
    return d;
}

draw draw_point(uint64_t round) {
    uint64_t c = 0;
    static const int ops[] = {HP_ACT, HP_ADD, HP_CONCAT, HP_DROPOUT};
    draw d = {.layer = {.op = ops[round % 4], .n_in = 1, .p = 0.3f}, .samples = pick(round, &c, 1, 3)};
    const int last = d.layer.op == HP_ACT   ? HP_ACTS - 1
                     : d.layer.op == HP_ADD ? HP_ACT_CLIP /* a clamp */
                                            : HP_ACT_NONE;
    d.layer.act = pick(round, &c, HP_ACT_NONE, last);
    d.layer.act_arg.a = d.layer.act == HP_ACT_CLIP ? -1.5 : 0.25;
    d.layer.act_arg.b = d.layer.act == HP_ACT_CLIP ? 2.25 : 0.5;
    if (d.layer.op == HP_ADD) d.layer.n_in = 2;
    if (d.layer.op == HP_CONCAT) d.layer.n_in = pick(round, &c, 2, 4);
    d.out = (hp_tensor){.h = pick(round, &c, 1, 9), .w = pick(round, &c, 1, 9), .c = pick(round, &c, 1, 40)};
    for (int i = 0; i < d.layer.n_in; i++) d.in[i] = d.out;
    for (int i = 1; d.layer.op == HP_CONCAT && i < d.layer.n_in; i++)
        d.out.c += d.in[i].c = pick(round, &c, 1, 40);
    return d;
}

/* --- running --- */

rig *build(const hp_device_ops *ops, const draw *d) {
    return rig_new(ops, &d->layer, d->in, d->out, d->samples, d->bias, d->flags);
}

void fill(rig *r, double low, double high) {
    for (int i = 0; i < r->layer[1].n_in; i++) rig_fill(r, r->x[i], (uint64_t)(10 + i), low, high);
    rig_fill(r, r->dy, 20, low, high);
    rig_fill(r, HP_BUF_WEIGHTS, 21, low, high);
    rig_fill(r, HP_BUF_GRADS, 22, low, high);
    rig_fill(r, HP_BUF_OPTIMIZER, 23, low, high);
    rig_fill(r, HP_BUF_STATE, 24, 0.5, 1.5);
}

void run_all(rig *r) {
    hp_error err = {0};
    if (rig_open(r, &err) != HP_OK) fail_msg("%s", err.text);
    const int tasks[] = {RIG_PACK, RIG_FWD, RIG_BWDW, RIG_BWD};
    for (size_t i = 0; i < 4; i++)
        if (r->task[tasks[i]].op != HP_TASK_LOAD) assert_int_equal(rig_run(r, tasks[i]), HP_OK);
}

void compare(const rig *fast, const rig *exact, int32_t buffer, int32_t other, double factor,
             const rig *scale, const char *what) {
    for (int64_t i = 0; i < rig_elems(fast, buffer); i++) {
        const double a = rig_get(fast, buffer, i), b = rig_get(exact, other, i);
        const double bound = factor * (scale ? fabs(rig_get(scale, other, i)) : 1) + (double)FLT_MIN;
        if (fabs(a - b) <= bound) continue;
        fail_msg("%s[%lld]: %.9g, should be %.9g +- %.3g (n_in %d, %dx%d c%d -> %dx%d c%d, k %dx%d s %dx%d p "
                 "%dx%d d%d g%d act %d)",
                 what, (long long)i, a, b, bound, fast->layer[1].n_in, fast->tensor[0].h, fast->tensor[0].w,
                 fast->tensor[0].c, fast->tensor[fast->layer[1].n_in].h, fast->tensor[fast->layer[1].n_in].w,
                 fast->tensor[fast->layer[1].n_in].c, fast->layer[1].window.kh, fast->layer[1].window.kw,
                 fast->layer[1].window.stride_h, fast->layer[1].window.stride_w, fast->layer[1].window.pad_h,
                 fast->layer[1].window.pad_w, fast->layer[1].window.dil_h, fast->layer[1].groups,
                 fast->layer[1].act);
    }
}

double eps(void) {
    return (double)FLT_EPSILON;
}

int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

void rig_make_in_place(rig *r, bool forward, int gradient) {
    const int n = r->layer[1].n_in;
    if (forward) r->operand[r->task[RIG_FWD].operand] = r->x[0];
    if (forward) r->operand[r->task[RIG_BWD].operand + 1] = r->x[0];
    r->operand[r->task[RIG_BWD].operand + 3 + n + gradient] = r->dy;
}

void runs_twice_alike(const hp_device_ops *ops, const draw *d) {
    rig *a = build(ops, d), *b = build(ops, d);
    fill(a, -1, 1);
    fill(b, -1, 1);
    memset(rig_at(b, HP_BUF_SCRATCH), 0x33, (size_t)b->buffer[HP_BUF_SCRATCH].bytes);
    run_all(a);
    run_all(b);
    const int32_t results[] = {HP_BUF_GRADS, a->y, a->dx[0]};
    for (int k = 0; k < 3; k++)
        assert_memory_equal(rig_at(a, results[k]), rig_at(b, results[k]),
                            (size_t)a->buffer[results[k]].bytes);
    rig_free(a);
    rig_free(b);
}
