/* memory_gpu.c - bytes a GPU needs beyond the tensors: weights in its kernels' layout, and scratch.
 *
 * A layer's scratch holds the needs of our own kernels (plan/memory/gpu_scratch.h), then the workspace of
 * cuDNN or cuBLASLt. Many cuDNN engines first copy a tensor into another layout. The workspace has room for
 * such copies of small layers, but not of large ones, which are short of memory. There, engines that want
 * more are rejected, or the layer is computed piece by piece (exec/cuda/dnn/dnn.h). */
#include "plan/memory/memory_device.h"
#include "plan/memory/gpu_scratch.h"
#include "networks/graph/layer.h"
#include "base/round.h"

enum { LINES = 64 };
static const int64_t MOST_WORKSPACE = INT64_C(64) << 20, LEAST_WORKSPACE = INT64_C(4) << 20;

static hp_dtype stored(const hp_graph *g, int tensor, hp_dtype real) {
    return hp_tensor_dtype(&g->tensor[tensor], real);
}

int64_t hp_gpu_workspace_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype) {
    enum { COPIES = 2 };
    const hp_layer *l = &g->layer[layer];
    const int64_t x = s->n * s->ih * s->iw * s->ic, y = s->n * s->oh * s->ow * s->oc;
    const int64_t all = (x + y + hp_gpu_weight_elems(l, s)) * hp_dtype_bytes(dtype),
                  bytes = LEAST_WORKSPACE + COPIES * hp_round_up(all, LINES);
    return bytes < MOST_WORKSPACE ? bytes : MOST_WORKSPACE;
}

/* --- training --- */

int64_t hp_gpu_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype) {
    const hp_layer *l = &g->layer[layer];
    if (!hp_layer_is_matrix(l) || s->oc < 1 || s->ic < 1) return 0;
    if (backward && g->tensor[l->in[0]].producer == 0) return 0; /* the image needs no gradient */
    return hp_gpu_weight_elems(l, s) * hp_dtype_bytes(stored(g, l->out, dtype));
}

int64_t hp_gpu_task_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s,
                                  hp_dtype dtype) {
    const hp_layer *l = &g->layer[layer];
    const bool computes = op == HP_TASK_FWD || op == HP_TASK_BWD || op == HP_TASK_BWDW;
    const int64_t own = hp_gpu_scratch_bytes(g, layer, op, s);
    if (!hp_layer_is_matrix(l) || !computes) return own;
    return own + hp_gpu_workspace_bytes(g, layer, s, stored(g, l->out, dtype));
}

/* --- inference --- */

/* Bytes of quantised weights: each tap's inputs padded to whole words. Each output adds a scale, a shift, a
 * sum of its weights and, for raw pixels, every tap's share of that sum. */
static int64_t byte_weights(const hp_layer *l, const hp_shape *s) {
    enum { WORD = 4, TERMS = 3 };
    const hp_gpu_weights w = hp_gpu_weights_of(l, s);
    const int64_t ins = l->op == HP_CONVT ? s->ic : w.ins;
    return hp_round_up(s->oc * w.taps * hp_round_up(ins, WORD), LINES) +
           4 * (int64_t)s->oc * (TERMS + w.taps);
}

/* Adds a factor and a bias per channel. */
static int64_t real_weights(const hp_layer *l, const hp_shape *s, hp_dtype x) {
    return hp_round_up(hp_gpu_weight_elems(l, s) * hp_dtype_bytes(x), LINES) + 8 * (int64_t)s->oc;
}

int64_t hp_gpu_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real) {
    const hp_layer *l = &g->layer[layer];
    if (s->oc < 1 || !hp_layer_is_matrix(l)) return hp_infer_pack_bytes(g, layer, s, real);
    const hp_dtype x = stored(g, l->in[0], real);
    return hp_round_up(x == HP_U8 || l->deployed.dynamic ? byte_weights(l, s) : real_weights(l, s, x), LINES);
}

/* Bytes for input that is quantised at run time: the quantised sample, a scale per output, and the range
 * while it is computed. */
static int64_t dynamic_bytes(const hp_shape *s) {
    enum { RANGE = 64 };
    return hp_round_up((int64_t)s->ih * s->iw * s->ic, LINES) + hp_round_up(4 * (int64_t)s->oc, LINES) +
           RANGE;
}

int64_t hp_gpu_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real) {
    const hp_layer *l = &g->layer[layer];
    const int64_t own = hp_gpu_scratch_bytes(g, layer, HP_TASK_FWD, s);
    if (s->oc < 1 || !hp_layer_is_matrix(l)) return own;
    if (l->deployed.dynamic) return own + dynamic_bytes(s);
    const hp_dtype x = stored(g, l->in[0], real);
    return x == HP_U8 ? own : own + hp_gpu_workspace_bytes(g, layer, s, x);
}
