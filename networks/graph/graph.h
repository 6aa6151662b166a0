/* graph.h - a network: layers and tensors as arrays and ids, in topological order, per sample.
 *
 * Tensors are (N, H, W, C), dense; the graph stores only H, W, C and so does not depend on the batch. A
 * *unit* is what a stage cut may not split (for example, a residual block); units are contiguous ranges of
 * layers. */
#ifndef HP_GRAPH_H
#define HP_GRAPH_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_layer_op {
#define LAYER(id, name, inputs, x, y, gradients, meaning) HP_##id,
#include "networks/graph/layers.def"
#undef LAYER
    HP_LAYER_OPS
} hp_layer_op;

/* Columns of acts.def, by hp_act (networks/graph/acts.h). */
typedef enum hp_act_kind { HP_ACT_IS_CLAMP, HP_ACT_IS_FUSED, HP_ACT_IS_ALONE } hp_act_kind;
typedef enum hp_act_backward { HP_ACT_READS_X, HP_ACT_READS_Y } hp_act_backward;

typedef struct hp_act_info {
    hp_act_kind kind;
    hp_act_backward backward;
} hp_act_info;

extern const char *const hp_act_names[]; /* "", "relu", "relu6", "clip", ... */
extern const hp_act_info hp_act_infos[];

typedef struct hp_act_bounds {
    double least, greatest;
} hp_act_bounds;

enum { HP_MAX_IN = 64, HP_MAX_LAYER_PARAMS = 4, HP_NORM_PARAMS = 4 };

/* The axes of a tensor, in storage order. */
enum { HP_AXIS_N, HP_AXIS_H, HP_AXIS_W, HP_AXIS_C, HP_AXES };

/* How a tensor's elements are stored. */
typedef enum hp_store {
    HP_STORE_REAL, /* in the program's dtype */
    HP_STORE_U8, /* quantised: real = scale * (q - zero), one scale and zero point per tensor; for the image:
                  * raw pixels */
    HP_STORE_BF16,
    HP_STORE_F16,
    HP_STORES
} hp_store;

/* Columns of layers.def. */
typedef enum hp_reads_x { HP_X_NOTHING, HP_X_WEIGHTS, HP_X_DATA } hp_reads_x;
typedef enum hp_reads_y { HP_Y_NOTHING, HP_Y_MASK, HP_Y_ALWAYS } hp_reads_y;
typedef enum hp_gradients { HP_GRADIENTS_NONE, HP_GRADIENTS_APART, HP_GRADIENTS_ALONG } hp_gradients;

typedef struct hp_layer_info {
    const char *name;
    int max_in;
    hp_reads_x x; /* saved for the backward pass */
    hp_reads_y y;
    hp_gradients gradients;
    const char *meaning;
} hp_layer_info;

extern const hp_layer_info hp_layer_infos[HP_LAYER_OPS];

typedef struct hp_tensor {
    int32_t h, w, c;  /* per sample */
    int32_t producer; /* layer id */
    int32_t store;    /* hp_store */
    int32_t tp_unit;  /* group size of channels that tensor-parallel ranks split; 0: they split rows */
} hp_tensor;

/* How ranks split a linear layer (networks/graph/summands.h). */
typedef enum hp_tp { HP_TP_NONE, HP_TP_COLUMN, HP_TP_ROW } hp_tp;

typedef enum hp_param_kind {
    HP_PARAM_CONV_W,   /* (O, I/groups, kh, kw); transposed convolution: (I, O, kh, kw), never split */
    HP_PARAM_LINEAR_W, /* (O, I) with I in (C, H, W) order, as after torchvision's flatten */
    HP_PARAM_BIAS,     /* (O) */
    HP_PARAM_BN_GAMMA, /* (C) */
    HP_PARAM_BN_BETA,  /* (C) */
    HP_PARAM_BN_MEAN,  /* (C) running mean: state, not trained */
    HP_PARAM_BN_VAR,   /* (C) running variance: state, not trained */
    HP_PARAM_FACTOR,   /* scale: (C), a constant factor per channel; prelu: (C) or (1), slopes */
    HP_PARAM_TABLE,    /* (rows, C): a row per id or position; attention: (heads, relative positions) */
    HP_PARAM_TOKEN     /* (C) */
} hp_param_kind;

