/* cpu_train.h - inside of the CPU device in float32 training: oneDNN for convolutions and matrix products,
 * own kernels for the rest. */
#ifndef HP_CPU_TRAIN_H
#define HP_CPU_TRAIN_H

#include "exec/device/kernels/kernels.h"
#include "exec/device/cpu/cpu_onednn.h"
#include "base/arena.h"

/* Kernel of one convolution task. */
typedef struct hp_conv_choice {
    bool winograd, gemm_gradient;
    bool repack;               /* the layer's pack has another layout: weights are packed for every run */
    hp_onednn_kernel *library; /* NULL: own kernel */
    hp_onednn_kernel **band;   /* weight gradient: kernel per band, NULL as above */
    double *sums;              /* sums of one of several bands */
} hp_conv_choice;

typedef struct hp_pool_windows hp_pool_windows; /* cpu/cpu_pool.c */

typedef hp_status hp_cpu_fn(hp_device *d, const hp_bound *b, const hp_step *s, hp_error *err);

struct hp_device {
    hp_device_config config;
    hp_arena *arena; /* owns the tables below, not tensors */
    hp_onednn *library;
    const hp_f32_kernels *kernels;
    hp_bound *bound;              /* per task */
    hp_cpu_fn **run;              /* per task; NULL: not a compute task of ours */
    hp_conv_choice *conv;         /* per task */
    hp_onednn_kernel **packed[2]; /* forward, backward; per graph layer: the kernel whose layout
                                   * the pack has, or NULL */
    hp_pool_windows **windows;    /* per task */
    float **turns;                /* per graph layer: cosines and sines of rotary positions */
    hp_pool_windows *all_windows; /* list: tasks of equal geometry share theirs */
};

hp_status hp_cpu_conv_prepare(hp_device *d, const hp_bound *b, hp_error *err); /* cpu/cpu_conv.c */
hp_cpu_fn hp_cpu_pack, hp_cpu_conv_fwd, hp_cpu_conv_bwd, hp_cpu_conv_bwdw;
/* Compute a weight gradient, which uses the first bytes of scratch: canonical, written, or added to with
 * `add`. cpu/cpu_gradient.c. */
hp_status hp_cpu_gradient_prepare(hp_device *d, const hp_bound *b, int64_t scratch_bytes, hp_error *err);
hp_status hp_cpu_gradient(hp_device *d, const hp_bound *b, float *dw, bool add, hp_error *err);
hp_cpu_fn hp_cpu_linear_fwd, hp_cpu_linear_bwd, hp_cpu_linear_bwdw;            /* cpu/cpu_linear.c */
hp_cpu_fn hp_cpu_bn_stats, hp_cpu_bn_fwd, hp_cpu_bn_bstats, hp_cpu_bn_bwd;     /* cpu/cpu_norm.c */
hp_status hp_cpu_pool_prepare(hp_device *d, const hp_bound *b, hp_error *err); /* cpu/cpu_pool.c */
hp_cpu_fn hp_cpu_maxpool_fwd, hp_cpu_maxpool_bwd, hp_cpu_meanpool_fwd, hp_cpu_meanpool_bwd;
hp_cpu_fn hp_cpu_act_fwd, hp_cpu_act_bwd, hp_cpu_add_fwd, hp_cpu_add_bwd; /* cpu/cpu_point.c */
hp_cpu_fn hp_cpu_concat_fwd, hp_cpu_concat_bwd, hp_cpu_dropout_fwd, hp_cpu_dropout_bwd;
hp_status hp_cpu_convt_prepare(hp_device *d, const hp_bound *b, hp_error *err); /* cpu/cpu_convt.c */
hp_cpu_fn hp_cpu_convt_fwd, hp_cpu_convt_bwd, hp_cpu_convt_bwdw;
hp_cpu_fn hp_cpu_pad_fwd, hp_cpu_pad_bwd;                                           /* cpu/cpu_pad.c */
hp_cpu_fn hp_cpu_layernorm_fwd, hp_cpu_layernorm_bwd;                               /* cpu/cpu_layernorm.c */
hp_status hp_cpu_attention_prepare(hp_device *d, const hp_bound *b, hp_error *err); /* cpu/cpu_attention.c */
hp_cpu_fn hp_cpu_attention_fwd, hp_cpu_attention_bwd;
hp_cpu_fn hp_cpu_embedding_fwd, hp_cpu_embedding_bwdw, hp_cpu_position_fwd,
    hp_cpu_position_bwd;                                                              /* cpu/cpu_tokens.c */
hp_cpu_fn hp_cpu_sum_fwd, hp_cpu_sum_bwd;                                             /* cpu/cpu_sum.c */
hp_cpu_fn hp_cpu_gather_fwd, hp_cpu_gather_bwd, hp_cpu_reduce_fwd, hp_cpu_reduce_bwd; /* cpu/cpu_gather.c */
/* If hp_spread_bytes reserves memory, the gradient's sums are in scratch, in float64: begin clears them, end
 * rounds them. Otherwise begin clears the gradient and returns false. */
bool hp_cpu_spread_begin(const hp_bound *b); /* cpu/cpu_gather.c */
void hp_cpu_spread_end(const hp_bound *b);
hp_cpu_fn hp_cpu_groupnorm_fwd, hp_cpu_groupnorm_bwd; /* cpu/cpu_groupnorm.c */
hp_cpu_fn hp_cpu_classtoken_fwd, hp_cpu_classtoken_bwd, hp_cpu_crop_fwd, hp_cpu_crop_bwd;
hp_cpu_fn hp_cpu_merge_fwd, hp_cpu_merge_bwd;
hp_cpu_fn hp_cpu_mul_fwd, hp_cpu_mul_bwd, hp_cpu_prelu_fwd, hp_cpu_prelu_bwd; /* cpu/cpu_mul.c */
hp_cpu_fn hp_cpu_resize_fwd, hp_cpu_resize_bwd;                               /* cpu/cpu_resize.c */
hp_cpu_fn hp_cpu_loss, hp_cpu_maxsum, hp_cpu_accum, hp_cpu_part, hp_cpu_update, hp_cpu_finite,
    hp_cpu_norm; /* cpu/cpu_step.c */

/* The function of a layer's forward task. */
hp_cpu_fn *hp_cpu_forward(const hp_layer *l);

static inline int hp_cpu_task_of(const hp_device *d, const hp_bound *b) {
    return (int)(b - d->bound);
}

/* Name of a task's kernel: "winograd 2x2 avx512", "brgconv_1x1:avx512_core", "own any". Static, or
 * owned by the device. */
const char *hp_cpu_kernel_name(const hp_device *d, int task);

#endif
