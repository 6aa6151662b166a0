/* terms.h - nodes that only together make a layer, as exporters write layer norms and attention: each turns the kinds of
 * its inputs into another kind of value, until one makes the layer. */
#ifndef HP_TERMS_H
#define HP_TERMS_H

#include "networks/onnx/onnx_inside.h"
#include "networks/onnx/ops/op_view.h"

/* The inputs in the order of the table's kinds. *fits = false: the node is none of the pattern, and nothing was done. */
typedef hp_status onnx_term_reader(onnx_call *c, onnx_value *const *in, bool *fits);
#define TERM(op, kinds, swaps, function) onnx_term_reader onnx_term_##function;
#include "networks/onnx/tokens/terms.def"
#undef TERM

/* Scores of which each token sees itself and those before it (tokens/onnx_tokens_masks.c). */
hp_status onnx_term_hide_later(onnx_call *c, onnx_value *scores);
/* The output: a value of this kind with x's dimensions. */
void onnx_term_result(onnx_call *c, onnx_kind kind, const onnx_value *x, onnx_term t);
/* Is the constant one number? */
bool onnx_is_number(const onnx_value *v, double *number);
/* The tensor of channels `channel` of `tensor`, in that order; its layers end in `suffix` (tokens/onnx_tokens_pick.c). */
hp_status onnx_pick(const onnx_call *c, int32_t tensor, const int32_t *channel, int64_t n, const char *suffix,
                    int32_t *y);
/* Makes a map of a view whose axes were cut and put together otherwise (tokens/onnx_tokens_shuffle.c); *fits: there are layers that do. */
hp_status onnx_settle_shuffled(const onnx_call *c, onnx_value *v, bool *fits);
/* factor * tensor; the tensor itself where the factor is nearly 1. */
hp_status onnx_scaled(const onnx_call *c, int32_t tensor, double factor, int32_t *y);

#endif
