/* framework.c - the table of frameworks, and their effects on a layer. */
#include "costmodels/framework/framework.h"

#include "costmodels/framework/framework_rows.h"

#include "base/nearest.h"
#include "costmodels/cost_rows.h"
#include "networks/graph/layer.h"
#include "networks/graph/precision.h"

#include <math.h>
#include <string.h>

/* From Python through autograd and the dispatcher to the launch, an operation takes 5 to 25 us; 10 is near
 * the geometric mean. */
static const double EAGER_DISPATCH_S = 10e-6;

/* A Python module runs its forward function, its arguments are checked, and a layer above calls it. Inference
 * of ResNet-50 with one image takes 10.4 ms on a V100 and 10.7 on a T4, so the host determines it, for 175
 * operations; torchbench reports 13.3 ms. */
static const double EAGER_MODULE_S = 59e-6;

/* Guesses: compiled code calls kernels without the dispatcher; MXNet's engine and TensorFlow's executor are
 * not Python modules. */
static const double COMPILED_DISPATCH_S = 2e-6, ENGINE_DISPATCH_S = 5e-6;
/* Inference of one image by ResNet-50, minus the time of its kernels. */
#define MXNET_STEP_S      3.2e-3
#define TENSORFLOW_STEP_S 2.7e-3
#define MXNET_SOURCE                                                                                         \
    "NVIDIA's MXNet: maps channels last, batch norm, addition and ReLU are one kernel, in inference too; "   \
    "5 us to start an operation: a guess. "                                                                  \
    "Time of a step's call: fitted to published throughput, inference of ResNet-50 with one to eight "       \
    "images (NVIDIA/DeepLearningExamples)."

#define EAGER_SOURCE                                                                                         \
    "5 to 25 us for an operation in eager mode: descriptions of its way through the dispatcher. "            \
    "59 us where a module of Python starts it: ResNet-50, one image, a V100, 10.4 ms for 175 operations "    \
    "(resnet50v1.5 of NVIDIA/DeepLearningExamples); 76 us in pytorch/benchmark, pull request 668. "          \
    "Convolutions of 3x3 with stride 1 in float32 by Winograd's algorithm, in all three passes: "            \
    "tensorflow/tensorflow, issue 9322, lists what PyTorch chose; F(2x2, 3x3): arXiv 1509.09308. "           \
    "Four operations for every tensor: SGD with momentum and weight decay, nine: AdamW, torch.optim; they "  \
    "read or write it, its gradient or a state 11 and 22 times. "                                            \
    "allow_tf32 of torch.backends.cudnn is on by default, that of torch.backends.cuda.matmul is not: "       \
    "documentation of 1.12. Quantised operations run on processors alone: documentation of torch.ao. "       \
    "Nothing is fused in eager mode; contiguous tensors are channels first: the gradients' kernels in "      \
    "tf32 want channels last (a profile of AlexNet's training on an A100, handbook of the Kempner "          \
    "Institute: fprop for either layout, dgrad and wgrad between nchwToNhwc). cuDNN's bn_fw_tr_1C11 and "    \
    "bn_bw_1C11 are launched with a block of 512 threads for each channel (traces of profilers: grids of "   \
    "64 and 128). A layer norm's gradients of scale and shift are a kernel of its own with a block for 16 "  \
    "channels (GammaBetaBackwardCUDAKernel in layer_norm_kernel.cu). Attention of 1.13 is baddbmm, "         \
    "softmax, bmm on scores that are stored: one write, a read "                                             \
    "and a write, "                                                                                          \
    "one read; backward their gradients, seven."

/* GammaBetaBackwardCUDAKernel of PyTorch 1.11 to 2.7: 16 x 32 threads, no other block shares their
 * channels. */
enum { COLUMN_CHANNELS = 16 };

/* Operations started by Python modules, in any layout. */
#define PYTORCH                                                                                              \
    .host.dispatch_s = EAGER_DISPATCH_S, .host.module_s = EAGER_MODULE_S,                                    \
    .host.update_ops = {[HP_SGD] = 4, [HP_ADAMW] = 9}, .host.reads_finite = true, .kernels.tf32 = true,      \
    .kernels.winograd = true, .kernels.autocast = true, .kernels.no_int8 = true,                             \
    .kernels.column_channels = COLUMN_CHANNELS, .kernels.update_passes = {[HP_SGD] = 11, [HP_ADAMW] = 22},   \
    .memory.blocks = true
