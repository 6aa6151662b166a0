/* loops_softmax.h - exponentials of a pixel's channels, divided by their sum. */
#ifndef HP_LOOPS_SOFTMAX_H
#define HP_LOOPS_SOFTMAX_H

typedef struct softmax {
    real most, factor;
} softmax;

static softmax softmax_of(const real *x, int64_t n) {
    softmax s = {x[0], 0};
    double sum = 0;
    for (int64_t c = 1; c < n; c++) s.most = x[c] > s.most ? x[c] : s.most;
    for (int64_t c = 0; c < n; c++) sum += (double)REAL_EXP(x[c] - s.most);
    s.factor = (real)(1 / sum);
    return s;
}

/* All channels are read, those of the output's box made. More than ROW are there as numbers: infer/point.c
 * sees to it. */
static void softmax_run(const hp_infer_op *o, const hp_bound *b) {
    real room[2][ROW];
    const int64_t channels = b->shape.oc, all = b->shape.ic;
    for (int64_t pixel = 0; pixel * channels < b->out_elems; pixel++) {
        const real *x = view(room[0], b->x[0], pixel * all, all, &o->x[0]);
        const softmax s = softmax_of(x, all);
        for (int64_t at = 0, n; at < channels; at += n) {
            n = lesser(ROW, channels - at);
            real *y = place(room[1], b->y, pixel * channels + at, &o->y);
            for (int64_t c = 0; c < n; c++) y[c] = REAL_EXP(x[b->shape.oc0 + at + c] - s.most) * s.factor;
            put(b->y, pixel * channels + at, y, n, &o->y);
        }
    }
}

#endif
