/* framework.c - the table of frameworks, and what they do to a layer. */
#include "costmodels/framework/framework.h"

#include "costmodels/rows.h"
#include "plan/graph/layer.h"
#include "plan/graph/precision.h"

#include <math.h>
#include <string.h>

/* An operation's way through Python, autograd and the dispatcher to its launch takes 5 to 25 us; 10 is near the
 * geometric mean. */
static const double EAGER_DISPATCH_S = 10e-6;

/* A module of Python runs its forward function, arguments are checked, a layer above calls it. Inference of ResNet-50 with one
 * image takes 10.4 ms on a V100 and 10.7 on a T4, that is of the host, for 175 operations; torchbench counts 13.3 ms. */
static const double EAGER_MODULE_S = 59e-6;

/* MPI that reads the device's memory: its messages go over the link, as NCCL's do. */
static const char gpu_aware[] =
    "hplan-cost 2\nmachine any\ndate 2026-11-23\n"
    "path * ipc | guess 0.5 0 never run: GPU-aware MPI | latency:20e-6 copies:0 host:0 hop:0\n"
    "path * mpi | guess 0.5 0 never run: GPU-aware MPI | latency:20e-6 copies:0 host:0 hop:0\n";

#define EAGER_SOURCE                                                                                         \
    "5 to 25 us for an operation in eager mode: descriptions of its way through the dispatcher. "            \
    "59 us where a module of Python starts it: ResNet-50, one image, a V100, 10.4 ms for 175 operations "    \
    "(resnet50v1.5 of NVIDIA/DeepLearningExamples); 76 us in pytorch/benchmark, pull request 668. "          \
    "Convolutions of 3x3 with stride 1 in float32 by Winograd's algorithm, in all three passes: "            \
    "tensorflow/tensorflow, issue 9322, lists what PyTorch chose; F(2x2, 3x3): arXiv 1509.09308. "           \
    "Four operations for every tensor: SGD with momentum and weight decay, nine: AdamW, torch.optim. "       \
    "allow_tf32 of torch.backends.cudnn is on by default, that of torch.backends.cuda.matmul is not: "       \
    "documentation of 1.12. "                                                                                \
    "Nothing is fused in eager mode; contiguous tensors are channels first: the gradients' kernels in "      \
    "tf32 want channels last (a profile of AlexNet's training on an A100, handbook of the Kempner "          \
    "Institute: fprop for either layout, dgrad and wgrad between nchwToNhwc). cuDNN's bn_fw_tr_1C11 and "    \
    "bn_bw_1C11 are launched with a block of 512 threads for each channel (traces of profilers: grids of "   \
    "64 and 128). Attention of 1.13 is baddbmm, softmax, bmm on scores that are stored: one write, a read "  \
    "and a write, "                                                                                          \
    "one read; backward their gradients, seven."

#define EAGER_PYTORCH                                                                                        \
    .dispatch_s = EAGER_DISPATCH_S, .module_s = EAGER_MODULE_S,                                              \
    .update_ops = {[HP_SGD] = 4, [HP_ADAMW] = 9}, .tf32 = true, .channels_first = true, .winograd = true,    \
    .norm_blocks = true, .score_passes = {4, 7}, .rows = gpu_aware
#define LAZY_CONTEXT                                                                                         \
    287e6 /* pytorch/pytorch, pull request 86509: 287 MB with lazily loaded kernels, which 1.13 has */

const hp_framework hp_frameworks[] = {
    {.name = "pytorch-1.13",
     EAGER_PYTORCH,
     .eager = true,
     .context_bytes = LAZY_CONTEXT,
     .source = EAGER_SOURCE},
    {.name = "mpi4dl", /* 1.12, which loads all kernels */
     EAGER_PYTORCH,
     .eager = true,
     .sum_ops = 4, /* clone, cat; clone, divide: torchgems.comm */
     /* 0.48 to 0.50 ms for six ends of messages among square tiles and 0.27 to 0.33 for the four of a strip: both with 68 to
      * 70 us each, beside what copies, pastes and MVAPICH2-GDR's messages take (experiments/mpi4dl-halo.txt) */
     .message_ops = 6.9,
     .message_ops_read =
         2.5,        /* cuda.synchronize and isend; zeros, cuda.synchronize and irecv: torchgems.spatial */
     .pastes = true, /* there, and CopySlices of PyTorch */
     .source = EAGER_SOURCE
     " What the host takes at an end of a message: MPI4DL, chart of the halo exchange alone."},
    {.name = "torchgpipe", EAGER_PYTORCH, .source = EAGER_SOURCE}, /* recomputes what it does not keep */
    {.name = "megatron-lm",
     .dispatch_s = EAGER_DISPATCH_S,
     .module_s = EAGER_MODULE_S,
     .fuses = true,
     .eager = true,
     .context_bytes = LAZY_CONTEXT,
     .score_passes = {6.5, 9.5},
     .rows = gpu_aware,
     .source = "NVIDIA/Megatron-LM, model/transformer.py before flash attention: baddbmm writes the scores, "
               "a fused kernel scales, "
               "masks and makes probabilities, dropout reads and writes them and writes a mask of a byte, "
               "bmm reads them; backward "
               "their gradients. Bias, GELU, dropout and additions are fused, one kernel updates all "
               "parameters (apex). Host times "
               "as of PyTorch."},
    {.name = "horovod-tf",
     .dispatch_s = EAGER_DISPATCH_S,
     .update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1},
     .cycle_s = 5e-3,
     .fuses = true,
     .eager = true,
     .rows = gpu_aware,
     .source =
         "HOROVOD_CYCLE_TIME 5 ms before 0.21.0: its release notes. A graph executor fuses what it may. "
         "Time to start an operation as of PyTorch: a guess."},
    {.name = "tensorrt",
     .fuses = true,
     .vector = 32,
     .source =
         "convolution, bias, norm, activation and addition are one kernel; engines are launched whole. "
         "INT8 is laid out in vectors of 32 channels, NC/32HW32: developer guide, data format descriptions."},
    {0}};

