/* infer_units.c - units of quantised matrix layers; see infer_units.h. */
#include "exec/device/infer/infer_units.h"

#include <math.h>

static bool is_image(const hp_infer *in, int tensor) {
    return in->config->graph->tensor[tensor].producer == 0;
}

hp_infer_op hp_matrix_op(const hp_infer *in, const hp_bound *b) {
    hp_infer_op o = {.y = hp_infer_qparams(in, b->layer->out, b->stored.y), .adds = hp_layer_adds(b->layer)};
    hp_infer_set_act(&o, b->layer);
    return o;
}

static uint8_t byte_near(double v, const hp_qparams *y) {
    return (uint8_t)fmin(fmax(rint(v / (double)y->scale) + y->zero, 0), 255);
}

/* First channel of the image that the output's channels read. */
static int first_input(const hp_infer *in, const hp_bound *b) {
    const hp_tensor *t = in->config->graph->tensor;
    const int groups = b->layer->groups > 1 ? b->layer->groups : 1;
    return groups > 1 ? b->shape.oc0 / (t[b->layer->out].c / groups) * (t[b->layer->in[0]].c / groups) : 0;
}

static void set_pixels(const hp_infer *in, const hp_bound *b, hp_matrix_units *u) {
    float scale[4], zero[4];
    hp_constants_pixels(in->config->constants, scale, zero);
    for (int c = 0, first = first_input(in, b); c + first < 4; c++) u->pixel_zero[c] = zero[c + first];
}

hp_matrix_units hp_matrix_units_of(const hp_infer *in, const hp_bound *b, const hp_infer_op *op) {
    const hp_layer *l = b->layer;
    hp_matrix_units u = {.bytes = op->y.dtype == HP_U8 && op->clamps,
                         .pixels = is_image(in, l->in[0]) && !l->deployed.dynamic,
                         .in_scale = 1,
                         .inverse = 1,
                         .hi8 = 255};
    if (u.pixels) {
        set_pixels(in, b, &u);
    } else if (!l->deployed.dynamic) { /* else known only at run time */
        const hp_qparam x = hp_constants_qparam(in->config->constants, l->in[0]);
        u.in_scale = (double)x.scale;
        u.in_zero = x.zero;
    }
    if (u.bytes) {
        u.inverse = 1 / (double)op->y.scale;
        u.zero = op->y.zero;
        u.lo8 = byte_near(op->lo, &op->y);
        u.hi8 = byte_near(op->hi, &op->y);
    }
    if (op->adds && op->y.dtype == HP_U8) {
        const hp_qparam a = hp_constants_qparam(in->config->constants, l->in[l->n_in - 1]);
        u.add_scale = (float)((double)a.scale * u.inverse);
        u.add_zero = a.zero;
    }
    return u;
}
