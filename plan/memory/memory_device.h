/* memory_device.h - memory that a device needs beyond the tensors, known to the planner without linking the
 * device's library.
 *
 * `s` is the layer's local shape (tile.h). The kernel of a layer depends on the whole layer, so that its
 * packed weights fit every tile. The values are upper bounds over the kernels that
 * exec/device/cpu/cpu_train.c accepts; it rejects a kernel that wants more and takes the next. */
#ifndef HP_MEMORY_DEVICE_H
#define HP_MEMORY_DEVICE_H

#include "plan/program/program.h"

/* Bytes of a layer's weights in the device's layout; 0 if the device reads the canonical weights. */
int64_t hp_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
/* Bytes at the end of scratch where a row layer's weights, or their gradient, are transposed to (O, I). */
int64_t hp_turned_bytes(const hp_layer *l, const hp_shape *s);
/* Bytes of the float64 gradient of a layer that spreads its input over more rows, columns or channels
 * (resize, gather); 0 for other layers. */
int64_t hp_spread_bytes(const hp_layer *l, hp_task_op op, const hp_shape *s);
/* Scratch bytes for one task of a layer. */
int64_t hp_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s, hp_dtype dtype);
/* The same for a layer of a deployed graph: all its constants (0 if it has none), and its scratch. Upper
 * bounds over what exec/device/infer needs, for any `s` of that layer (packs) or for this `s` (scratch). */
int64_t hp_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
int64_t hp_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
/* Number of heads that have channels in the shape. */
int64_t hp_attention_heads(const hp_graph *g, int layer, const hp_shape *s);
/* Bytes that a layer keeps from forward to backward (HP_BUF_SAVE): bn mean and inverse std, max-pool argmax
 * (u8), attention's log-sum per pixel and head; 0: none. */
int64_t hp_save_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype);

/* --- the same for each device --- */

/* The functions above describe the CPU. The reference device's programs are in float64, for which they are 0.
 * The following describe a GPU (exec/cuda). */
int64_t hp_gpu_pack_bytes(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
int64_t hp_gpu_task_scratch_bytes(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s,
                                  hp_dtype dtype);
int64_t hp_gpu_infer_pack_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
int64_t hp_gpu_infer_scratch_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
/* The library's share of these scratches, for a product with factors of type `dtype`: twice its tensors and 4
 * MiB, at most 64 MiB. */
int64_t hp_gpu_workspace_bytes(const hp_graph *g, int layer, const hp_shape *s, hp_dtype dtype);

typedef struct hp_device_memory {
    int64_t (*pack)(const hp_graph *g, int layer, bool backward, const hp_shape *s, hp_dtype dtype);
    int64_t (*scratch)(const hp_graph *g, int layer, hp_task_op op, const hp_shape *s, hp_dtype dtype);
    int64_t (*infer_pack)(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
    int64_t (*infer_scratch)(const hp_graph *g, int layer, const hp_shape *s, hp_dtype real);
    int64_t (*loss)(void); /* scratch bytes of a loss task */
    bool shares;           /* backward reads the forward pass's packed weights */
} hp_device_memory;

/* Memory rules named by rows of machines/device/devices.def. */
extern const hp_device_memory hp_memory_rules_cpu, hp_memory_rules_gpu;
/* device: hp_device_kind */
const hp_device_memory *hp_device_memory_of(int32_t device);

/* --- layouts the planner and the float32 kernels must agree on --- */

enum {
    HP_GROUPNORM_SUMS = 6,   /* float64 sums per channel (exec/device/cpu/cpu_groupnorm.c) */
    HP_WINOGRAD_POINTS = 16, /* F(2x2, 3x3): a tile of 4x4 */
    HP_WINOGRAD_PANEL = 32,  /* outputs of a panel in a pack: two 512-bit vectors */
    HP_WINOGRAD_ROWS = 8     /* tiles computed together */
};
enum {
    HP_ATTEND_BLOCK = 64, /* queries, and keys, of a block of scores */
    HP_ATTEND_PASS = 4,   /* blocks of queries for which a block of keys is packed once */
    HP_ATTEND_KEYS = 2,   /* blocks of keys for which, backward, a block of queries is */
    HP_ATTEND_GROUP = 16  /* blocks of keys, or of queries, whose sums are added up in float32 */
};
int64_t hp_attend_scratch(int head_channels);
enum { HP_GRADIENT_ROWS = 512 }; /* pixels per block of a weight gradient's matrix product */
enum { HP_CONVT_PIXELS = 256 };  /* input pixels per block of a transposed convolution's */
enum {
    HP_LINEAR_INS = 1 << 16
}; /* inputs of a fully connected layer summed in float32; these partial sums are added in float64 */
#define HP_WINOGRAD_ZEROS(channels)                                                                          \
    (((channels) + 15) / 16 * 16) /* floats in the zero row that stands for padding */

/* Does this convolution run as Winograd F(2x2, 3x3) in float32? Depends on shapes only, so that plans and
 * runs agree. */
bool hp_conv_winograd(const hp_graph *g, int layer);
/* The same for the channels that a role holds: transforms work on whole vectors of channels. */
bool hp_conv_winograd_part(const hp_graph *g, int layer, const hp_shape *s);
/* Does this convolution compute its weight gradient with our own float32 matrix product? */
bool hp_conv_gemm_gradient(const hp_graph *g, int layer);
/* Number of tiles transformed together: as many as fit a 1 MiB L2 cache with their products, a multiple of
 * HP_WINOGRAD_ROWS. */
int64_t hp_winograd_block(int in_channels, int out_channels, int64_t tiles, bool backward_weights);

#endif
