/* isa_panel.h - the sums of up to HP_PANEL_ROWS pixels and a panel of outputs. 512-bit registers hold all of
 * them at once; narrower ones take the panel 16 outputs at a time. */
#ifndef HP_ISA_PANEL_H
#define HP_ISA_PANEL_H

enum {
    ROWS = HP_PANEL_ROWS,
    CHUNK = LANES == 16 ? HP_PANEL_OUTS : HP_PANEL_LANES, /* outputs in hand at a time */
    CHUNK_VECS = CHUNK / LANES
};

/* Steps of one run: `w` at its first weights of the chunk, steps `stride` bytes apart. */
ALWAYS void run_steps(hp_dtype type, int rows, int vecs, const unsigned char *const *pixels,
                      const hp_panel_tile *t, const hp_panel_run *run, const unsigned char *w, int64_t stride,
                      sums acc[ROWS][CHUNK_VECS]) {
    const int bytes = step_bytes(type);
    const unsigned char *x[ROWS];
    UNROLL
    for (int r = 0; r < rows; r++) x[r] = pixels[r] + t->x_at + run->x;
    const unsigned char *next = x[0] + t->ahead; /* neighbours mostly lie side by side */
    for (int64_t i = 0, end = run->steps * bytes; i < end; i += bytes, w += stride) {
        sums wide[CHUNK_VECS];
        __builtin_prefetch(next + rows * i);
        UNROLL
        for (int v = 0; v < vecs; v++) wide[v] = weights_load(type, w + v * LANES * bytes);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const sums in = step_load(type, x[r] + i);
            UNROLL
            for (int v = 0; v < vecs; v++) acc[r][v] = dot(type, acc[r][v], in, wide[v]);
        }
    }
}

/* Sums of the chunk that begins at output `at` of a panel of `width` outputs. */
ALWAYS void chunk_sums(hp_dtype type, int rows, int vecs, const hp_panel_tile *t, int tile, int at, int width,
                       sums acc[ROWS][CHUNK_VECS]) {
    const int64_t stride = (int64_t)width * step_bytes(type);
    const unsigned char *w = (const unsigned char *)t->weights + at * step_bytes(type);
    UNROLL
    for (int v = 0; v < vecs; v++) {
        const sums first = sums_load((const int32_t *)t->init + at + v * LANES);
        UNROLL
        for (int r = 0; r < rows; r++) acc[r][v] = first;
    }
    for (int k = 0; k < t->n_run; k++)
        run_steps(type, rows, vecs, t->x + tile * rows, t, &t->run[k], w + t->run[k].w * stride, stride, acc);
}

ALWAYS int at_most(int n, int most) {
    return n < most ? n : most;
}

static void finish_row(hp_dtype type, const hp_panel_tile *t, int pixel, int at, int n, void *sum) {
    const int size = hp_dtype_bytes(t->out->op.y.dtype);
    unsigned char *y = t->y[pixel] + t->y_at + at * size;
    if (type == HP_U8)
        finish_bytes(y, sum, t->scale + at, t->shift + at, n, t->out);
    else
        finish_floats(y, sum, n, t->out);
}

ALWAYS void any_chunk(hp_dtype type, int rows, const hp_panel_tile *t, int tile, int at, int width) {
    const int chunk = at_most(width, CHUNK), vecs = chunk / LANES, n = at_most(t->outs - at, chunk);
    sums acc[ROWS][CHUNK_VECS];
    int32_t room[ROWS][CHUNK];
    chunk_sums(type, rows, vecs, t, tile, at, width, acc);
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vecs; v++) sums_store(&room[r][v * LANES], acc[r][v]);
    }
    for (int r = 0; r < rows && n > 0; r++) finish_row(type, t, tile * rows + r, at, n, room[r]);
}

/* Any output. */
ALWAYS void tile(hp_dtype type, int rows, int width, const hp_panel_tile *t) {
    for (int k = 0; k < t->tiles; k++)
        for (int at = 0; at < width; at += at_most(width, CHUNK)) any_chunk(type, rows, t, k, at, width);
}

#endif