/* Initialisation of a weight as in torchvision (`hp_param_init` in exec/data reads it). */
typedef enum hp_init {
    HP_INIT_ZERO,
    HP_INIT_ONE,
    HP_INIT_KAIMING_FAN_OUT, /* normal, std = sqrt(2 / (O*kh*kw)): dim 0 times the window, also when
                              * grouped */
    HP_INIT_KAIMING_FAN_IN,  /* normal, std = sqrt(2 / fan_in) */
    HP_INIT_NORMAL_001,      /* normal, std 0.01 */
    HP_INIT_TORCH_DEFAULT,   /* uniform in +-1/sqrt(fan_in): nn.Conv2d, nn.Linear weights and biases */
    HP_INIT_NORMAL,          /* normal, std init_scale */
    HP_INIT_UNIFORM,         /* uniform in +-init_scale */
    HP_INIT_CONSTANT         /* init_scale */
} hp_init;

/* A tensor of a file that holds a parameter, possibly as some of its rows. */
typedef struct hp_stored {
    const char *name; /* NULL: same name and layout as the parameter */
    int32_t n_dim, dim[4];
    /* index of the parameter's first element in the file's tensor as (rows, columns) of the parameter */
    int64_t first;
    bool turned; /* the file stores (columns, rows) */
} hp_stored;

typedef struct hp_param {
    const char *name; /* state-dict name, "layer1.0.conv1.weight" */
    int32_t kind;     /* hp_param_kind */
    int32_t init;     /* hp_init */
    int32_t layer;    /* the first layer that has it; others may be tied to it */
    int32_t n_dim;
    int32_t dim[4]; /* row-major, the layout in memory and in files */
    int64_t count;  /* elements */
    int64_t fan_in; /* fan-in of the layer's weight, for its bias too */
    double init_scale;
    hp_stored stored;
} hp_param;

static inline bool hp_param_trained(const hp_param *p) {
    return p->kind != HP_PARAM_BN_MEAN && p->kind != HP_PARAM_BN_VAR;
}

typedef struct hp_layer {
    const char *name; /* "layer1.0.conv1" */
    int32_t op;       /* hp_layer_op */
    /* hp_act, for bn, act, add, mul, scale; in a deployed graph also for conv, convt, linear, concat */
    int32_t act;
    struct {
        double a, b;
    } act_arg;
    int32_t n_in, in[HP_MAX_IN];
    int32_t out; /* tensor id */
    int32_t unit;
    /* conv, convt, pools: all of it. Padding is at the top and left; that at the bottom and right follows
     * from the sizes. pad, crop: pad_h, pad_w. attention: kh x kw is the window in pixels (0: everything),
     * pad_h and pad_w the first boundaries between windows. */
    struct {
        int32_t kh, kw, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
        int32_t ceil_mode, count_include_pad; /* pools */
    } window;
    /* conv, convt; attention: the heads. prelu: 1: one slope for all channels, 0: one each. groupnorm. */
    int32_t groups;
    int32_t tp, summands; /* hp_tp; row layers: parts of the input, see networks/graph/summands.h */
    struct {
        int32_t kv_heads; /* heads of keys and values */
        int32_t causal;   /* attend only up to the pixel itself, in row order */
        double rotary;    /* base of rotary positions; 0: none */
    } attention;
    int32_t out_h, out_w; /* adaptpool, pad, resize; conv, convt, pools: 0 = symmetric padding */
    struct {
        int32_t interpolation, corners; /* hp_interpolation, hp_corners */
        int32_t inside;                 /* cubic: weights outside the map are redistributed */
        double cubic;                   /* coefficient a of Keys' kernel */
        double scale_h, scale_w; /* the given scales, if coordinates follow from them; 0: from the sizes */
    } resize;
    struct {
        int32_t first, step, step_outer, out_c, border; /* networks/graph/graph_gather.h */
    } gather;
    int32_t reduction;    /* reduce: hp_channel_reduction */
    double p;             /* dropout probability */
    double eps, momentum; /* norms: epsilon; bn: running <- (1-momentum)*running + momentum*batch */
    /* conv, convt, linear: weight[, bias]; bn: gamma, beta, mean, var; scale: factor[, bias]; deployed
     * concat: as its bn or scale, if any; layernorm: gamma[, beta]; rmsnorm: gamma; attention: [bias]; prelu:
     * slopes; embedding, position: table; classtoken: token */
    int32_t n_param, param[HP_MAX_LAYER_PARAMS];
    struct {                                  /* conv, convt, linear of a deployed graph */
        int32_t n_norm, norm[HP_NORM_PARAMS]; /* the batch norm folded into it */
        int32_t dynamic;                      /* quantises its real input at run time, sample by sample */
    } deployed;
} hp_layer;