/* Of 1.x, attention on scores that are stored. */
#define STORED_SCORES                                                                                        \
    .attention.score_passes = {4, 7}, .attention.score_passes_autocast = {10, 14},                           \
    .attention.head_copies = 4, .attention.stores_scores = true
#define CONTIGUOUS .layout = "channels first", .kernels.channels_first = true, .kernels.norm_blocks = true
#define LAZY_CONTEXT                                                                                         \
    287e6 /* pytorch/pytorch, pull request 86509: 287 MB with lazily loaded kernels, as in 1.13 */

/* DistributedDataParallel: gradient_as_bucket_view is off by default. */
#define DATA_PARALLEL                                                                                        \
    .memory.eager = true, .memory.context_bytes = LAZY_CONTEXT, .memory.copies_gradients = true

#define AUTOCAST_SOURCE                                                                                      \
    " 16 bits are torch.autocast's: its operations that stay float32 (norms, softmax, losses), weights "     \
    "cast once a step: documentation of torch.amp. In float16 its GradScaler reads on the host whether all " \
    "gradients are finite (found_inf.item() in grad_scaler.py). matmul on heads that are cut from one "      \
    "product copies "                                                                                        \
    "them, as bmm wants batches that are one dimension; windows are rolled, cut out and put back by "        \
    "copies: timm's and torchvision's vision_transformer.py and swin_transformer.py."

#define MEGATRON_SOURCE                                                                                      \
    "NVIDIA/Megatron-LM, model/transformer.py before flash attention: baddbmm writes the scores, a fused "   \
    "kernel scales, masks and makes probabilities, dropout reads and writes them and writes a mask of a "    \
    "byte, bmm reads them; backward their gradients. Bias, GELU, dropout and additions are fused, one "      \
    "kernel updates all parameters (apex). Host times as of PyTorch. Sums over the tensor-parallel group "   \
    "are "                                                                                                   \
    "all-reduces of torch.distributed, or all-gathers and reduce-scatters: its module mappings."
#define MEGATRON                                                                                             \
    .host.dispatch_s = EAGER_DISPATCH_S, .host.module_s = EAGER_MODULE_S, .kernels.fuses = true,             \
    .layout = "tokens by channels", .attention.sums_tokens = true, .memory.eager = true,                     \
    .memory.context_bytes = LAZY_CONTEXT, .attention.stores_scores = true, .memory.blocks = true,            \
    .memory.half_model = true, .rows = {hp_rows_gpu_aware},                                                  \
    .attention.drops = true /* what it keeps: Korthikanti et al., arXiv 2205.05198, equation 1 */

#define MXNET                                                                                                \
    .layout = "channels last", .host.dispatch_s = ENGINE_DISPATCH_S,                                         \
    .host.update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1}, .kernels.fuses = true, .kernels.unfolded = true,      \
    .attention.stores_scores = true, .memory.eager = true,                                                   \
    .rows = {hp_rows_gpu_aware, hp_rows_mxnet, hp_rows_cudnn}

