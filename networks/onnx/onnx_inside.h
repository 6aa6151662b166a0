/* onnx_inside.h - types and functions shared by the files of the ONNX reader.
 *
 * A value of the model is a constant (weights, shapes: folded during reading) or a tensor of the graph being
 * built. A tensor's ONNX dimensions are groups of hplan's axes N, C, H, W in some order. Reshapes and
 * transpositions change only the grouping and the order, never data. If they split an axis, for example into
 * heads, the value is a view of the tensor. Values that form a layer only together, such as a mean and a
 * deviation, are terms of it. */
#ifndef HP_ONNX_INSIDE_H
#define HP_ONNX_INSIDE_H

#include "networks/onnx/onnx.h"
#include "networks/onnx/onnx_names.h"
#include "networks/graph/layer.h"

#include <onnx.pb-c.h>

enum {
    ONNX_MOST_DIMS = 8,
    ONNX_MOST_PARTS = 16,      /* most parts of the axes of a view */
    ONNX_MOST_IN = 64,         /* inputs of one node */
    ONNX_MOST_ITEMS = 1 << 16, /* nodes, initializers, layers */
    ONNX_MOST_SIZE = 1 << 24,  /* rows, columns, channels, window sizes */
    ONNX_KEPT = 64,            /* elements of a constant that a model without weights still keeps */
    ONNX_FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    ONNX_INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    ONNX_INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    ONNX_INT8 = ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
    ONNX_UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
    ONNX_BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
};

/* --- constants --- */

typedef struct onnx_const {
    const char *name; /* name of the initializer; "" for a computed constant */
    int type;         /* TensorProto.DataType */
    int n_dim;
    int64_t dim[ONNX_MOST_DIMS];
    int64_t count;
    const void *data;   /* count elements of the type; NULL: not stored (a model without weights) */
    const char *turned; /* the initializer whose transpose this one is; NULL: none */
    /* What a float constant was dequantised from, or NULL: data = scale (q - zero) along `axis`. */
    const struct onnx_const *q, *q_scale, *q_zero;
    int q_axis;
} onnx_const;

typedef struct onnx_type {
    const char *name; /* NULL: not supported */
    int bytes;
    bool whole;
    double (*real)(const void *data, int64_t i);
    int64_t (*integer)(const void *data, int64_t i);
    void (*put)(void *data, int64_t i, double real, int64_t integer); /* writes one of the two, depending on
                                                                       * the type's kind */
} onnx_type;

/* NULL for types that are not supported (strings, complex numbers). */
const onnx_type *onnx_type_of(int type);
double onnx_real(const onnx_const *c, int64_t i); /* 0 if nothing is stored */
int64_t onnx_integer(const onnx_const *c, int64_t i);

/* --- values --- */

/* Integers q of an 8-bit type that represent scale (q - zero). n: 1, or one per channel. */
typedef struct onnx_quant {
    int n;
    const double *scale, *zero;
    int low, high; /* range of the type */
} onnx_quant;

typedef enum onnx_kind {
    ONNX_NOTHING,
    ONNX_CONST,
    ONNX_TENSOR,
    ONNX_VIEW, /* part of a tensor, or a tensor with a split axis */
    /* terms of a layer norm of x */
    ONNX_MEAN,
    ONNX_CENTRED, /* x - mean */
    ONNX_SQUARED, /* (x - mean)^2 */
    ONNX_VARIANCE,
    ONNX_DEVIATION, /* sqrt(variance + eps) */
    ONNX_NORMED,    /* (x - mean) / deviation, also times gamma */
    /* terms of attention */
    ONNX_SCORES, /* queries times keys */
    ONNX_SHARES, /* their softmax */
    ONNX_KINDS
} onnx_kind;

/* Numbers 0 .. extent - 1 that stand for the places 0, step, 2 step, ... of an axis. */
typedef struct onnx_part {
    int axis;
    int64_t extent, step;
} onnx_part;