hp_status hp_framework_find(const char *name, const hp_framework **f, hp_error *err) {
    char all[200] = "hplan";
    *f = NULL;
    if (!name || strcmp(name, "hplan") == 0) return HP_OK;
    for (int i = 0; hp_frameworks[i].name; i++) {
        if (strcmp(hp_frameworks[i].name, name) == 0) *f = &hp_frameworks[i];
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, ", %s", hp_frameworks[i].name);
    }
    return *f ? HP_OK : hp_fail(err, HP_EUSAGE, "--as: there is no framework '%.40s'; choose %s", name, all);
}

hp_cost_table *hp_framework_table(hp_arena *arena, const hp_framework *f, const hp_cost_table *t) {
    hp_cost_table *own = NULL, *all = HP_NEW(arena, hp_cost_table, 1);
    hp_error err;
    *all = *t;
    if (!f->rows) return all;
    const hp_status parsed = hp_rows_parse(arena, f->rows, f->name, &own, &err);
    HP_ASSERT(parsed == HP_OK); /* tests read them all */
    all->n = own->n;
    all->row = own->row;
    all->base = t;
    return all;
}

static double elems(const int32_t length[HP_AXES]) {
    double n = 1;
    for (int a = 0; a < HP_AXES; a++) n *= length[a];
    return n;
}

/* --- kernels of their own --- */

static void add_pass(hp_framework_passes *p, double bytes) {
    p->kernels++;
    p->bytes += bytes;
}

/* What goes with the same kernel here: a convolution's bias (read, written, which the libraries of matrices do with the
 * product; its gradient is a sum), a norm (read, written), an addition (two read, one written), an activation. */
static void add_unfused(const hp_graph *g, const hp_layer *l, hp_task_op op, double y,
                        hp_framework_passes *p) {
    const bool deployed = g->deployed, matrix = hp_layer_is_matrix(l), alone = !deployed && l->op == HP_ACT,
               bias = (l->op == HP_CONV || l->op == HP_CONVT) && l->n_param > 1;
    if (bias && op == HP_TASK_FWD && !hp_layer_is_dense(g, l)) add_pass(p, 2 * y);
    if (bias && op == HP_TASK_BWDW) add_pass(p, y);
    if (op == HP_TASK_FWD) {
        if (deployed && l->n_norm) add_pass(p, 2 * y);
        if (deployed && matrix && hp_layer_adds(l)) add_pass(p, 3 * y);
        if (l->act && !alone) add_pass(p, 2 * y);
    } else if (op == HP_TASK_BWD && l->act && !alone) {
        add_pass(p, 3 * y);
    }
}

/* All queries by all keys, those of the future included, of each head. */
static double scores(const hp_graph *g, const hp_work_case *c) {
    const hp_layer *l = &g->layer[c->layer];
    const hp_tensor *keys = &g->tensor[l->in[1]];
    const double heads = (double)c->out[HP_AXIS_C] / hp_head_channels(g, l);
    const double all = (double)c->out[HP_AXIS_N] * c->out[HP_AXIS_H] * c->out[HP_AXIS_W] * keys->h * keys->w;
    return heads * (l->causal ? all : (double)c->pairs);
}

/* A product makes the scores, another reads them; between, they are scaled, masked, made probabilities, dropped. */
static void add_scores(const hp_framework *f, const hp_graph *g, const hp_work_case *c, double element,
                       hp_framework_passes *p) {
    const bool backward = c->op == HP_TASK_BWD;
    if (g->layer[c->layer].op != HP_ATTENTION || f->score_passes[backward] <= 0) return;
    p->kernels += (int)ceil(f->score_passes[backward] / 2); /* one reads them and writes them */
    p->bytes += f->score_passes[backward] * scores(g, c) * element;
}

static bool in_tf32(const hp_framework *f, const hp_machine *m, hp_dtype x) {
    return f->tf32 && x == HP_F32 && m->device.tf32_flops_per_s > 0;
}