const hp_framework hp_frameworks[] = {
    {.name = "pytorch-1.13",
     PYTORCH,
     STORED_SCORES,
     CONTIGUOUS,
     .rows = {hp_rows_gpu_aware, hp_rows_pytorch_1, hp_rows_cudnn},
     DATA_PARALLEL,
     .source = EAGER_SOURCE AUTOCAST_SOURCE},
    {.name = "pytorch-1.13-channels-last",
     .layout = "channels last",
     PYTORCH,
     STORED_SCORES,
     .rows = {hp_rows_gpu_aware, hp_rows_pytorch_1, hp_rows_cudnn},
     DATA_PARALLEL,
     .source = EAGER_SOURCE AUTOCAST_SOURCE " Maps are channels last: nothing is transposed."},
    {.name = "pytorch-2",
     PYTORCH,
     .layout = "channels first",
     .kernels.norm_blocks = true,
     .attention.head_copies = 1,
     .attention.makes_masks = true,
     .rows = {hp_rows_gpu_aware, hp_rows_cudnn},
     DATA_PARALLEL,
     .source = EAGER_SOURCE AUTOCAST_SOURCE " Maps are not transposed around convolutions: timm's results on "
                                            "an RTX 4090 are nearer to that than to twice "
                                            "the transpositions of 1.13. scaled_dot_product_attention reads "
                                            "queries, keys and values as they lie and stores "
                                            "no scores: documentation of PyTorch 2.0. Shifted windows "
                                            "repeat their mask for each image and head, add the bias, cast "
                                            "the sum and pad its rows: timm's swin_transformer.py, pad_bias "
                                            "of PyTorch's attention.cpp."},
    {.name = "pytorch-2-compiled",
     .layout = "channels first",
     .host.dispatch_s = COMPILED_DISPATCH_S,
     .host.region_s = 100e-6,
     .host.update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1},
     .kernels.fuses = true,
     .kernels.unfolded = true,
     .kernels.no_int8 = true,
     .kernels.tf32 = true,
     .kernels.winograd = true,
     .memory.eager = true,
     .memory.context_bytes = LAZY_CONTEXT,
     .rows = {hp_rows_gpu_aware, hp_rows_pytorch_compiled, hp_rows_cudnn},
     .source = "torch.compile fuses what is not a product or convolution into kernels of its own, and calls "
               "cuDNN for convolutions as eager mode does: documentation of torch.compiler. 2 us to start an "
               "operation: a guess. A parallel region's "
               "100 us: fitted to published throughput, "
               "inference of one image on 14 cores (timm's results)."},
    {.name = "mpi4dl", /* based on 1.12, which loads all kernels */
     PYTORCH,
     STORED_SCORES,
     CONTIGUOUS,
     .rows = {hp_rows_gpu_aware},
     .memory.eager = true,
     .host.sum_ops = 4, /* clone, cat; clone, divide: torchgems.comm */
     /* Six ends of messages among square tiles take 0.48 to 0.50 ms, the four of a strip 0.27 to 0.33 ms.
      * Both fit 68 to 70 us each, beside copies, pastes and MVAPICH2-GDR's messages
      * (experiments/mpi4dl-halo.txt). */
     .host.message_ops = 6.9,
     .host.message_ops_read =
         2.5, /* cuda.synchronize and isend; zeros, cuda.synchronize and irecv: torchgems.spatial */
     .memory.pastes = true, /* there, and CopySlices of PyTorch */
     .source = EAGER_SOURCE
     " What the host takes at an end of a message: MPI4DL, chart of the halo exchange alone."},
    {.name = "torchgpipe", /* recomputes what it does not keep */
     PYTORCH,
     STORED_SCORES,
     CONTIGUOUS,
     .rows = {hp_rows_gpu_aware},
     .source = EAGER_SOURCE},
    {.name = "megatron-lm", MEGATRON, .attention.score_passes = {6.5, 9.5}, .source = MEGATRON_SOURCE},
    {.name = "megatron-selective", /* there, section 5: scores are made once more before the backward pass */
     MEGATRON,
     .attention.score_passes = {6.5, 9.5 + 6.5},
     .attention.again = true,
     .source = MEGATRON_SOURCE " Its selective recomputation of attention: Korthikanti et al."},
    {.name = "deepspeed", /* a model of 16 bits, not autocast */
     .host.dispatch_s = EAGER_DISPATCH_S,
     .host.module_s = EAGER_MODULE_S,
     .host.update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1},
     .host.reads_finite = true,
     .kernels.no_int8 = true,
     .kernels.tf32 = true,
     .kernels.column_channels = COLUMN_CHANNELS,
     .memory.blocks = true,
     .memory.half_model = true,
     STORED_SCORES,
     CONTIGUOUS,
     DATA_PARALLEL,
     .rows = {hp_rows_gpu_aware, hp_rows_pytorch_1, hp_rows_cudnn},
     .source = EAGER_SOURCE
     " The model itself is of 16 bits, gradients are copied into contiguous buffers, FusedAdam updates all "
     "parameters "
     "with one kernel: DeepSpeed's documentation of fp16, zero_optimization and optimizers."},
    {.name = "mxnet", MXNET, .host.step_s = MXNET_STEP_S, .source = MXNET_SOURCE},
    {.name = "mxnet-graphs", MXNET, .source = MXNET_SOURCE " CUDA graphs start whole steps."},
    {.name = "tensorflow-1.15",
     .layout = "channels last",
     .host.dispatch_s = EAGER_DISPATCH_S,
     .host.step_s = TENSORFLOW_STEP_S,
     .host.update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1},
     .kernels.fuses = true,
     .kernels.unfolded = true,
     .attention.stores_scores = true,
     .memory.eager = true,
     .kernels.winograd = true,
     .rows = {hp_rows_gpu_aware, hp_rows_tensorflow, hp_rows_cudnn},
     .source =
         "A graph executor, maps channels last; norms of inference are kernels of their own. Time of a "
         "session's call: fitted to published throughput, inference of ResNet-50 with one to eight images "
         "(NVIDIA/DeepLearningExamples)."},
    {.name = "horovod-tf",
     .layout = "channels last",
     .host.dispatch_s = EAGER_DISPATCH_S,
     .host.update_ops = {[HP_SGD] = 1, [HP_ADAMW] = 1},
     .host.cycle_s = 5e-3,
     .kernels.fuses = true,
     .memory.eager = true,
     .attention.stores_scores = true,
     .kernels.autocast = true, /* its graph rewrite for mixed precision has such lists, too */
     .rows = {hp_rows_gpu_aware},
     .source =
         "HOROVOD_CYCLE_TIME 5 ms before 0.21.0: its release notes. A graph executor fuses what it may. "
         "Time to start an operation as of PyTorch: a guess."},
    {.name = "tensorrt",
     .layout = "vectors of channels",
     .infers = true,
     .kernels.fuses = true,
     .kernels.vector = 32,
     .source =
         "convolution, bias, norm, activation and addition are one kernel; engines are launched whole. "
         "INT8 is laid out in vectors of 32 channels, NC/32HW32: developer guide, data format descriptions."},
    {0}};