typedef enum hp_interpolation { HP_NEAREST, HP_BILINEAR, HP_CUBIC, HP_INTERPOLATIONS } hp_interpolation;
/* Input coordinate of output pixel i; s = output size / input size, or the given scale (ONNX Resize,
 * coordinate_transformation_mode). */
typedef enum hp_corners {
    HP_CORNERS_HALF_PIXEL,         /* (i + 1/2) / s - 1/2; nearest rounds halves down */
    HP_CORNERS_PYTORCH_HALF_PIXEL, /* the same; 0 when the output has one pixel */
    HP_CORNERS_ALIGN,              /* i (in - 1) / (out - 1) */
    HP_CORNERS_ASYMMETRIC,         /* i / s; nearest rounds down */
    HP_CORNERS
} hp_corners;

typedef enum hp_channel_reduction {
    HP_CHANNELS_MEAN,
    HP_CHANNELS_MAX,
    HP_CHANNELS_ARGMAX,
    HP_CHANNEL_REDUCTIONS
} hp_channel_reduction;

typedef struct hp_graph {
    const char *net; /* "resnet50", the argument of --net */
    int32_t image_h, image_w, image_c, classes;
    int32_t deployed;  /* created by networks/deploy/deploy.h for inference */
    int32_t prec;      /* hp_prec (networks/graph/precision.h) */
    int32_t optimizer; /* hp_optimizer used in training (networks/graph/optimizer.h) */
    int32_t clips;     /* gradients are clipped by their global norm */
    int32_t n_layer, n_tensor, n_param, n_unit;
    /* Layer 0 is HP_INPUT. The last layer's output is the logits (N, h, w, classes): h = w = 1 classifies
     * images, otherwise every pixel has a label. */
    hp_layer *layer;
    hp_tensor *tensor;
    hp_param *param;
    int32_t *unit_first; /* n_unit + 1 entries: unit u is layers unit_first[u] .. unit_first[u+1]-1 */
} hp_graph;

/* Builds a built-in network (networks/nets), fused (bn+add+act in one layer), with shapes inferred. net:
 * "cnn", "resnet18", "resnet-v2-101", "amoebanetd:18,208", "unet:64", ... Everything lives in `arena`.
 * Errors: HP_EUSAGE with the list of names, HP_EPLAN for an image too small for the network. */
hp_status hp_net_build(hp_arena *arena, const char *net, int image_h, int image_w, int classes,
                       hp_graph **graph, hp_error *err);

/* Default number of classes: 1000; 10 for the CIFAR family and cnn, 2 for unet. */
int hp_net_default_classes(const char *net);

int64_t hp_graph_param_count(const hp_graph *g);        /* trained parameters */
int64_t hp_layer_macs(const hp_graph *g, int layer);    /* multiply-adds of one sample's forward pass */
int64_t hp_tensor_elems(const hp_graph *g, int tensor); /* elements per sample */
int hp_graph_last_use(const hp_graph *g, int tensor);   /* last layer that reads it; logits: n_layer */

