/* onnx_ops.c - the operators that are read, one row each. */
#include "plan/onnx/onnx_inside.h"

#include <string.h>

#define MS "com.microsoft"

/* READ(domain, name, id, since, least inputs, most, attributes, takes integers), BOTH: also folded, FOLD: only. */
#define ROWS                                                                                                 \
    READ("", "Conv", conv, 1, 2, 3, "auto_pad dilations group kernel_shape pads strides", false)             \
    READ("", "ConvTranspose", convt, 1, 2, 3,                                                                \
         "auto_pad dilations group kernel_shape output_padding output_shape pads strides", false)            \
    READ("", "ConvInteger", convinteger, 10, 2, 4, "auto_pad dilations group kernel_shape pads strides", true) \
    READ("", "QLinearConv", qlinearconv, 10, 8, 9, "auto_pad dilations group kernel_shape pads strides", true) \
    READ("", "Gemm", gemm, 7, 2, 3, "alpha beta transA transB", false)                                       \
    READ("", "MatMul", matmul, 1, 2, 2, "", false)                                                           \
    READ("", "MatMulInteger", matmulinteger, 10, 2, 4, "", true)                                             \
    READ("", "QLinearMatMul", qlinearmatmul, 10, 8, 8, "", true)                                             \
    READ("", "BatchNormalization", batchnorm, 7, 5, 5, "epsilon momentum training_mode spatial", false)      \
    READ("", "MaxPool", maxpool, 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", \
         true)                                                                                               \
    READ("", "AveragePool", averagepool, 7, 1, 1,                                                            \
         "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", false)                  \
    READ("", "GlobalAveragePool", globalaveragepool, 1, 1, 1, "", false)                                     \
    READ("", "GlobalMaxPool", globalmaxpool, 1, 1, 1, "", true)                                              \
    READ("", "ReduceMean", reducemean, 1, 1, 2, "axes keepdims noop_with_empty_axes", false)                 \
    READ("", "ReduceMax", reducemax, 1, 1, 2, "axes keepdims noop_with_empty_axes", false)                   \
    READ("", "Resize", resize, 10, 1, 4,                                                                     \
         "antialias coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "  \
         "nearest_mode",                                                                                     \
         false)                                                                                              \
    READ("", "Upsample", resize, 7, 1, 2, "mode scales", false)                                              \
    READ("", "Pad", pad, 2, 1, 4, "mode pads value", false)                                                  \
    READ("", "Relu", relu, 1, 1, 1, "", false)                                                               \
    READ("", "Clip", clip, 6, 1, 3, "max min", false)                                                        \
    READ("", "Sigmoid", sigmoid, 1, 1, 1, "", false)                                                         \
    READ("", "Tanh", tanh, 1, 1, 1, "", false)                                                               \
    READ("", "HardSigmoid", hardsigmoid, 1, 1, 1, "alpha beta", false)                                       \
    READ("", "HardSwish", hardswish, 14, 1, 1, "", false)                                                    \
    READ("", "LeakyRelu", leakyrelu, 1, 1, 1, "alpha", false)                                                \
    READ("", "PRelu", prelu, 7, 2, 2, "", false)                                                             \
    READ("", "Softmax", softmax, 1, 1, 1, "axis", false)                                                     \
    READ("", "Sum", sum, 8, 1, ONNX_MOST_IN, "", false)                                                      \
    READ("", "Dropout", dropout, 7, 1, 3, "ratio seed", false)                                               \
    READ("", "QuantizeLinear", quantizelinear, 10, 2, 3, "axis", false)                                      \
    BOTH("", "DequantizeLinear", dequantizelinear, 10, 2, 3, "axis", true)                                   \
    BOTH("", "Add", add, 7, 2, 2, "", false)                                                                 \
    BOTH("", "Sub", sub, 7, 2, 2, "", false)                                                                 \
    BOTH("", "Mul", mul, 7, 2, 2, "", false)                                                                 \
    BOTH("", "Div", div, 7, 2, 2, "", false)                                                                 \
    BOTH("", "Neg", neg, 1, 1, 1, "", false)                                                                 \
    BOTH("", "Max", max, 8, 1, ONNX_MOST_IN, "", false)                                                      \
    BOTH("", "Min", min, 8, 1, ONNX_MOST_IN, "", false)                                                      \
    BOTH("", "Identity", identity, 1, 1, 1, "", true)                                                        \
    BOTH("", "Cast", cast, 6, 1, 1, "saturate to", false)                                                    \
    BOTH("", "Reshape", reshape, 5, 1, 2, "allowzero", true)                                                 \
    BOTH("", "Flatten", flatten, 1, 1, 1, "axis", true)                                                      \
    BOTH("", "Squeeze", squeeze, 1, 1, 2, "axes", true)                                                      \
    BOTH("", "Unsqueeze", unsqueeze, 1, 1, 2, "axes", true)                                                  \
    BOTH("", "Transpose", transpose, 1, 1, 1, "perm", true)                                                  \
    BOTH("", "Expand", expand, 8, 2, 2, "", true)                                                            \
    BOTH("", "Concat", concat, 4, 1, ONNX_MOST_IN, "axis", false)                                            \
    FOLD("", "Constant", constant, 1, 0, 0, "value value_float value_floats value_int value_ints")           \
    FOLD("", "ConstantOfShape", constantofshape, 9, 1, 1, "value")                                           \
    FOLD("", "Range", range, 11, 3, 3, "")                                                                   \
    FOLD("", "Gather", gather, 1, 2, 2, "axis")                                                              \
    FOLD("", "Slice", slice, 1, 1, 5, "axes ends starts")                                                    \
    FOLD("", "Mod", mod, 10, 2, 2, "fmod")                                                                   \
    FOLD("", "Pow", pow, 7, 2, 2, "")                                                                        \
    FOLD("", "Equal", equal, 7, 2, 2, "")                                                                    \
    FOLD("", "Greater", greater, 7, 2, 2, "")                                                                \
    FOLD("", "Less", less, 7, 2, 2, "")                                                                      \
    FOLD("", "Not", not, 1, 1, 1, "")                                                                        \
    FOLD("", "Where", where, 9, 3, 3, "")                                                                    \
    FOLD("", "Abs", abs, 6, 1, 1, "")                                                                        \
    FOLD("", "Sqrt", sqrt, 6, 1, 1, "")                                                                      \
    FOLD("", "Exp", exp, 6, 1, 1, "")                                                                        \
    FOLD("", "Floor", floor, 6, 1, 1, "")                                                                    \
    FOLD("", "Ceil", ceil, 6, 1, 1, "")                                                                      \
    FOLD("", "ReduceProd", reduceprod, 1, 1, 2, "axes keepdims noop_with_empty_axes")                        \
    FOLD("", "ReduceSum", reducesum, 1, 1, 2, "axes keepdims noop_with_empty_axes")                          \
    READ(MS, "QLinearAdd", qlinearadd, 1, 7, 8, "", true)                                                    \
    READ(MS, "QLinearMul", qlinearmul, 1, 7, 8, "", true)                                                    \
    READ(MS, "QLinearGlobalAveragePool", qlinearglobalaveragepool, 1, 4, 5, "channels_last", true)           \
    READ(MS, "QLinearConcat", qlinearconcat, 1, 5, ONNX_MOST_IN, "axis", true)                               \
    READ(MS, "QGemm", qgemm, 1, 6, 9, "alpha transA transB", true)

/* --- what the rows name --- */

#define READ(domain, name, id, ...) hp_status onnx_read_##id(onnx_call *c);
#define FOLD(domain, name, id, ...) hp_status onnx_fold_##id(onnx_call *c, onnx_const *out);
#define BOTH(domain, name, id, ...) READ(domain, name, id) FOLD(domain, name, id)
ROWS
hp_status onnx_read_shape(onnx_call *c);
hp_status onnx_read_size(onnx_call *c);
#undef READ
#undef FOLD
#undef BOTH

#define READ(domain, name, id, since, least, most, attributes, integers)                                     \
    {domain, name, since, least, most, " " attributes " ", integers, onnx_read_##id, NULL},
#define BOTH(domain, name, id, since, least, most, attributes, integers)                                     \
    {domain, name, since, least, most, " " attributes " ", integers, onnx_read_##id, onnx_fold_##id},
#define FOLD(domain, name, id, since, least, most, attributes)                                               \
    {domain, name, since, least, most, " " attributes " ", false, NULL, onnx_fold_##id},
static const onnx_op ops[] = {
    ROWS
    /* sizes of tensors and constants: never folded */
    {"", "Shape", 1, 1, 1, " end start ", true, onnx_read_shape, NULL},
    {"", "Size", 1, 1, 1, "  ", true, onnx_read_size, NULL},
};

const onnx_op *onnx_find_op(const char *domain, const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0 && strcmp(ops[i].domain, domain) == 0) return &ops[i];
    return NULL;
}