int64_t hp_framework_block(const hp_framework *f, int64_t bytes) {
    /* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kMinLargeAlloc, kRoundLarge */
    static const int64_t BLOCK = 512, LARGE = INT64_C(10) << 20, SEGMENT = INT64_C(2) << 20;
    const int64_t unit = !f->memory.blocks ? 1 : bytes < LARGE ? BLOCK : SEGMENT;
    return (bytes + unit - 1) / unit * unit;
}

/* The framework that a wrong name probably means: one that contains it, or the nearest; NULL: none. */
static const char *meant(const char *name) {
    enum { MOST = 32 };
    const char *names[MOST];
    int n = 0;
    for (; hp_frameworks[n].name && n < MOST; n++) names[n] = hp_frameworks[n].name;
    for (int i = 0; i < n; i++)
        if (*name && strstr(names[i], name)) return names[i];
    return hp_nearest(name, names, n);
}

hp_status hp_framework_find(const char *name, const hp_framework **f, hp_error *err) {
    char all[400] = "hplan";
    *f = NULL;
    if (!name || strcmp(name, "hplan") == 0) return HP_OK;
    for (int i = 0; hp_frameworks[i].name; i++) {
        if (strcmp(hp_frameworks[i].name, name) == 0) *f = &hp_frameworks[i];
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, ", %s", hp_frameworks[i].name);
    }
    if (*f) return HP_OK;
    const char *near = meant(name);
    if (!near) return hp_fail(err, HP_EUSAGE, "--as: there is no framework '%.40s'; choose %s", name, all);
    return hp_fail(err, HP_EUSAGE, "--as: there is no framework '%.40s': did you mean '%s'? Known are %s",
                   name, near, all);
}