/* On matrix units of 16 bits; in tf32 a forward pass has kernels for either layout. */
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
    const double x_bytes = elems(c->in) * hp_dtype_bytes(x), y_bytes = elems(c->out) * hp_dtype_bytes(y);
    if (!f->fuses) add_unfused(g, l, (hp_task_op)c->op, y_bytes, &p);
    add_scores(f, g, c, hp_dtype_bytes(y), &p);
    const bool gradient = c->op == HP_TASK_BWD || c->op == HP_TASK_BWDW;
    const bool map = (l->op == HP_CONV || l->op == HP_CONVT) && !hp_layer_is_dense(g, l);
    const bool transposes =
        f->channels_first && map && (on_matrix_units(m, x) || (gradient && in_tf32(f, m, x)));
    if (transposes) {
        add_pass(&p, 2 * x_bytes);
        add_pass(&p, 2 * y_bytes);
    }
    return p;
}

void hp_framework_units(const hp_framework *f, const hp_machine *m, hp_work *w) {
    char *conv = strstr(w->key, ".conv"), *type = strstr(w->key, " f32");
    const bool dense = w->rates && w->rates != hp_rates_stem;
    if (!f->tf32 || m->device.tf32_flops_per_s <= 0 || !conv || !type || dense) return;
    const size_t rest = strlen(type + 1);
    if ((size_t)(type - w->key) + rest + 3 > sizeof w->key) return;
    memmove(type + 2, type + 1, rest + 1);
    type[1] = 't';
}

/* F(2x2, 3x3) makes 4 results of 16 products instead of 36 (Lavin, Gray, arXiv 1509.09308). */
static const double WINOGRAD_SAVES = 36.0 / 16;

/* Where an activation's gradient is a kernel of its own, that alone reads the output, and no pass of the norm's does. */
static void shorten_norm(const hp_framework *f, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                         hp_work *w) {
    const hp_layer *l = &g->layer[c->layer];
    if (f->fuses || g->deployed || l->op != HP_BN) return;
    if (c->op != HP_TASK_BWD && c->op != HP_TASK_BSTATS) return;
    const int passes = c->op == HP_TASK_BWD && !c->sums ? 2 : 1;
    w->bytes -= passes * elems(c->out) * hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->out], dtype));
}

void hp_framework_amounts(const hp_framework *f, const hp_machine *m, const hp_graph *g, hp_dtype dtype,
                          const hp_work_case *c, hp_work *w) {
    if (m->device.is_cpu || c->layer < 0) return;
    const hp_layer *l = &g->layer[c->layer];
    shorten_norm(f, g, dtype, c, w);
    if (l->op == HP_ATTENTION && f->score_passes[0] > 0) {
        w->flops *= scores(g, c) * hp_head_channels(g, l) / ((double)c->pairs * c->out[HP_AXIS_C]);
        w->attends = NULL; /* its products are kernels of their own, of which nothing is known */
        w->rows = 0;
    }
    if (!f->winograd) return;
    const bool suits = l->op == HP_CONV && l->kh == 3 && l->kw == 3 && l->stride_h == 1 && l->stride_w == 1 &&
                       l->dil_h <= 1 && l->dil_w <= 1 && l->groups <= 1;
    const bool in_f32 = strstr(w->key, " f32") != NULL; /* after hp_framework_units */
    if (suits && in_f32) w->flops /= WINOGRAD_SAVES;
}

static double padded(double channels, int vector) {
    return vector * ceil(channels / vector);
}

void hp_framework_pad(const hp_framework *f, const hp_machine *m, const hp_graph *g, const hp_work_case *c,
                      hp_work *w) {
    if (f->vector <= 0 || c->layer < 0 || m->device.is_cpu || m->device.int8_ops_per_s <= 0) return;
    const hp_layer *l = &g->layer[c->layer];
    const double ins = c->in[HP_AXIS_C], outs = c->out[HP_AXIS_C];
    if (ins < 1 || outs < 1) return;
    const double more_in = padded(ins, f->vector) / ins, more_out = padded(outs, f->vector) / outs;
    const bool x_vector = g->tensor[l->in[0]].store == HP_STORE_U8,
               y_vector = g->tensor[l->out].store == HP_STORE_U8;
    if (x_vector) w->bytes += (more_in - 1) * (double)c->in_elems;
    if (y_vector) w->bytes += (more_out - 1) * elems(c->out);
    if (!x_vector || !hp_layer_is_matrix(l) || l->groups > 1) return;
    w->flops *= more_in * more_out;
    w->depth *= more_in;
    w->cols *= more_out;
}

int hp_framework_blocks(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                        const hp_work_case *c) {
    const bool trains = c->layer >= 0 && !c->eval && !g->deployed && g->layer[c->layer].op == HP_BN;
    return f->norm_blocks && trains && !m->device.is_cpu ? c->out[HP_AXIS_C] : 0;
}

int hp_framework_numbers(const hp_framework *f) {
    const double own[] = {
        f->dispatch_s,  f->module_s, f->update_ops[HP_SGD], f->sum_ops,         f->cycle_s,
        f->message_ops, f->vector,   f->context_bytes,      f->score_passes[0], f->score_passes[1]};
    int n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) n += own[i] > 0;
    for (const char *s = f->rows; s && (s = strstr(s, "latency:")); s++) n++;
    return n;
}