/* Does the network take ids (rows of a table) instead of an image? */
bool hp_graph_reads_ids(const hp_graph *g);

/* Does the layer add its last input to its result before the activation? Deployed convolutions do. */
static inline bool hp_layer_adds(const hp_layer *l) {
    return (l->op == HP_CONV || l->op == HP_CONVT) && l->n_in > 1;
}

/* Does the layer end in an activation? */
static inline bool hp_layer_has_act(const hp_layer *l) {
    return l->act != 0; /* HP_ACT_NONE; graph.c asserts it */
}

/* Range of the layer's activation; infinite where unbounded. */
hp_act_bounds hp_act_bounds_of(const hp_layer *l);

/* Which of input and output the layer's backward pass reads, besides gradients. */
bool hp_layer_backward_reads_x(const hp_layer *l);
bool hp_layer_backward_reads_y(const hp_layer *l);
/* Do the gradients of its inputs depend on input k? */
bool hp_layer_data_reads_x(const hp_layer *l, int k);
/* Does a separate task compute the parameters' gradients, rather than the one for the inputs' gradients? */
static inline bool hp_layer_gradients_apart(const hp_layer *l) {
    return hp_layer_infos[l->op].gradients == HP_GRADIENTS_APART;
}
static inline bool hp_layer_gradients_along(const hp_layer *l) {
    return hp_layer_infos[l->op].gradients == HP_GRADIENTS_ALONG && l->n_param > 0;
}

/* --- attention --- */

static inline int hp_head_channels(const hp_graph *g, const hp_layer *l) {
    return g->tensor[l->out].c / l->groups;
}
/* Does a pixel attend to a window, rather than to all pixels or those before it? */
static inline bool hp_layer_is_windowed(const hp_layer *l) {
    return l->op == HP_ATTENTION && l->window.kh > 0;
}
/* The window that contains pixel i of n; windows begin at `shift` and at every multiple of `window` from
 * there. */
typedef struct hp_extent {
    int32_t lo, hi;
} hp_extent;
static inline hp_extent hp_window_of(int32_t i, int32_t window, int32_t shift, int32_t n) {
    const int32_t from = i - ((i - shift) % window + window) % window, end = from + window;
    return (hp_extent){from < 0 ? 0 : from, end > n ? n : end};
}

/* Does the activation's derivative depend on its input? */
static inline bool hp_act_reads_x(const hp_layer *l) {
    return hp_act_infos[l->act].backward == HP_ACT_READS_X;
}

/* Are its parameters those of a batch norm? A deployed concatenation can have them too. */
static inline bool hp_layer_is_norm(const hp_layer *l) {
    return l->n_param == HP_NORM_PARAMS;
}

/* Number of rows of the table whose ids the image holds; 0: it holds pixels. */
int32_t hp_graph_ids(const hp_graph *g);

/* The graph's structure as text, for hashing and `explain`: equal structures have equal texts. */
char *hp_graph_text(hp_arena *arena, const hp_graph *g);

/* Elements of parameter `i` of a layer (its position in layer.param) for output channels [lo, hi). */
typedef struct hp_elements {
    int64_t first, count;
} hp_elements;
hp_elements hp_param_elements(const hp_graph *g, const hp_layer *l, int i, int32_t lo, int32_t hi);
/* The inverse: channels to which these elements of the first parameter belong; all channels if it is never
 * split. */
hp_extent hp_param_channels(const hp_graph *g, const hp_layer *l, hp_elements e);
/* Are the layer's parameters and output channels never split? A single slope for all channels has one
 * gradient. */
static inline bool hp_layer_is_whole(const hp_layer *l) {
    return l->op == HP_CONVT || (l->op == HP_EMBEDDING && l->tp != (int32_t)HP_TP_ROW) ||
           l->op == HP_POSITION || (l->op == HP_PRELU && l->groups == 1);
}

#endif