hp_cost_table *hp_framework_table(hp_arena *arena, const hp_framework *f, const hp_cost_table *t) {
    hp_cost_table *all = HP_NEW(arena, hp_cost_table, 1);
    hp_error err;
    *all = *t;
    for (int i = HP_FRAMEWORK_ROWS - 1; i >= 0; i--) {
        if (!f->rows[i]) continue;
        hp_cost_table *own = NULL, *before = HP_NEW(arena, hp_cost_table, 1);
        const hp_status parsed = hp_rows_parse(arena, f->rows[i], f->name, &own, &err);
        HP_ASSERT(parsed == HP_OK); /* tests read them all */
        *before = *t;
        before->n = own->n;
        before->row = own->row;
        before->base = all;
        all = before;
    }
    return all;
}

/* Replaces " f32" in a key by another type; false if it is absent or there is no room. */
static bool retype(hp_work *w, const char *name) {
    char *type = strstr(w->key, " f32"), rest[sizeof w->key];
    if (!type || strlen(w->key) + strlen(name) + 1 > sizeof w->key) return false;
    snprintf(rest, sizeof rest, "%s", type + 4);
    snprintf(type, sizeof w->key - (size_t)(type - w->key), " %s%s", name, rest);
    return true;
}

/* Under autocast, inference stores attention in the type in which it multiplies; hplan's own stays
 * float32. */
static void lower_attention(hp_work *w) {
    if (w->factors && retype(w, w->factors)) w->bytes /= 2;
}

void hp_framework_units(const hp_framework *f, const hp_machine *m, hp_work *w) {
    const bool dense = w->rates && w->rates != hp_rates_stem;
    if (f->kernels.autocast) lower_attention(w);
    if (f->kernels.tf32 && m->device.tf32_flops_per_s > 0 && strstr(w->key, ".conv") && !dense)
        retype(w, "tf32");
}

/* Without sequence parallelism (Korthikanti et al., arXiv 2205.05198, 4.2.2), each part of a layer holds all
 * tokens before and after it. All parts repeat the norms and additions that one would do alone. The
 * all-reduce adds the summands. */
static void take_all_tokens(const hp_framework *f, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                            hp_work *w) {
    const hp_layer *l = &g->layer[c->layer];
    const hp_tensor *y = &g->tensor[l->out];
    const double here = (double)c->out[HP_AXIS_H] * c->out[HP_AXIS_W], all = (double)y->h * y->w;
    if (!f->attention.sums_tokens || hp_layer_is_matrix(l) || l->op == HP_ATTENTION || here <= 0) return;
    if (l->op == HP_SUM && here < all)
        w->bytes = 2 * hp_work_elems(c->out) * hp_dtype_bytes(hp_tensor_dtype(y, dtype));
    w->bytes *= all / here;
    w->flops *= all / here;
}

/* F(2x2, 3x3) computes 4 results with 16 products instead of 36 (Lavin, Gray, arXiv 1509.09308). */
static const double WINOGRAD_SAVES = 36.0 / 16;

/* If an activation's gradient is a separate kernel, only that kernel reads the output, and no pass of the
 * norm does. */
static void shorten_norm(const hp_framework *f, const hp_graph *g, hp_dtype dtype, const hp_work_case *c,
                         hp_work *w) {
    const hp_layer *l = &g->layer[c->layer];
    if (f->kernels.fuses || g->deployed || l->op != HP_BN) return;
    if (c->op != HP_TASK_BWD && c->op != HP_TASK_BSTATS) return;
    const int passes = c->op == HP_TASK_BWD && !c->sums ? 2 : 1;
    w->bytes -= passes * hp_work_elems(c->out) * hp_dtype_bytes(hp_tensor_dtype(&g->tensor[l->out], dtype));
}

