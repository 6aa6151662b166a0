/* terms.h - nodes that form a layer only together, as exporters write layer norms and attention. Each turns
 * the kinds of its inputs into another kind of value, until one completes the layer. */
#ifndef HP_TERMS_H
#define HP_TERMS_H

#include "networks/onnx/onnx_inside.h"
#include "networks/onnx/ops/op_view.h"

/* `in` has the inputs in the order of the table's kinds. *fits = false: the node does not match the pattern,
 * and nothing was done. */
typedef hp_status onnx_term_reader(onnx_call *c, onnx_value *const *in, bool *fits);
#define TERM(op, kinds, swaps, function) onnx_term_reader onnx_term_##function;
#include "networks/onnx/tokens/terms.def"
#undef TERM

/* Marks scores in which each token sees only itself and those before it (tokens/onnx_tokens_masks.c). */
hp_status onnx_term_hide_later(onnx_call *c, onnx_value *scores);
/* Sets the output to a value of this kind with x's dimensions. */
void onnx_term_result(onnx_call *c, onnx_kind kind, const onnx_value *x, onnx_term t);
/* Is the constant one number? */
bool onnx_is_number(const onnx_value *v, double *number);
/* Selects channels `channel` of `tensor`, in that order; new layers' names end in `suffix`
 * (tokens/onnx_tokens_pick.c). */
hp_status onnx_pick(const onnx_call *c, int32_t tensor, const int32_t *channel, int64_t n, const char *suffix,
                    int32_t *y);
/* Makes a map of a view whose axes were split and regrouped (tokens/onnx_tokens_shuffle.c); *fits: there are
 * layers that can. */
hp_status onnx_settle_shuffled(const onnx_call *c, onnx_value *v, bool *fits);
/* factor * tensor; the tensor itself if the factor is nearly 1. */
hp_status onnx_scaled(const onnx_call *c, int32_t tensor, double factor, int32_t *y);

#endif
