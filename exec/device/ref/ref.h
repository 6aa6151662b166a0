/* ref.h - the oracle's loops, one small file per family of layers. All of them compute in float64, in
 * the order the definition suggests, and take nothing from the fast kernels. */
#ifndef HP_REF_H
#define HP_REF_H

#include "exec/device/infer/infer_loops.h"

typedef void hp_ref_fn(const hp_bound *b, const hp_step *s);

hp_ref_fn hp_ref_conv_fwd, hp_ref_conv_bwd, hp_ref_conv_bwdw;              /* ref/ref_conv.c, linear too */
hp_ref_fn hp_ref_bn_fwd, hp_ref_bn_bwd, hp_ref_bn_stats, hp_ref_bn_bstats; /* ref/ref_norm.c */
hp_ref_fn hp_ref_act_fwd, hp_ref_act_bwd, hp_ref_add_fwd, hp_ref_add_bwd;  /* ref/ref_point.c */
hp_ref_fn hp_ref_concat_fwd, hp_ref_concat_bwd, hp_ref_dropout_fwd, hp_ref_dropout_bwd;
hp_ref_fn hp_ref_maxpool_fwd, hp_ref_maxpool_bwd, hp_ref_avgpool_fwd, hp_ref_avgpool_bwd; /* ref/ref_pool.c */
hp_ref_fn hp_ref_adaptpool_fwd, hp_ref_adaptpool_bwd;
hp_ref_fn hp_ref_convt_fwd, hp_ref_convt_bwd, hp_ref_convt_bwdw; /* ref/ref_convt.c */
hp_ref_fn hp_ref_pad_fwd, hp_ref_pad_bwd;                        /* ref/ref_pad.c */
hp_ref_fn hp_ref_layernorm_fwd, hp_ref_layernorm_bwd;            /* ref/ref_layernorm.c, RMS norm too */
hp_ref_fn hp_ref_attention_fwd, hp_ref_attention_bwd;            /* ref/ref_attention.c */
hp_ref_fn hp_ref_embedding_fwd, hp_ref_embedding_bwdw;           /* ref/ref_tokens.c */
hp_ref_fn hp_ref_position_fwd, hp_ref_position_bwd, hp_ref_classtoken_fwd, hp_ref_classtoken_bwd;
hp_ref_fn hp_ref_crop_fwd, hp_ref_crop_bwd, hp_ref_merge_fwd, hp_ref_merge_bwd;
hp_ref_fn hp_ref_sum_fwd, hp_ref_sum_bwd;
hp_ref_fn hp_ref_mul_fwd, hp_ref_mul_bwd, hp_ref_prelu_fwd, hp_ref_prelu_bwd;         /* ref/ref_mul.c */
hp_ref_fn hp_ref_resize_fwd, hp_ref_resize_bwd;                                       /* ref/ref_resize.c */
hp_ref_fn hp_ref_gather_fwd, hp_ref_gather_bwd, hp_ref_reduce_fwd, hp_ref_reduce_bwd; /* ref/ref_gather.c */
hp_ref_fn hp_ref_groupnorm_fwd, hp_ref_groupnorm_bwd; /* ref/ref_groupnorm.c */
hp_ref_fn hp_ref_loss, hp_ref_maxsum, hp_ref_accum, hp_ref_part, hp_ref_update, hp_ref_finite,
    hp_ref_norm; /* ref/ref_train.c */

/* The loop of a layer's forward task. */
hp_ref_fn *hp_ref_forward(const hp_layer *l);

/* Layers of deployed graphs that are no matrix product (ref/ref_loops.inc). The first serves tasks without a
 * float64 operand; its bytes are those of every device (exec/device/infer/op.h). */
extern const hp_infer_loops hp_ref_loops_f32, hp_ref_loops_f64;

/* Runs f on float64 copies of what the task reads, rounded as the network's precision has it, and rounds what
 * it has written to how that is stored (ref/ref_round.c). */
void hp_ref_run_rounded(const hp_device_config *c, const hp_bound *b, hp_ref_fn *f, const hp_step *s);

#endif