void hp_framework_amounts(const hp_framework *f, const hp_machine *m, const hp_graph *g, hp_dtype dtype,
                          const hp_work_case *c, hp_work *w) {
    if (m->device.is_cpu || c->layer < 0) return;
    const hp_layer *l = &g->layer[c->layer];
    shorten_norm(f, g, dtype, c, w);
    take_all_tokens(f, g, dtype, c, w);
    if (l->op == HP_ATTENTION && f->attention.score_passes[0] > 0) {
        w->flops *=
            hp_framework_scores(g, c) * hp_head_channels(g, l) / ((double)c->pairs * c->out[HP_AXIS_C]);
        w->attends = NULL; /* its products are separate kernels, of which nothing is known */
        w->rows = 0;
    }
    if (!f->kernels.winograd) return;
    const bool suits = l->op == HP_CONV && l->window.kh == 3 && l->window.kw == 3 &&
                       l->window.stride_h == 1 && l->window.stride_w == 1 && l->window.dil_h <= 1 &&
                       l->window.dil_w <= 1 && l->groups <= 1;
    const bool in_f32 = strstr(w->key, " f32") != NULL; /* after hp_framework_units */
    if (suits && in_f32) w->flops /= WINOGRAD_SAVES;
}

static double padded(double channels, int vector) {
    return vector * ceil(channels / vector);
}

void hp_framework_pad(const hp_framework *f, const hp_machine *m, const hp_graph *g, const hp_work_case *c,
                      hp_work *w) {
    if (f->kernels.vector <= 0 || c->layer < 0 || m->device.is_cpu || m->device.int8_ops_per_s <= 0) return;
    const hp_layer *l = &g->layer[c->layer];
    const double ins = c->in[HP_AXIS_C], outs = c->out[HP_AXIS_C];
    if (ins < 1 || outs < 1) return;
    const double more_in = padded(ins, f->kernels.vector) / ins,
                 more_out = padded(outs, f->kernels.vector) / outs;
    const bool x_vector = g->tensor[l->in[0]].store == HP_STORE_U8,
               y_vector = g->tensor[l->out].store == HP_STORE_U8;
    if (x_vector) w->bytes += (more_in - 1) * (double)c->in_elems;
    if (y_vector) w->bytes += (more_out - 1) * hp_work_elems(c->out);
    if (!x_vector || !hp_layer_is_matrix(l) || l->groups > 1) return;
    w->flops *= more_in * more_out;
    w->depth *= more_in;
    w->cols *= more_out;
}

int hp_framework_blocks(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                        const hp_work_case *c) {
    const bool trains = c->layer >= 0 && !c->eval && !g->deployed && g->layer[c->layer].op == HP_BN;
    return f->kernels.norm_blocks && trains && !m->device.is_cpu ? c->out[HP_AXIS_C] : 0;
}

int hp_framework_column_blocks(const hp_framework *f, const hp_machine *m, const hp_graph *g,
                               const hp_work_case *c) {
    const int channels = f->kernels.column_channels;
    if (channels <= 0 || c->layer < 0 || m->device.is_cpu || c->op != HP_TASK_BWD) return 0;
    return g->layer[c->layer].op == HP_LAYERNORM ? (c->out[HP_AXIS_C] + channels - 1) / channels : 0;
}

double hp_framework_update_factor(const hp_framework *f, const hp_graph *g) {
    const double theirs = f->kernels.update_passes[g->optimizer], once = 3 + 2 * hp_optimizer_of(g)->states;
    return theirs > 0 ? theirs / once : 1;
}

int hp_framework_numbers(const hp_framework *f) {
    const double own[] = {f->host.dispatch_s,
                          f->host.region_s,
                          f->host.step_s,
                          f->host.module_s,
                          f->host.update_ops[HP_SGD],
                          f->host.update_ops[HP_ADAMW],
                          f->host.sum_ops,
                          f->host.cycle_s,
                          f->host.message_ops,
                          f->kernels.vector,
                          f->kernels.column_channels,
                          f->kernels.update_passes[HP_SGD],
                          f->kernels.update_passes[HP_ADAMW],
                          f->memory.context_bytes,
                          f->attention.score_passes[0],
                          f->attention.score_passes[1],
                          f->attention.score_passes_autocast[0],
                          f->attention.score_passes_autocast[1],
                          f->attention.head_copies};
    int n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) n += own[i] > 0;
    for (int i = 0; i < HP_FRAMEWORK_ROWS; i++)
        for (const char *s = f->rows[i]; s && (s = strstr(s, " | ")) != NULL; s = strchr(s, '\n')) n++;
    return n;
}
