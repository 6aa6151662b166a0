/* eager_store.h - memory of elements and attention scores in a framework. */
#ifndef HP_EAGER_STORE_H
#define HP_EAGER_STORE_H

#include "costmodels/framework/framework.h"
#include "plan/tiles/tile.h"

/* Bytes per element of each tensor, as its layer leaves it. hplan's 16-bit training stores everything in 16
 * bits. Under autocast, products are in 16 bits; norms, softmax, parameters added to a map, and the loss are
 * float32, as is a sum with these (PyTorch 1.12, automatic mixed precision, op-specific behaviour). */
typedef struct hp_eager_store {
    const hp_graph *g;
    const hp_framework *f;
    bool casts;          /* casts float32 parameters to 16 bits */
    bool autocast;       /* and some operations not */
    const int8_t *width; /* per tensor */
} hp_eager_store;

/* f: NULL means PyTorch. `width` lives in `arena`. */
hp_eager_store hp_eager_store_of(hp_arena *arena, const hp_graph *g, const hp_framework *f, hp_dtype real);

/* Bytes per element of the layer's input k as the layer keeps it: a separate cast if it computes in another
 * type. */
int hp_eager_width(const hp_eager_store *s, int layer, int k);

/* Bytes of attention scores for a box of the output: kept from forward to backward, and in addition at the
 * peak of each pass. All 0 for other layers, and for frameworks that compute scores block by block. */
typedef struct hp_eager_scores {
    double kept, forward, backward;
} hp_eager_scores;
hp_eager_scores hp_eager_scores_of(const hp_eager_store *s, int layer, const hp_box *out);

/* Bytes of the layer's dropout masks. The framework's networks have dropout where the graph has none. */
double hp_eager_mask(const hp_eager_store *s, int layer, const hp_box *out);

/* Workspace bytes of a convolution between these boxes, in either direction. In 16 bits, kernels for matrix
 * units need channels last, and cuDNN converts both maps (nchwToNhwc, nhwcToNchw), as costmodels/framework
 * counts their time. out: NULL for inference, which writes results in their final layout (VGG-16 on 1024
 * images runs in 24 GB: timm's results). */
double hp_eager_workspace(const hp_eager_store *s, int layer, const hp_box *in, const hp_box *out);

/* Bytes of casts of a role's parameters: those that products read, or the whole model. `place`: per
 * parameter. */
double hp_eager_casts(const hp_eager_store *s, const hp_param_place *place);

#endif
