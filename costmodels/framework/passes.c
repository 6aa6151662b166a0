/* passes.c - the separate kernels that a framework runs beside a layer's: norms and activations, copies
 * between layouts, casts, attention's scores. */
#include "costmodels/framework/framework.h"

#include "networks/graph/layer.h"
#include "networks/graph/precision.h"

#include <math.h>

static void add_pass(hp_framework_passes *p, double bytes) {
    p->kernels++;
    p->bytes += bytes;
}

static void add_passes(hp_framework_passes *p, double kernels, double bytes) {
    p->kernels += (int)ceil(kernels);
    p->bytes += bytes;
}

/* --- what goes with the same kernel here --- */

/* Adds a convolution's bias (one read, one write, which matrix libraries fuse with the product; its gradient
 * is a sum), a norm (one read, one write), an addition (two reads, one write) and an activation. */
static void add_unfused(const hp_graph *g, const hp_layer *l, hp_task_op op, double y,
                        hp_framework_passes *p) {
    const bool deployed = g->deployed, matrix = hp_layer_is_matrix(l), alone = l->op == HP_ACT,
               bias = (l->op == HP_CONV || l->op == HP_CONVT) && l->n_param > 1;
    if (bias && op == HP_TASK_FWD && !hp_layer_is_dense(g, l)) add_pass(p, 2 * y);
    if (bias && op == HP_TASK_BWDW) add_pass(p, y);
    if (op == HP_TASK_FWD) {
        if (deployed && l->deployed.n_norm) add_pass(p, 2 * y);
        if (deployed && matrix && hp_layer_adds(l)) add_pass(p, 3 * y);
        if (l->act && !alone) add_pass(p, 2 * y);
    } else if (op == HP_TASK_BWD && l->act && !alone) {
        add_pass(p, 3 * y);
    }
}

/* Adds inference norms that are not folded into the preceding products; what follows a norm is fused with
 * it. */
static void add_unfolded(const hp_graph *g, const hp_layer *l, hp_task_op op, double y,
                         hp_framework_passes *p) {
    if (g->deployed && l->deployed.n_norm && op == HP_TASK_FWD) add_pass(p, (hp_layer_adds(l) ? 3 : 2) * y);
}

/* --- attention --- */

static double rounded_up(double n, int32_t unit) {
    return unit * ceil(n / unit);
}

/* Windows are whole: padded at the borders, and pixels brought together only by a roll are masked
 * afterwards. */
double hp_framework_scores(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    const hp_tensor *keys = &g->tensor[l->in[1]];
    const double heads = (double)c->out[HP_AXIS_C] / hp_head_channels(g, l), h = c->out[HP_AXIS_H],
                 w = c->out[HP_AXIS_W], each = heads * c->out[HP_AXIS_N];
    if (!hp_layer_is_windowed(l)) return each * h * w * keys->h * keys->w;
    return each * rounded_up(h, l->window.kh) * rounded_up(w, l->window.kw) * l->window.kh * l->window.kw;
}

static bool is_shifted(const hp_layer *l) {
    return l->window.pad_h > 0 || l->window.pad_w > 0;
}

/* One product writes the scores, another reads them; in between, they are scaled, masked, turned into
 * probabilities and dropped. */
static void add_scores(const hp_framework *f, const hp_graph *g, const hp_work_case *c, double element,
                       bool autocast, hp_framework_passes *p) {
    const hp_layer *l = &g->layer[c->layer];
    const bool backward = c->op == HP_TASK_BWD, shifted = is_shifted(l);
    const double *of = autocast ? f->attention.score_passes_autocast : f->attention.score_passes;
    double passes = of[backward];
    if (passes <= 0) return;
    /* adding a bias and masking what a shift separates take one read and one write each, in float32 under
     * autocast */
    if (l->n_param > 0) passes += backward ? 1 : 2;
    if (l->window.kh > 0 && shifted && !backward) passes += autocast ? 4 : 2;
    add_passes(p, passes / 2, passes * hp_framework_scores(g, c) * element);
}

/* Masks of shifted windows in float32, repeated for each image and head (written), a bias added (read,
 * written), cast for autocast, rows padded to 16 bytes (read, written), then read by the kernel. Backward
 * the kernel writes the sum's gradient, which is cast and added up; without a shift it is added up as it
 * is. */
static void add_masks(const hp_framework *f, const hp_graph *g, const hp_work_case *c, double element,
                      bool autocast, hp_framework_passes *p) {
    const hp_layer *l = &g->layer[c->layer];
    const bool shifted = is_shifted(l);
    if (!f->attention.makes_masks || l->window.kh <= 0 || l->n_param == 0) return;
    const double whole = hp_dtype_bytes(HP_F32), cast = autocast ? whole + element : 0,
                 scores = hp_framework_scores(g, c);
    if (c->op == HP_TASK_FWD && shifted)
        add_passes(p, autocast ? 4 : 3, scores * (3 * whole + cast + 3 * element));
    if (c->op == HP_TASK_BWD)
        add_passes(p, shifted && autocast ? 2 : 1, scores * (element + (shifted ? cast + whole : element)));
}

