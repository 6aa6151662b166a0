/* op_view.h - views: reshapes, transpositions and slices of tensors that split an axis. */
#ifndef HP_OP_VIEW_H
#define HP_OP_VIEW_H

#include "networks/onnx/onnx_inside.h"

/* The parts of a tensor's or view's dimensions; false if it is neither. */
bool onnx_view_of(const onnx_reader *r, const onnx_value *v, onnx_view *w);
/* Changes to dimensions with the same product; false if they split an indivisible part, or make too many
 * parts. */
bool onnx_view_reshape(onnx_view *w, const int64_t *dim, int n_dim);
/* Dimension d becomes the one that was perm[d]. */
void onnx_view_permute(onnx_view *w, const int *perm, int n_dim);
/* Keeps `count` indices of dimension d, starting at `first`, in steps; false if it has several parts. */
bool onnx_view_cut(onnx_view *w, int d, int64_t size, int64_t first, int64_t count, int64_t step);
/* Does an axis start at another place than its first, as after torch.roll? */
bool onnx_view_rolls(const onnx_view *w);
/* The parts of dimension d. */
typedef struct onnx_parts {
    const onnx_part *part;
    int n;
} onnx_parts;
onnx_parts onnx_view_parts(const onnx_view *w, int d);
/* Is dimension 0 of the view the samples? */
bool onnx_view_by_sample(const onnx_reader *r, const onnx_value *v);
/* Sets `out` to a view of x's tensor with these dimensions; to a tensor if the view has all elements, axis by
 * axis. */
void onnx_result_view(const onnx_call *c, onnx_value *out, const onnx_value *x, const onnx_view *w, int n_dim,
                      const int64_t *dim);

#endif
