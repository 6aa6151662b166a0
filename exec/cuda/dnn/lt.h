/* lt.h - dense layers through cuBLASLt: describes a product and selects its algorithm, ready to enqueue.
 *
 * Matrices are dense and row-major: x (m, k) inputs, w (n, k) weights, y (m, n) outputs; m samples. Source:
 * NVIDIA, "cuBLAS Library User Guide", cublasLt API. */
#ifndef HP_LT_H
#define HP_LT_H

#include "exec/cuda/dnn/dnn.h"

typedef enum hp_lt_kind {
    HP_LT_FORWARD, /* y = x w^T + bias */
    HP_LT_DGRAD,   /* dx = dy w */
    HP_LT_WGRAD    /* dw = dy^T x */
} hp_lt_kind;

typedef struct hp_lt_product {
    int32_t kind;   /* hp_lt_kind */
    int32_t dtype;  /* type of both factors: HP_F32, HP_BF16, HP_F16; sums are float32 */
    int32_t result; /* type of the result: dtype or HP_F32 */
    int32_t math;   /* hp_dnn_math, for float32 only */
    int64_t m, n, k;
    bool bias;         /* forward, result HP_F32: adds a float32 vector (n) */
    bool add;          /* adds to the contents of the result */
    bool inputs_first; /* forward: w is (k, n) */
} hp_lt_product;

typedef struct hp_lt hp_lt;
typedef struct hp_lt_plan hp_lt_plan; /* lives as long as its hp_lt */

/* Errors: HP_EUNAVAIL. */
hp_status hp_lt_open(hp_cuda *cuda, hp_lt **lt, hp_error *err);
void hp_lt_close(hp_lt *lt);

/* Plans with the first algorithm that the heuristics name within `workspace` bytes. All of them add in a
 * fixed order, on one stream. Errors: HP_EUNAVAIL. */
hp_status hp_lt_plan_product(hp_lt *lt, const hp_lt_product *p, int64_t workspace, hp_lt_plan **plan,
                             hp_error *err);

/* Enqueues on the GPU's compute stream. Device addresses, 16-byte aligned; for gradients dx, dy, dw take the
 * places of x, y, w. */
hp_status hp_lt_run(hp_lt_plan *p, const hp_dnn_data *data, hp_error *err);

#endif