/* The elements of a tensor that a value has: the parts of its dimensions, in ONNX memory order, add up to
 * places on the axes. */
typedef struct onnx_view {
    int n, end[ONNX_MOST_DIMS]; /* dimension d: part[end[d - 1]] .. part[end[d] - 1] */
    onnx_part part[ONNX_MOST_PARTS];
    int64_t first[HP_AXES], roll[HP_AXES]; /* first index; roll is added to it, modulo the axis */
    double factor;                         /* the value equals the elements times this factor */
} onnx_view;

typedef struct onnx_value {
    const char *name;
    onnx_kind kind;
    int32_t producer; /* node, or -1 */
    bool needed;
    onnx_const c;
    int32_t tensor; /* tensor of the graph */
    int type;
    int n_dim;
    int64_t dim[ONNX_MOST_DIMS];
    int8_t order[HP_AXES];   /* hp_axis in the order of ONNX's memory */
    const onnx_quant *quant; /* the value is the integers, the tensor the reals they represent */
    const onnx_view *view;   /* ONNX_VIEW: the view */
    const struct onnx_term *term;
    int32_t table; /* the parameter (a table) that equals the constant, plus 1 */
} onnx_value;

typedef struct onnx_term {
    const Onnx__NodeProto *node;
    onnx_value x, keys;      /* the normalised value; or queries and keys */
    double eps, factor;      /* added to the variance; multiplies the scores */
    const onnx_const *gamma; /* NULL: 1 */
    const onnx_const *bias;  /* bias by relative position, (heads, L, L); NULL: none */
    bool causal, windowed;   /* what its masks hide: later tokens; pixels rolled into a window */
} onnx_term;

/* --- the reader --- */

typedef struct onnx_note { /* Notes on a tensor of the graph. */
    bool has_qparam;
    float scale;
    int32_t zero; /* zero point, 0 .. 255 */
    bool never_negative;
} onnx_note;

typedef struct onnx_reader {
    hp_arena *arena;   /* memory of the result */
    hp_arena *scratch; /* the file and temporaries */
    const char *file;  /* for messages */
    hp_error *err;
    const Onnx__ModelProto *model;
    int64_t opset, file_bytes, folded_bytes;
    bool structure;     /* the file may leave large constants out */
    bool weights;       /* also read parameters' data */
    bool channels_last; /* the input's last dimension is the channels: (N, L, C), (C) */
    int64_t batch;
    onnx_names names; /* names of values */
    onnx_value *value;
    onnx_names layer_names, param_names;
    hp_graph *graph;
    int cap_layer, cap_tensor, cap_param, cap_note, cap_data;
    onnx_note *note;     /* per tensor */
    hp_onnx_param *data; /* per parameter */
    int64_t macs;
} onnx_reader;

/* A node being read. */
typedef struct onnx_op onnx_op;
typedef struct onnx_call {
    onnx_reader *r;
    const Onnx__NodeProto *node;
    const onnx_op *op;
    onnx_value *in[ONNX_MOST_IN]; /* NULL: omitted */
    int n_in;
    onnx_value *out; /* the first output */
} onnx_call;

struct onnx_op {
    const char *domain, *name;
    int since;                       /* smallest opset whose semantics are implemented */
    int least, most;                 /* inputs */
    const char *attributes;          /* known ones, between spaces: " axis keepdims " */
    bool quantised;                  /* accepts integers that represent reals */
    hp_status (*read)(onnx_call *c); /* reads the node if an input is a tensor; NULL: constants only */
    hp_status (*fold)(onnx_call *c, onnx_const *out); /* folds the node if all inputs are constant; NULL:
                                                       * tensors only */
};
#define READ(domain, name, id, ...) hp_status onnx_read_##id(onnx_call *c);
#define FOLD(domain, name, id, ...) hp_status onnx_fold_##id(onnx_call *c, onnx_const *out);
#define BOTH(domain, name, id, ...) READ(domain, name, id) FOLD(domain, name, id)
#include "networks/onnx/onnx_ops.def"
#undef READ
#undef FOLD
#undef BOTH
const onnx_op *onnx_op_of(const Onnx__NodeProto *n); /* NULL: unknown */
/* Are the operators of all needed nodes known? Errors: HP_EDATA with the first unknown one, and the names of
 * others. */
