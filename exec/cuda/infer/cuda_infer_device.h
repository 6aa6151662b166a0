/* cuda_infer_device.h - what the files of inference on a GPU share.
 *
 * What a layer needs to know is worked out as for every device (exec/device/infer), and becomes the arguments
 * of a kernel; constants go to the layer's pack. */
#ifndef HP_CUDA_INFER_DEVICE_H
#define HP_CUDA_INFER_DEVICE_H

#include "exec/cuda/infer/cuda_infer_kernels.h"
#include "exec/device/infer/infer_units.h"

/* The device as exec/device/infer/prepare.h sees it. */
hp_infer hp_cuda_infer_of(hp_device *d);

/* Of a layer that is no matrix product; factors are device addresses, in the layer's pack; those of raw pixels
 * lie in memory of the host. Errors: as hp_infer_op_of, hp_infer_factors, hp_cuda_upload. */
hp_status hp_cuda_op_of(hp_device *d, const hp_bound *b, hp_infer_op *op, hp_error *err);

/* Copies the layer's constants to its pack, once. Errors: HP_EPLAN (less was planned). */
hp_status hp_cuda_upload(hp_device *d, const hp_bound *b, const void *constants, int64_t bytes,
                         hp_error *err);

hp_cuda_act hp_cuda_act_of(const hp_infer_op *o);
hp_cuda_put hp_cuda_put_of(const hp_qparams *y);
/* Of bytes that become bytes one by one; else it is not there. */
hp_cuda_recode hp_cuda_recode_of(const hp_infer_op *o, int k);

/* Taps of a matrix layer; how its weights lie is left to the caller. */
hp_cuda_taps hp_cuda_taps_of(const hp_bound *b);
hp_cuda_finish hp_cuda_finish_of(const hp_bound *b, const hp_infer_op *o, const hp_matrix_units *u);
/* A pixel at a time, transposed or not, or a whole map. */
bool hp_cuda_is_product(const hp_bound *b);
/* Of weight (output and input of a group, tap) in the canonical order. */
int64_t hp_cuda_canonical(const hp_cuda_taps *t, int32_t group, int32_t out, int32_t in, int32_t tap);

hp_cuda_prepare_fn hp_cuda_infer_point, hp_cuda_infer_map, hp_cuda_infer_matrix, hp_cuda_infer_bytes,
    hp_cuda_infer_real, hp_cuda_infer_trained;

#endif
