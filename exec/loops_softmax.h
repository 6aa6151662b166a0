/* loops_softmax.h - exponentials of a pixel's channels, divided by their sum. */
#ifndef HP_LOOPS_SOFTMAX_H
#define HP_LOOPS_SOFTMAX_H

static void softmax_pixel(real *y, const real *x, int64_t n) {
    real most = x[0];
    double sum = 0;
    for (int64_t c = 1; c < n; c++) most = x[c] > most ? x[c] : most;
    for (int64_t c = 0; c < n; c++) {
        y[c] = REAL_EXP(x[c] - most);
        sum += (double)y[c];
    }
    const real factor = (real)(1 / sum);
    for (int64_t c = 0; c < n; c++) y[c] *= factor;
}

/* More than ROW channels are there as numbers, and are wanted as numbers: infer_point.c sees to it. */
static void softmax_run(const hp_infer_op *o, const hp_bound *b) {
    real room[2][ROW];
    const int64_t channels = b->shape.oc;
    for (int64_t at = 0; at < b->out_elems; at += channels) {
        real *y = place(room[1], b->y, at, &o->y);
        softmax_pixel(y, view(room[0], b->x[0], at, channels, &o->x[0]), channels);
        put(b->y, at, y, channels, &o->y);
    }
}

#endif