hp_status onnx_check_operators(onnx_reader *r, const bool *needed);

/* Formats "model.onnx: node 'conv1' (Conv): " and the message; returns HP_EDATA. */
hp_status onnx_fail(const onnx_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The value was never computed, because its node does not make that output here. Names the node; returns
 * HP_EDATA. */
hp_status onnx_fail_unmade(const onnx_call *c, const onnx_value *v);
/* "node 'conv1' (Conv)"; an unnamed node is titled by its output. */
const char *onnx_title(hp_arena *arena, const Onnx__NodeProto *n);
/* The node that made the value; NULL: none. */
const Onnx__NodeProto *onnx_maker_of(const onnx_reader *r, const onnx_value *v);
/* The call with the value's maker as its node, so that messages and layers are named after it. */
onnx_call onnx_as_maker(const onnx_call *c, const onnx_value *v);
/* " after node 'a' (Transpose), node 'b' (Reshape)": the nodes whose views or terms the value's maker read;
 * "" if none. */
const char *onnx_chain_to(const onnx_reader *r, const onnx_value *v);
const char *onnx_dims(const onnx_reader *r, const onnx_value *v); /* "(1, 3, 8, 8)" */
/* Makes a name from the file safe for messages and graphs: printable, no spaces, quotes or commas, bounded
 * length. */
const char *onnx_clean(hp_arena *arena, const char *name);

/* --- attributes (onnx/attr.c); without the attribute, the value keeps its default --- */

/* Reads an integer in low .. high. Errors: HP_EDATA, as for all functions below. */
hp_status onnx_attr_int(const onnx_call *c, const char *name, int64_t low, int64_t high, int64_t *value);
hp_status onnx_attr_float(const onnx_call *c, const char *name, double *value);
hp_status onnx_attr_text(const onnx_call *c, const char *name, const char **value);
/* *n: number of values; 0 without the attribute. */
hp_status onnx_attr_ints(const onnx_call *c, const char *name, int most, int64_t *value, int *n);
const Onnx__AttributeProto *onnx_attr(const onnx_call *c, const char *name); /* or NULL */
/* Reads integers that older versions pass as an attribute, newer ones as constant input `k`. */
hp_status onnx_ints(const onnx_call *c, const char *name, int k, int most, int64_t *value, int *n);
/* Fails on attributes that the operator's row does not list. */
hp_status onnx_check_attributes(const onnx_call *c);
/* -n .. n-1 becomes 0 .. n-1. */
hp_status onnx_axis(const onnx_call *c, int64_t axis, int n, int *out);

/* --- constants and inputs (fold/const.c) --- */

/* Reads a tensor of the file: its shape, type and, if stored, its elements. */
hp_status onnx_const_read(const onnx_reader *r, const Onnx__TensorProto *t, onnx_const *c);
/* Number of elements for these dimensions; false: negative or more than 2^40. */
bool onnx_count(int n_dim, const int64_t *dim, int64_t *count);
/* Allocates a computed constant of c's type and shape; sets count and data. data is NULL if `known` is false
 * and the constant is large. */
hp_status onnx_const_room(onnx_call *c, bool known, onnx_const *out, void **data);
/* Charges `bytes` to the budget for constant folding. */
hp_status onnx_spend(const onnx_call *c, int64_t bytes);
/* Input k as a constant; an error when it is omitted or not constant. */
hp_status onnx_need_const(const onnx_call *c, int k, const char *what, const onnx_const **out);
/* Input k as a tensor; an error when it is omitted or constant. */
hp_status onnx_need_tensor(const onnx_call *c, int k, onnx_value **x);
/* Input k as a tensor or a view of one. */
hp_status onnx_need_view(const onnx_call *c, int k, onnx_value **x);
/* Makes the value a tensor by layers that cut, pick or normalise; an error if no layers can. */
hp_status onnx_settle(const onnx_call *c, onnx_value *v);
/* Input k as one number; *value keeps its default when the input is omitted. */
hp_status onnx_need_number(const onnx_call *c, int k, const char *what, double *value);
static inline onnx_value *onnx_in(const onnx_call *c, int k) {
    return k < c->n_in ? c->in[k] : NULL;
}
/* The node's output k; NULL if it has none. */
onnx_value *onnx_out(const onnx_call *c, size_t k);
/* Replaces 0 and -1 in the dimensions of a Reshape of x (ops/op_move.c). */
hp_status onnx_resolve_shape(const onnx_call *c, const onnx_value *x, bool allow_zero, int64_t *dim, int n);
/* Slice of a dimension of n: bounds beyond the ends are clamped. */
hp_status onnx_slice_bounds(const onnx_call *c, int64_t n, int64_t start, int64_t end, int64_t step,
                            int64_t *first, int64_t *count);

/* --- layouts (ops/op_layout.c) --- */

/* Extent of an axis of the value: samples, rows, columns or channels. */
int64_t onnx_extent(const onnx_reader *r, const onnx_value *v, int axis);
/* Per axis, the dimension that contains it; -1 for extents of 1. Returns false if a dimension boundary splits
 * an axis. */
bool onnx_axes(const onnx_reader *r, const onnx_value *v, int of[HP_AXES]);
/* Is the layout (N, C, H, W) in that order, or its first `rank` dimensions with 1 for the others? */
bool onnx_is_canonical(const onnx_reader *r, const onnx_value *v, int rank);
/* Does the dimension hold the channels, or the samples, and nothing else? */
bool onnx_is_channel_dim(const onnx_reader *r, const onnx_value *v, int dim);
bool onnx_is_sample_dim(const onnx_reader *r, const onnx_value *v, int dim);
hp_status onnx_need_map(const onnx_call *c, int k, onnx_value **x); /* (N, C, L) or (N, C, H, W) */
/* Sets the output to `tensor` with the layout of `like`, or canonical with `rank` dimensions. */
void onnx_result_like(onnx_call *c, int32_t tensor, const onnx_value *like);
void onnx_result(onnx_call *c, int32_t tensor, int rank);
/* Gives v other dimensions with the same product; returns false if they split an axis. */
bool onnx_regroup(const onnx_reader *r, onnx_value *v, const int64_t *dim, int n_dim);
/* Is the constant one number, or one per channel of x? */
bool onnx_per_channel(const onnx_reader *r, const onnx_value *x, const onnx_const *k);
/* Do the dimensions of two tensors contain the same axes, apart from extents of 1? */
bool onnx_same_axes(const onnx_reader *r, const onnx_value *x, const onnx_value *y);

/* --- writing the graph (onnx/onnx_emit.c) --- */

/* Appends the layer, named after the node. out_c: output channels of conv, convt, linear. */
hp_status onnx_emit(const onnx_call *c, hp_layer l, int64_t out_c, int32_t *tensor);
/* Adds a parameter to the last layer, named after the constant, or "<layer>.<suffix>". `data` may be NULL if
 * weights are not read. */
hp_status onnx_emit_param(const onnx_call *c, hp_param_kind kind, const char *name, const char *suffix,
                          int n_dim, const int64_t *dim, int64_t fan_in, hp_onnx_param data);
/* Ties a parameter of another layer to the last layer. */
hp_status onnx_emit_tied(const onnx_call *c, int32_t param);
/* y = factor x + bias, per channel; bias may be NULL. */
hp_status onnx_emit_scale(const onnx_call *c, int32_t x, const float *factor, const float *bias,
                          int32_t *tensor);
/* Adds the bias (NULL: none) of the conv or linear layer just appended. */
hp_status onnx_emit_bias(const onnx_call *c, const onnx_const *bias, int64_t outs);
/* The constant's elements as float32; NULL if weights are not read. */
const float *onnx_floats(const onnx_call *c, const onnx_const *k);
/* The name, with a number appended if it is taken; adds it to `names`. */
const char *onnx_unique(hp_arena *arena, onnx_names *names, const char *name);

/* Notes that tensor y has x's scale and zero point. */
void onnx_note_as(onnx_reader *r, int32_t y, int32_t x);

/* --- nodes that together make a layer (onnx/tokens) --- */

/* Reads a node that has terms as inputs or makes one; *done: it did. */
hp_status onnx_read_term(onnx_call *c, bool *done);
/* Name of a kind in messages. */
const char *onnx_kind_name(onnx_kind kind);

/* --- shared by several operators --- */

/* Appends a layer norm over x's channels; gamma NULL: 1, beta NULL: none (ops/op_norm.c). */
hp_status onnx_emit_layernorm(const onnx_call *c, int32_t x, double eps, const onnx_const *gamma,
                              const onnx_const *beta, int32_t *y);

/* Adds or multiplies two tensors with the layouts of x and y (ops/op_arith.c). */
hp_status onnx_combine(onnx_call *c, hp_layer_op op, const onnx_value *x, int32_t x_tensor,
                       const onnx_value *y, int32_t y_tensor);
/* Appends a gather of *tensor by the layer's rules (networks/graph/graph_gather.h). A member that is 0 takes
 * the input's value (ops/op_gather.c). */
hp_status onnx_emit_gather(const onnx_call *c, hp_layer l, int32_t *tensor);
/* Repeats axes of one element to the given sizes. */
hp_status onnx_emit_repeated(const onnx_call *c, int32_t h, int32_t w, int32_t channels, int32_t *tensor);
/* Keeps `count` rows and columns: the first and then every step-th. */
hp_status onnx_emit_strided(const onnx_call *c, const int64_t first[2], const int64_t count[2],
                            const int64_t step[2], int32_t *tensor);
/* Turns blocks of pixels, which must divide the map, into one pixel's channels: those of the block's first
 * pixel, then of the next one in its row ... */
hp_status onnx_emit_space_to_depth(const onnx_call *c, int64_t rows, int64_t cols, int32_t *tensor);
/* Checks that x can be joined with `first` along `axis`; joins parts (ops/op_move.c). */
hp_status onnx_check_part(const onnx_call *c, const onnx_value *first, const onnx_value *x, int axis);
hp_status onnx_join(onnx_call *c, const int32_t *part, int n, int32_t *y);

/* --- before and after the nodes --- */

/* The model's input as the graph's first layer (ops/op_image.c). */
hp_status onnx_read_image(onnx_reader *r, const Onnx__GraphProto *g, const bool *needed, int image_h,
                          int image_w, hp_onnx_model *m);
/* Recognises hard swish and folds scales into their neighbours; returns the output's tensor
 * (fold/simplify.c). */
int32_t onnx_simplify(onnx_reader *r, int32_t output);
/* Simplifies, drops unread layers, sets units and renumbers (onnx/onnx_finish.c). */
hp_status onnx_finish(onnx_reader *r, int32_t output, hp_onnx_model *m);
const bool *onnx_live(const onnx_reader *r, int32_t output); /* per layer: does the output need it? */
/* Per layer, the hp_tp of linear layers in pairs that ranks may split (tokens/onnx_tokens_share.c). */
const int8_t *onnx_shared(const onnx_reader *r, const bool *live, int32_t output);

#endif
