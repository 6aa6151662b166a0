/* dnn_graph.c - descriptors of cuDNN's graph API, and convolutions expressed in it. */
#include "exec/cuda/dnn/dnn_graph.h"

#include "networks/graph/acts.h"

#include <stdlib.h>
#include <string.h>

/* --- an owner and what it made --- */

static void check(hp_dnn_owner *o, cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS || o->status != CUDNN_STATUS_SUCCESS) return;
    o->status = status;
    cudnnGetLastErrorString(o->text, sizeof o->text);
    o->text[sizeof o->text - 1] = '\0';
}

static void own(hp_dnn_owner *o, cudnnBackendDescriptor_t d) {
    if (o->n == o->room) {
        o->room = o->room ? 2 * o->room : 16;
        o->made = realloc((void *)o->made, sizeof *o->made * (size_t)o->room);
        HP_ASSERT(o->made);
    }
    o->made[o->n++] = d;
}

cudnnBackendDescriptor_t hp_dnn_make(hp_dnn_owner *o, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = NULL;
    if (o->status != CUDNN_STATUS_SUCCESS) return NULL;
    check(o, cudnnBackendCreateDescriptor(type, &d));
    if (d) own(o, d);
    return d;
}

void hp_dnn_give(hp_dnn_owner *from, cudnnBackendDescriptor_t d, hp_dnn_owner *to) {
    for (int i = 0; i < from->n; i++) {
        if (from->made[i] != d) continue;
        from->made[i] = from->made[--from->n];
        own(to, d);
        return;
    }
}

void hp_dnn_set(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    if (o->status == CUDNN_STATUS_SUCCESS) check(o, cudnnBackendSetAttribute(d, name, type, count, value));
}

void hp_dnn_set_int(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    int64_t value) {
    hp_dnn_set(o, d, name, CUDNN_TYPE_INT64, 1, &value);
}

