/* cuda_infer_device_matrix.c - convolutions, transposed convolutions and linear layers, of bytes or floats:
 * their taps and the end of their sums. */
#include "exec/cuda/infer/cuda_infer_device.h"

hp_cuda_taps hp_cuda_taps_of(const hp_bound *b) {
    const int32_t groups = b->shape.groups > 0 ? b->shape.groups : 1;
    hp_cuda_taps t = {.x = b->x[0],
                      .weight = b->pack.forward,
                      .shape = b->shape,
                      .transposed = b->layer->op == HP_CONVT,
                      .groups = groups,
                      .outs = b->shape.oc / groups,
                      .ins = b->shape.ic / groups};
    t.tap = t.ins;
    t.row_taps = t.shape.kw * t.ins;
    t.weight_row = (int64_t)t.shape.kh * t.row_taps;
    return t;
}

hp_cuda_finish hp_cuda_finish_of(const hp_bound *b, const hp_infer_op *o, const hp_matrix_units *u) {
    return (hp_cuda_finish){.y = b->y,
                            .put = hp_cuda_put_of(&o->y),
                            .act = hp_cuda_act_of(o),
                            .adds = o->adds,
                            .units = u->bytes,
                            .add_scale = u->add_scale,
                            .lo8 = u->lo8,
                            .hi8 = u->hi8};
}

/* Layout (O, I/groups, kh, kw); transposed layers (I, O/groups, kh, kw). */
int64_t hp_cuda_canonical(const hp_cuda_taps *t, int32_t group, int32_t out, int32_t in, int32_t tap) {
    const int64_t taps = (int64_t)t->shape.kh * t->shape.kw;
    if (t->transposed) return (((int64_t)group * t->ins + in) * t->outs + out) * taps + tap;
    return (((int64_t)group * t->outs + out) * t->ins + in) * taps + tap;
}

bool hp_cuda_is_product(const hp_bound *b) {
    const hp_shape *s = &b->shape;
    return b->layer->op == HP_LINEAR ||
           (s->kh == 1 && s->kw == 1 && s->sh == 1 && s->sw == 1 && s->groups < 2 && s->ph == 0 &&
            s->pw == 0 && s->ih == s->oh && s->iw == s->ow);
}

hp_status hp_cuda_infer_matrix(hp_device *d, const hp_bound *b, hp_cuda_launch *l, hp_error *err) {
    const bool bytes = b->stored.x[0] == HP_U8 || b->layer->deployed.dynamic;
    return (bytes ? hp_cuda_infer_bytes : hp_cuda_infer_real)(d, b, l, err);
}