/* Queries, keys and values become contiguous per head, and the result is joined again. Windows are cut out
 * and put back, with a roll before and after if they are shifted. Gradients take the same path. */
static void add_moves(const hp_framework *f, const hp_layer *l, double y, bool autocast,
                      hp_framework_passes *p) {
    const bool shifted = is_shifted(l);
    const double windows = l->window.kh > 0 && f->attention.head_copies > 0 ? (shifted ? 4 : 2) : 0,
                 wider = autocast ? 1.5 : 1; /* a norm's results are float32 on their way into windows */
    add_passes(p, f->attention.head_copies + windows, 2 * (f->attention.head_copies + windows * wider) * y);
}

/* --- autocast --- */

/* Under 16-bit autocast, norms are float32. Their results are cast for the following product, and so is the
 * residual stream; parameters are float32 and cast in each step. y: bytes of the output in 16 bits. */
static void add_casts(const hp_graph *g, const hp_layer *l, hp_task_op op, double y, hp_framework_passes *p) {
    static const double CAST = 3; /* reads 4 bytes and writes 2, or the reverse: in units of 2 bytes */
    const bool fwd = op == HP_TASK_FWD, bwd = op == HP_TASK_BWD;
    double weights = 0;
    if ((l->op == HP_LAYERNORM || l->op == HP_RMSNORM) && (fwd || bwd)) {
        p->bytes += (fwd ? 2 : 3) * y; /* reads and writes 4 bytes instead of 2 */
        add_pass(p, CAST * y);
    }
    if (l->op == HP_ADD && fwd) p->bytes += 2 * y;
    for (int i = 0; i < l->n_param && hp_layer_is_matrix(l); i++)
        weights += (double)g->param[l->param[i]].count;
    if (weights > 0 && (fwd || op == HP_TASK_BWDW)) add_passes(p, l->n_param, CAST * 2 * weights);
}

/* --- layouts --- */

static bool in_tf32(const hp_framework *f, const hp_machine *m, hp_dtype x) {
    return f->kernels.tf32 && x == HP_F32 && m->device.tf32_flops_per_s > 0;
}

/* With 16-bit matrix units, the input and half of the results are transposed; the other kernels write either
 * layout. In tf32, forward passes have kernels for both layouts, and gradients are transposed both ways. */
static bool on_matrix_units(const hp_machine *m, hp_dtype x) {
    return (x == HP_BF16 && m->device.bf16_flops_per_s > 0) ||
           (x == HP_F16 && m->device.fp16_flops_per_s > 0);
}

hp_framework_passes hp_framework_passes_of(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                                           hp_dtype dtype, const hp_work_case *c) {
    hp_framework_passes p = {0, 0};
    if (c->layer < 0 || m->device.is_cpu) return p;
    const hp_layer *l = &g->layer[c->layer];
    const hp_dtype x = hp_tensor_dtype(&g->tensor[l->in[0]], dtype),
                   y = hp_tensor_dtype(&g->tensor[l->out], dtype);
    const double x_bytes = hp_work_elems(c->in) * hp_dtype_bytes(x),
                 y_bytes = hp_work_elems(c->out) * hp_dtype_bytes(y);
    const bool gradient = c->op == HP_TASK_BWD || c->op == HP_TASK_BWDW,
               half = g->deployed && (g->prec == HP_PREC_FP16 || g->prec == HP_PREC_BF16),
               attends = l->op == HP_ATTENTION,
               autocast = f->kernels.autocast && (hp_dtype_bytes(y) == 2 || (half && attends));
    const double element = autocast ? 2 : hp_dtype_bytes(y);
    if (!f->kernels.fuses) add_unfused(g, l, (hp_task_op)c->op, y_bytes, &p);
    if (f->kernels.fuses && f->kernels.unfolded) add_unfolded(g, l, (hp_task_op)c->op, y_bytes, &p);
    if (attends) {
        add_scores(f, g, c, element, autocast, &p);
        add_masks(f, g, c, element, autocast, &p);
        add_moves(f, l, hp_work_elems(c->out) * element, autocast, &p);
    }
    if (autocast) add_casts(g, l, (hp_task_op)c->op, y_bytes, &p);
    const bool map = (l->op == HP_CONV || l->op == HP_CONVT) && !hp_layer_is_dense(g, l);
    const bool half_units = f->kernels.channels_first && map && on_matrix_units(m, x),
               gradient_units = f->kernels.channels_first && map && gradient && in_tf32(f, m, x);
    if (half_units || gradient_units) {
        add_pass(&p, 2 * x_bytes);
        add_pass(&p, (half_units ? 1 : 2) * y_bytes);
    }
    return p;
}