void hp_dnn_set_desc(hp_dnn_owner *o, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value) {
    hp_dnn_set(o, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

void hp_dnn_finish(hp_dnn_owner *o, cudnnBackendDescriptor_t d) {
    if (o->status == CUDNN_STATUS_SUCCESS) check(o, cudnnBackendFinalize(d));
}

void hp_dnn_release(hp_dnn_owner *o) {
    while (o->n > 0) cudnnBackendDestroyDescriptor(o->made[--o->n]);
    free((void *)o->made);
    *o = (hp_dnn_owner){0};
}

/* --- tensors --- */

enum { ALIGNMENT = 16 };                              /* bytes; larger than any cuDNN kernel asks for */
static const cudnnDataType_t SUMS = CUDNN_DATA_FLOAT; /* type in which products are added up */

static cudnnDataType_t type_of(int32_t dtype) {
    return dtype == HP_BF16 ? CUDNN_DATA_BFLOAT16 : dtype == HP_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/* Dimensions are named (n, c, h, w), the layout is (n, h, w, c). */
static cudnnBackendDescriptor_t part(hp_dnn_owner *o, int64_t uid, cudnnDataType_t type, const int64_t dim[4],
                                     const int64_t stride[4], int64_t alignment, bool inner) {
    const cudnnBackendDescriptor_t d = hp_dnn_make(o, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    hp_dnn_set(o, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    hp_dnn_set(o, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    hp_dnn_set(o, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    hp_dnn_set_int(o, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    hp_dnn_set_int(o, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    hp_dnn_set(o, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner);
    hp_dnn_finish(o, d);
    return d;
}

static cudnnBackendDescriptor_t tensor(hp_dnn_owner *o, int64_t uid, cudnnDataType_t type,
                                       const int64_t dim[4], int64_t alignment, bool inner) {
    const int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]};
    return part(o, uid, type, dim, stride, alignment, inner);
}

static cudnnBackendDescriptor_t inputs(hp_dnn_owner *o, const hp_dnn_conv *c) {
    const int64_t dim[4] = {c->n, c->ic, c->ih, c->iw},
                  stride[4] = {hp_dnn_x_sample(c), 1, hp_dnn_x_row(c), c->ic};
    return part(o, HP_DNN_X, type_of(c->dtype), dim, stride, c->alignment, false);
}

static cudnnBackendDescriptor_t outputs(hp_dnn_owner *o, const hp_dnn_conv *c, int64_t uid, bool inner) {
    const int64_t dim[4] = {c->n, c->oc, c->oh, c->ow};
    return tensor(o, uid, inner ? SUMS : type_of(c->dtype), dim, inner ? ALIGNMENT : c->alignment, inner);
}

/* --- operations --- */

static cudnnBackendDescriptor_t window(hp_dnn_owner *o, const hp_dnn_conv *c) {
    const cudnnBackendDescriptor_t d = hp_dnn_make(o, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t before[2] = {c->pad.top, c->pad.left}, after[2] = {c->pad.bottom, c->pad.right},
                  stride[2] = {c->stride_h, c->stride_w}, dilation[2] = {c->dil_h, c->dil_w};
    hp_dnn_set_int(o, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &SUMS);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    hp_dnn_set(o, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    hp_dnn_finish(o, d);
    return d;
}

/* Attribute names of the convolution operations, by hp_dnn_kind. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
} OPERATIONS[] = {
    [HP_DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [HP_DNN_DGRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [HP_DNN_WGRAD] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

static cudnnBackendDescriptor_t convolution(hp_dnn_owner *o, const hp_dnn_conv *c,
                                            cudnnBackendDescriptor_t y) {
    const int64_t filter[4] = {c->oc, c->ic / c->groups, c->kh, c->kw};
    const float one = 1, beta = c->kind != HP_DNN_FORWARD && c->add ? 1 : 0;
    const cudnnBackendDescriptor_t x = inputs(o, c),
                                   w = tensor(o, HP_DNN_W, type_of(c->dtype), filter, ALIGNMENT, false),
                                   d = hp_dnn_make(o, OPERATIONS[c->kind].type);
    hp_dnn_set_desc(o, d, OPERATIONS[c->kind].window, window(o, c));
    hp_dnn_set_desc(o, d, OPERATIONS[c->kind].x, x);
    hp_dnn_set_desc(o, d, OPERATIONS[c->kind].w, w);
    hp_dnn_set_desc(o, d, OPERATIONS[c->kind].y, y);
    hp_dnn_set(o, d, OPERATIONS[c->kind].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    hp_dnn_set(o, d, OPERATIONS[c->kind].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    hp_dnn_finish(o, d);
    return d;
}

/* y = mode(x, b); b: NULL for unary modes. upper: bound of a clamp, 0 = none. */
static cudnnBackendDescriptor_t pointwise(hp_dnn_owner *o, cudnnPointwiseMode_t mode,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                          cudnnBackendDescriptor_t y, double upper) {
    const cudnnBackendDescriptor_t what = hp_dnn_make(o, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    hp_dnn_set(o, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    hp_dnn_set(o, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &SUMS);
    if (upper > 0) hp_dnn_set(o, what, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &upper);
    hp_dnn_finish(o, what);
    const cudnnBackendDescriptor_t d = hp_dnn_make(o, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    hp_dnn_set_desc(o, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    hp_dnn_set_desc(o, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) hp_dnn_set_desc(o, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    hp_dnn_set_desc(o, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    hp_dnn_finish(o, d);
    return d;
}

/* --- the graph --- */

enum { MOST_OPERATIONS = 4, FIRST_INNER = 16 };

typedef struct chain { /* a sequence of operations */
    hp_dnn_owner *o;
    const hp_dnn_conv *c;
    cudnnBackendDescriptor_t op[MOST_OPERATIONS], last; /* last: the tensor in which they end */
    int n, left;                                        /* operations to come */
} chain;

static cudnnBackendDescriptor_t next_tensor(chain *k) {
    k->left--;
    k->last = outputs(k->o, k->c, k->left ? FIRST_INNER + k->left : HP_DNN_Y, k->left > 0);
    return k->last;
}

static void append(chain *k, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t b, double upper) {
    const cudnnBackendDescriptor_t x = k->last;
    k->op[k->n++] = pointwise(k->o, mode, x, b, next_tensor(k), upper);
}

cudnnBackendDescriptor_t hp_dnn_graph_of(hp_dnn_owner *o, cudnnHandle_t handle, const hp_dnn_conv *c) {
    const bool adds = c->add && c->kind == HP_DNN_FORWARD;
    chain k = {.o = o, .c = c, .left = 1 + c->bias + adds + (c->act != HP_ACT_NONE)};
    k.op[k.n++] = convolution(o, c, next_tensor(&k));
    const int64_t channels[4] = {1, c->oc, 1, 1};
    if (c->bias) append(&k, CUDNN_POINTWISE_ADD, tensor(o, HP_DNN_BIAS, SUMS, channels, ALIGNMENT, false), 0);
    if (adds) append(&k, CUDNN_POINTWISE_ADD, outputs(o, c, HP_DNN_Z, false), 0);
    if (c->act != HP_ACT_NONE) append(&k, CUDNN_POINTWISE_RELU_FWD, NULL, c->act == HP_ACT_RELU6 ? 6 : 0);
    const cudnnBackendDescriptor_t graph = hp_dnn_make(o, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    hp_dnn_set(o, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, k.n,
               (const void *)k.op);
    if (handle)
        hp_dnn_set(o, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&handle);
    hp_dnn_finish(o, graph);
    return graph;
}
