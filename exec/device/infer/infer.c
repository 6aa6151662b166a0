/* infer.c - which kernel prepares a layer of a deployed graph, by device: matrix products are each device's
 * own. */
#include "exec/device/infer/infer.h"

hp_infer_prepare_fn *const hp_infer_cpu[HP_LAYER_OPS] = {
    [HP_CONV] = hp_infer_conv_cpu,     [HP_CONVT] = hp_infer_convt_cpu,
    [HP_LINEAR] = hp_infer_linear_cpu, [HP_BN] = hp_infer_bn,
    [HP_SCALE] = hp_infer_scale,       [HP_ACT] = hp_infer_act,
    [HP_ADD] = hp_infer_add,           [HP_MUL] = hp_infer_mul,
    [HP_QUANT] = hp_infer_quant,       [HP_DEQUANT] = hp_infer_dequant,
    [HP_MAXPOOL] = hp_infer_maxpool,   [HP_AVGPOOL] = hp_infer_avgpool,
    [HP_RESIZE] = hp_infer_resize,     [HP_ADAPTPOOL] = hp_infer_adaptpool,
    [HP_CONCAT] = hp_infer_concat,     [HP_PAD] = hp_infer_pad,
    [HP_SOFTMAX] = hp_infer_softmax,
};

hp_infer_prepare_fn *const hp_infer_ref[HP_LAYER_OPS] = {
    [HP_CONV] = hp_infer_conv_ref,     [HP_CONVT] = hp_infer_convt_ref,
    [HP_LINEAR] = hp_infer_linear_ref, [HP_BN] = hp_infer_bn,
    [HP_SCALE] = hp_infer_scale,       [HP_ACT] = hp_infer_act,
    [HP_ADD] = hp_infer_add,           [HP_MUL] = hp_infer_mul,
    [HP_QUANT] = hp_infer_quant,       [HP_DEQUANT] = hp_infer_dequant,
    [HP_MAXPOOL] = hp_infer_maxpool,   [HP_AVGPOOL] = hp_infer_avgpool,
    [HP_RESIZE] = hp_infer_resize,     [HP_ADAPTPOOL] = hp_infer_adaptpool,
    [HP_CONCAT] = hp_infer_concat,     [HP_PAD] = hp_infer_pad,
    [HP_SOFTMAX] = hp_infer_softmax,
};
