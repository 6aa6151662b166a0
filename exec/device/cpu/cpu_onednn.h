/* cpu_onednn.h - convolutions by oneDNN on dense (N, H, W, C) tensors, and matrix products.
 *
 * Only cpu_onednn.c knows the library's API. Weights come in canonical layout (O, I/groups, kh, kw) and are
 * packed into the layout each kernel wants; weight gradients come out canonical. Reference implementations of
 * the library are refused. */
#ifndef HP_CPU_ONEDNN_H
#define HP_CPU_ONEDNN_H

#include "exec/device/device_bind.h"

typedef struct hp_onednn hp_onednn;               /* engine and stream */
typedef struct hp_onednn_kernel hp_onednn_kernel; /* one layer in one direction */

typedef enum hp_onednn_kind {
    HP_ONEDNN_FORWARD,
    HP_ONEDNN_BACKWARD_DATA,
    HP_ONEDNN_BACKWARD_WEIGHTS
} hp_onednn_kind;

typedef struct hp_onednn_limits {
    int64_t pack_bytes;    /* size of the weights in the kernel's layout; not used by backward weights */
    int64_t scratch_bytes; /* in total, including the weight gradient in the kernel's layout */
} hp_onednn_limits;

const char *hp_onednn_version(char out[32]); /* for example "2.6.3": the version this process runs with */

/* Errors: HP_EUNAVAIL. `threads` > 0. */
hp_status hp_onednn_open(int threads, hp_onednn **lib, hp_error *err);
void hp_onednn_close(hp_onednn *lib);

/* Finds the library's first implementation within the limits that is not a reference; NULL: none.
 * Searched once per geometry, whatever a box's position in the map; lives until `lib` is closed.
 * Errors: HP_EINTERNAL. */
hp_status hp_onednn_kernel_find(hp_onednn *lib, hp_onednn_kind kind, const hp_shape *s, bool bias,
                                hp_onednn_limits limits, hp_onednn_kernel **kernel, hp_error *err);
const char *hp_onednn_kernel_name(const hp_onednn_kernel *k);
int64_t hp_onednn_kernel_pack_bytes(const hp_onednn_kernel *k);
int64_t hp_onednn_kernel_scratch_bytes(const hp_onednn_kernel *k);
/* Can either kernel read what was packed for the other? */
bool hp_onednn_same_layout(const hp_onednn_kernel *a, const hp_onednn_kernel *b);

/* Packs canonical weights into the kernel's layout. */
hp_status hp_onednn_pack(hp_onednn_kernel *k, const float *weights, float *pack, hp_error *err);
/* y = conv(x, pack) + bias. */
hp_status hp_onednn_forward(hp_onednn_kernel *k, float *y, const float *x, const float *pack,
                            const float *bias, void *scratch, hp_error *err);
hp_status hp_onednn_backward_data(hp_onednn_kernel *k, float *dx, const float *dy, const float *pack,
                                  void *scratch, hp_error *err);
/* Writes dw, or adds to it with `add`. Each weight is a single float32 sum over all pixels: see
 * plan/memory/gradient_bands.h. */
hp_status hp_onednn_backward_weights(hp_onednn_kernel *k, float *dw, const float *x, const float *dy,
                                     bool add, void *scratch, hp_error *err);

/* c (m, n) = a (m, k) * b (k, n), or added to c with `add`; a transposed matrix is stored (k, m),
 * (n, k). Row-major. */
hp_status hp_onednn_matrix(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k,
                           bool transpose_a, bool transpose_b, bool add, hp_error *err);
/* The same for parts of larger matrices, with rows lda and ldb apart. */
hp_status hp_onednn_matrix_part(float *c, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t m,
                                int64_t n, int64_t k, bool transpose_a, bool transpose_b, bool add,
                                hp_error *err);

#endif
