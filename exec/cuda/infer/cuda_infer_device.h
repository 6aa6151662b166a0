/* cuda_infer_device.h - shared by the files of inference on a GPU.
 *
 * exec/device/infer works out what a layer needs, as for every device; here that becomes a kernel's
 * arguments. Constants go to the layer's pack. */
#ifndef HP_CUDA_INFER_DEVICE_H
#define HP_CUDA_INFER_DEVICE_H

#include "exec/cuda/infer/cuda_infer_kernels.h"
#include "exec/device/infer/infer_units.h"

/* The device as exec/device/infer/prepare.h sees it. */
hp_infer hp_cuda_infer_of(hp_device *d);

/* Works out a layer that is not a matrix product. Factors are device addresses in the layer's pack; those of
 * raw pixels are in host memory. Errors: as hp_infer_op_of, hp_infer_factors, hp_cuda_upload. */
hp_status hp_cuda_op_of(hp_device *d, const hp_bound *b, hp_infer_op *op, hp_error *err);

/* Copies the layer's constants to its pack, once. Errors: HP_EPLAN (the plan reserved less). */
hp_status hp_cuda_upload(hp_device *d, const hp_bound *b, const void *constants, int64_t bytes,
                         hp_error *err);

hp_cuda_act hp_cuda_act_of(const hp_infer_op *o);
hp_cuda_put hp_cuda_put_of(const hp_qparams *y);
/* The table for bytes that map to bytes one by one; empty if there is none. */
hp_cuda_recode hp_cuda_recode_of(const hp_infer_op *o, int k);

/* Taps of a matrix layer; the caller sets the layout of the weights. */
hp_cuda_taps hp_cuda_taps_of(const hp_bound *b);
hp_cuda_finish hp_cuda_finish_of(const hp_bound *b, const hp_infer_op *o, const hp_matrix_units *u);
/* Is the layer a product per pixel, transposed or not, or over a whole map? */
bool hp_cuda_is_product(const hp_bound *b);
/* Index of a weight (output and input within a group, tap) in the canonical order. */
int64_t hp_cuda_canonical(const hp_cuda_taps *t, int32_t group, int32_t out, int32_t in, int32_t tap);

hp_cuda_prepare_fn hp_cuda_infer_point, hp_cuda_infer_map, hp_cuda_infer_matrix, hp_cuda_infer_bytes,
    hp_cuda_infer_real, hp_cuda_infer_trained;

#endif
