/* eager_store.h - what elements and attention's scores take in a framework's memory. */
#ifndef HP_EAGER_STORE_H
#define HP_EAGER_STORE_H

#include "costmodels/framework/framework.h"
#include "plan/tiles/tile.h"

/* Bytes of an element of each tensor, as the layer that makes it leaves it. hplan's 16-bit training stores all of them in 16 bits;
 * under autocast products are made in 16 bits, and what norms, softmax, parameters added to a map and the loss make is
 * float32, as is a sum with it (PyTorch 1.12, automatic mixed precision, op-specific behaviour). */
typedef struct hp_eager_store {
    const hp_graph *g;
    const hp_framework *f;
    bool casts;          /* in 16 bits, of float32 parameters */
    bool autocast;       /* and some operations not */
    const int8_t *width; /* per tensor */
} hp_eager_store;

/* f: NULL: PyTorch. `width` lives in `arena`. */
hp_eager_store hp_eager_store_of(hp_arena *arena, const hp_graph *g, const hp_framework *f, hp_dtype real);

/* Bytes of an element of the layer's input k as the layer keeps it: a cast of its own where it computes in another type. */
int hp_eager_width(const hp_eager_store *s, int layer, int k);

/* Bytes of an attention's scores for a box of its output: kept from forward to backward, and beside that at the fullest moment of
 * each pass. All 0 of other layers, and of frameworks that make them block by block. */
typedef struct hp_eager_scores {
    double kept, forward, backward;
} hp_eager_scores;
hp_eager_scores hp_eager_scores_of(const hp_eager_store *s, int layer, const hp_box *out);

/* Bytes of masks of the layer's dropout, which the framework's networks have where the graph has none. */
double hp_eager_mask(const hp_eager_store *s, int layer, const hp_box *out);

/* Bytes of the workspace of a convolution between these boxes, either way: in 16 bits kernels for matrix units want channels last,
 * and cuDNN turns both maps there (nchwToNhwc, nhwcToNchw), as costmodels/framework counts their time. out: NULL: in inference
 * results are written as they stay (VGG-16 of 1024 images runs in 24 GB: timm's results). */
double hp_eager_workspace(const hp_eager_store *s, int layer, const hp_box *in, const hp_box *out);

/* Bytes of casts of a role's parameters: those that products read, or the whole model. `place`: per parameter. */
double hp_eager_casts(const hp_eager_store *s, const hp_param_place *place);

#endif
