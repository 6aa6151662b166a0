/* memory_device.h - what a device needs beyond the tensors, known to the planner without linking the device's
 * library.
 *
 * `s`: the layer's local shape (tile.h); which kernel a layer gets depends on the whole layer, so that its
 * packed weights fit every tile. Upper bounds over the kernels exec/device/cpu/cpu_train.c accepts; it refuses a
 * kernel that wants more and takes the next. */
#ifndef HP_MEMORY_DEVICE_H
#define HP_MEMORY_DEVICE_H

#include "plan/program/program.h"

/* Bytes of a layer's weights in the device's layout; 0: the device reads the canonical weights. */
int64_t hp_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
/* Of the end of scratch, where a row layer's weights, or their gradient, are turned to (O, I). */
int64_t hp_turned_bytes(const hp_layer *l, const hp_shape *s);
/* Of the gradient, in float64, of a layer that spreads its input over more rows, columns or channels (resize, gather); 0: of others. */
int64_t hp_spread_bytes(const hp_layer *l, hp_task_op op, const hp_shape *s);
/* Scratch for one task of that layer of that shape. */
int64_t hp_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s, hp_dtype dtype);
/* The same for a layer of a deployed graph, all its constants included (0: it has none), and its scratch: an
 * upper bound over what exec/device/infer needs for any `s` of that layer (packs) resp. this one
 * (scratch).
 */
int64_t hp_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
int64_t hp_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
/* Heads of which the shape has some channels. */
int64_t hp_attention_heads(const hp_graph *g, int layer, const hp_shape *s);
/* What a layer keeps from forward to backward (HP_BUF_SAVE): bn mean and inverse std, max-pool argmax (u8), attention's
 * logarithm of each pixel's and head's sum; 0: none. */
int64_t hp_save_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype);

/* --- the same for each device --- */

/* The functions above are the CPU's; the reference's programs are in float64, for which they are 0. On a GPU
 * (exec/cuda): */
int64_t hp_gpu_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
int64_t hp_gpu_task_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s,
                                  hp_dtype dtype);
int64_t hp_gpu_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
int64_t hp_gpu_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
/* Of these scratches, what the library may have for a product whose factors are `dtype`: twice its tensors
 * and 4 MiB, at most 64 MiB. */
int64_t hp_gpu_workspace_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype);

typedef struct hp_device_memory {
    int64_t (*pack)(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
    int64_t (*scratch)(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s, hp_dtype dtype);
    int64_t (*infer_pack)(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
    int64_t (*infer_scratch)(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
    int64_t (*loss)(void); /* scratch of a loss task */
    bool shares;           /* the backward pass reads the forward pass's packed weights */
} hp_device_memory;

/* The rules that rows of machines/device/devices.def name. */
extern const hp_device_memory hp_memory_rules_cpu, hp_memory_rules_gpu;
/* device: hp_device_kind */
const hp_device_memory *hp_device_memory_of(int32_t device);

/* --- layouts the planner and the float32 kernels must agree on --- */

enum {
    HP_GROUPNORM_SUMS = 6,   /* of float64, per channel (exec/device/cpu/cpu_groupnorm.c) */
    HP_WINOGRAD_POINTS = 16, /* F(2x2, 3x3): a tile of 4x4 */
    HP_WINOGRAD_PANEL = 32,  /* outputs side by side in a pack: two 512-bit vectors */
    HP_WINOGRAD_ROWS = 8     /* tiles computed together */
};
enum {
    HP_ATTEND_BLOCK = 64, /* queries, and keys, of a block of scores */
    HP_ATTEND_PASS = 4,   /* blocks of queries for which a block of keys is packed once */
    HP_ATTEND_KEYS = 2,   /* blocks of keys for which, backward, a block of queries is */
    HP_ATTEND_GROUP = 16  /* blocks of keys, or of queries, whose sums are added up in float32 */
};
int64_t hp_attend_scratch(int head_channels);
/* Float64 numbers of a head's queries' gradients, which are sums over more keys than are added up at once; 0: not so many. */
int64_t hp_attend_sums(const hp_graph *g, const hp_layer *l, const hp_shape *s);
enum { HP_GRADIENT_ROWS = 512 }; /* pixels per block of a weight gradient's matrix product */
enum { HP_CONVT_PIXELS = 256 };  /* input pixels per block of a transposed convolution's */
enum {
    HP_LINEAR_INS = 1 << 16
}; /* inputs of a fully connected layer that are summed in float32; such sums in float64 */
#define HP_WINOGRAD_ZEROS(channels)                                                                          \
    (((channels) + 15) / 16 * 16) /* floats of the zero row that stands for padding */

/* Is this a convolution that runs as Winograd F(2x2, 3x3) in float32? A rule on shapes, so that plans and
 * runs agree. */
bool hp_conv_winograd(const hp_graph *g, int layer);
/* The same for the slice of its channels that a role holds: transforms work on whole vectors of them. */
bool hp_conv_winograd_part(const hp_graph *g, int layer, const hp_shape *s);
/* Is this a convolution whose weight gradient is our own matrix product in float32? */
bool hp_conv_gemm_gradient(const hp_graph *g, int layer);
/* Tiles transformed at a time: as many as a 1 MiB second-level cache holds with their products; a multiple of
 * HP_WINOGRAD_ROWS. */
int64_t hp_winograd_block(int in_channels, int out_channels, int64_t tiles, bool backward_weights);

#endif
