/* onnx_int8_dynamic.c - DynamicQuantizeLinear: models quantised at run time, as onnxruntime's
 * quantize_dynamic writes them.
 *
 * The scale is removed from both sides: integers with scale 1 and zero point 0 represent the reals
 * themselves, and subsequent nodes get the constants 1 and 0 as scale and zero point. The result is the float
 * network with the model's 8-bit weights; prec=int8-dynamic quantises its layers' inputs by the same
 * formula. */
#include "networks/onnx/onnx_inside.h"

#include <string.h>

static onnx_value *output(const onnx_call *c, size_t k) {
    const char *name = k < c->node->n_output ? c->node->output[k] : "";
    const int32_t i = *name ? onnx_names_find(&c->r->names, name) : -1;
    return i < 0 ? NULL : &c->r->value[i];
}

static void set_number(const onnx_call *c, size_t k, int type, const void *data) {
    onnx_value *v = output(c, k);
    if (!v) return;
    v->kind = ONNX_CONST;
    v->type = type;
    v->c = (onnx_const){.name = "", .type = type, .count = 1, .data = data};
}

/* Fails unless only operators on these integers read them. */
static hp_status check_hidden(const onnx_call *c) {
    const Onnx__GraphProto *g = c->r->model->graph;
    for (size_t i = 0; i < g->n_output; i++)
        for (size_t k = 0; k < c->node->n_output; k++) {
            const onnx_value *v = output(c, k);
            if (v && strcmp(g->output[i]->name, v->name) == 0)
                return onnx_fail(c, "what it makes must not be a result of the model");
        }
    return HP_OK;
}

hp_status onnx_read_dynamicquantizelinear(onnx_call *c) {
    static const double one = 1, none = 0;
    static const float scale = 1;
    static const uint8_t zero = 0;
    static const onnx_quant plain = {.n = 1, .scale = &one, .zero = &none, .low = 0, .high = 255};
    onnx_value *x;
    HP_TRY(onnx_need_tensor(c, 0, &x));
    HP_TRY(check_hidden(c));
    onnx_result_like(c, x->tensor, x);
    c->out->type = ONNX_UINT8;
    c->out->quant = &plain;
    set_number(c, 1, ONNX_FLOAT, &scale);
    set_number(c, 2, ONNX_UINT8, &zero);
    return HP_OK;
}
