/* convs.c - convolutions that networks of large images need of cuDNN's door, timed, and checked at drawn
 * pixels against sums in float64: maps of 2^31 elements and more, tiles whose halo takes the place of
 * padding, and tiles with padding on one side. One JSON object per case and line.
 *
 *   convs [SIDE_OF_LARGE_MAPS [SIDE_OF_TILES]]      5800, 1024 */
#include "exec/cuda/dnn/dnn.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 64, PIXELS = 24, REPEATS = 5, SHIFT = 67 };
static const int64_t WORKSPACE = INT64_C(1) << 30;

typedef struct task {
    const char *name;
    int32_t dtype, math;
    bool large;                /* else a tile */
    int32_t top, bottom, side; /* padding; what is not padding is halo */
} task;

static const task TASKS[] = {
    {"tile, padded all round", HP_BF16, HP_DNN_STRICT, false, 1, 1, 1},
    {"tile, halo all round", HP_BF16, HP_DNN_STRICT, false, 0, 0, 0},
    {"tile, padded above and beside", HP_BF16, HP_DNN_STRICT, false, 1, 0, 1},
    {"tile, padded all round", HP_F32, HP_DNN_STRICT, false, 1, 1, 1},
    {"tile, halo all round", HP_F32, HP_DNN_STRICT, false, 0, 0, 0},
    {"tile, padded above and beside", HP_F32, HP_DNN_STRICT, false, 1, 0, 1},
    {"large map", HP_BF16, HP_DNN_STRICT, true, 1, 1, 1},
    {"large map", HP_F16, HP_DNN_STRICT, true, 1, 1, 1},
    {"large map", HP_F32, HP_DNN_TF32, true, 1, 1, 1},
};

typedef struct maps {
    hp_dnn_conv c;
    int64_t size, row;       /* bytes of an element, elements of an input row */
    unsigned char *base, *w; /* on the host; input row i is base from element i * SHIFT on */
    hp_dnn_data data;
} maps;

/* --- numbers --- */

static double value(const void *at, int32_t dtype, int64_t i) {
    if (dtype == HP_F32) return (double)((const float *)at)[i];
    const uint16_t h = ((const uint16_t *)at)[i];
    if (dtype == HP_F16) {
        const double v = h >> 10 & 31 ? ldexp(1024 + (h & 1023), (h >> 10 & 31) - 25) : ldexp(h & 1023, -24);
        return h >> 15 ? -v : v;
    }
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Quarters between -2 and 2, exact in every type. */
static void draw_value(void *at, int32_t dtype, int64_t i, uint64_t stream) {
    const int quarters = (int)hp_rng_below(5, stream, (uint64_t)i, 17) - 8;
    const float f = (float)quarters / 4;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (dtype == HP_F32) ((float *)at)[i] = f;
    if (dtype == HP_BF16) ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    if (dtype == HP_F16) /* exponents 2^-2 .. 2^1 */
        ((uint16_t *)at)[i] =
            (uint16_t)(f == 0 ? 0
                              : bits >> 31 << 15 | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023));
}

static void *drawn(int64_t elems, int32_t dtype, uint64_t stream) {
    void *at = malloc((size_t)(elems * hp_dtype_bytes((hp_dtype)dtype)));
    HP_ASSERT(at);
    for (int64_t i = 0; i < elems; i++) draw_value(at, dtype, i, stream);
    return at;
}

/* --- memory --- */

static hp_dnn_conv conv_of(const task *t, int32_t side) {
    return (hp_dnn_conv){.kind = HP_DNN_FORWARD,
                         .dtype = t->dtype,
                         .math = t->math,
                         .n = 1,
                         .ih = side + 2 - t->top - t->bottom,
                         .iw = side + 2 - 2 * t->side,
                         .ic = CHANNELS,
                         .oh = side,
                         .ow = side,
                         .oc = CHANNELS,
                         .kh = 3,
                         .kw = 3,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dil_h = 1,
                         .dil_w = 1,
                         .groups = 1,
                         .pad.top = t->top,
                         .pad.bottom = t->bottom,
                         .pad.left = t->side,
                         .pad.right = t->side};
}

static hp_status fill_input(const maps *m, hp_error *err) {
    for (int64_t i = 0; i < m->c.ih; i++)
        HP_CUDA(cudaMemcpy((unsigned char *)m->data.x + i * m->row * m->size,
                           m->base + i * SHIFT % m->row * m->size, (size_t)(m->row * m->size),
                           cudaMemcpyHostToDevice));
    return HP_OK;
}

static hp_status allocate(maps *m, int64_t workspace, hp_error *err) {
    const hp_dnn_conv *c = &m->c;
    const int64_t weights = (int64_t)c->oc * c->kh * c->kw * c->ic;
    m->base = drawn(2 * m->row, c->dtype, 1);
    m->w = drawn(weights, c->dtype, 2);
    HP_CUDA(cudaMalloc(&m->data.x, (size_t)(m->size * m->row * c->ih)));
    HP_CUDA(cudaMalloc(&m->data.w, (size_t)(m->size * weights)));
    HP_CUDA(cudaMalloc(&m->data.y, (size_t)(m->size * c->oh * c->ow * c->oc)));
    HP_CUDA(cudaMalloc(&m->data.workspace, (size_t)(workspace ? workspace : 1)));
    HP_CUDA(cudaMemcpy(m->data.w, m->w, (size_t)(m->size * weights), cudaMemcpyHostToDevice));
    return fill_input(m, err);
}

static void release(maps *m) {
    void *const all[] = {m->data.x, m->data.w, m->data.y, m->data.workspace};
    for (int i = 0; i < 4; i++) cudaFree(all[i]);
    free(m->base);
    free(m->w);
}

/* --- right, and fast? --- */

static double exact(const maps *m, int32_t oy, int32_t ox, int32_t k) {
    const hp_dnn_conv *c = &m->c;
    double sum = 0;
    for (int32_t tap = 0; tap < c->kh * c->kw; tap++) {
        const int32_t iy = oy - c->pad.top + tap / c->kw, ix = ox - c->pad.left + tap % c->kw;
        if (iy < 0 || iy >= c->ih || ix < 0 || ix >= c->iw) continue;
        const int64_t x = (int64_t)iy * SHIFT % m->row + (int64_t)ix * c->ic,
                      w = ((int64_t)k * c->kh * c->kw + tap) * c->ic;
        for (int32_t i = 0; i < c->ic; i++)
            sum += value(m->base, c->dtype, x + i) * value(m->w, c->dtype, w + i);
    }
    return sum;
}

/* The largest difference, over drawn pixels and the corners, relative to the largest number. */
static hp_status compare(const maps *m, double *worst, hp_error *err) {
    const hp_dnn_conv *c = &m->c;
    unsigned char pixel[4 * CHANNELS];
    double apart = 0, most = 0;
    for (uint64_t i = 0; i < PIXELS; i++) {
        const int32_t oy = i < 4 ? (i & 1 ? c->oh - 1 : 0) : (int32_t)hp_rng_below(9, 1, i, (uint64_t)c->oh),
                      ox = i < 4 ? (i & 2 ? c->ow - 1 : 0) : (int32_t)hp_rng_below(9, 2, i, (uint64_t)c->ow);
        HP_CUDA(cudaMemcpy(pixel,
                           (unsigned char *)m->data.y + m->size * CHANNELS * ((int64_t)oy * c->ow + ox),
                           (size_t)(m->size * CHANNELS), cudaMemcpyDeviceToHost));
        for (int32_t k = 0; k < CHANNELS; k++) {
            const double want = exact(m, oy, ox, k), difference = fabs(value(pixel, c->dtype, k) - want);
            if (!(difference <= apart)) apart = difference;
            most = fmax(most, fabs(want));
        }
    }
    *worst = apart / most;
    return HP_OK;
}

static int ascending(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static hp_status time_plan(const hp_cuda *cuda, hp_dnn_plan *p, const maps *m, double *s, hp_error *err) {
    cudaEvent_t begin, end;
    float ms[REPEATS];
    HP_CUDA(cudaEventCreateWithFlags(&begin, cudaEventDefault));
    HP_CUDA(cudaEventCreateWithFlags(&end, cudaEventDefault));
    for (int i = -1; i < REPEATS; i++) {
        HP_CUDA(cudaEventRecord(begin, cuda->compute));
        HP_TRY(hp_dnn_run(p, &m->data, err));
        HP_CUDA(cudaEventRecord(end, cuda->compute));
        HP_CUDA(cudaEventSynchronize(end));
        HP_CUDA(cudaEventElapsedTime(&ms[i < 0 ? 0 : i], begin, end));
    }
    qsort(ms, REPEATS, sizeof *ms, ascending);
    *s = 1e-3 * (double)ms[REPEATS / 2];
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return HP_OK;
}

static hp_status run_task(const hp_cuda *cuda, hp_dnn *dnn, const task *t, maps *m, hp_error *err) {
    hp_dnn_plan *p = NULL;
    double s = 0, worst = 0;
    HP_TRY(hp_dnn_plan_conv(dnn, &m->c, WORKSPACE, &p, err));
    HP_TRY(allocate(m, hp_dnn_plan_workspace(p), err));
    HP_TRY(time_plan(cuda, p, m, &s, err));
    HP_TRY(compare(m, &worst, err));
    const double flop = 2.0 * m->c.oh * m->c.ow * CHANNELS * CHANNELS * 9,
                 moved = (double)m->size * ((double)m->row * m->c.ih + (double)m->c.oh * m->c.ow * CHANNELS);
    /* stored in t, from factors that t, or 10 bits of mantissa, holds exactly: sums of quarters */
    const double bound = t->dtype == HP_BF16 ? 0x1p-8 : t->dtype == HP_F16 ? 0x1p-10 : 0x1p-15;
    printf("\"engine\":\"%s\",\"workspace\":%lld,\"s\":%.6g,\"flop_per_s\":%.4g,\"bytes_per_s\":%.4g,"
           "\"worst\":%.3g,\"ok\":%s}\n",
           hp_dnn_plan_name(p), (long long)hp_dnn_plan_workspace(p), s, flop / s, moved / s, worst,
           worst <= bound ? "true" : "false");
    return worst <= bound ? HP_OK : HP_EDATA;
}

/* A map of too many elements for this GPU is an answer too. */
static bool show(const hp_cuda *cuda, hp_dnn *dnn, const task *t, int32_t side) {
    static const char *const TYPES[HP_DTYPES] = {[HP_F32] = "fp32", [HP_BF16] = "bf16", [HP_F16] = "fp16"};
    hp_error err = {.text = ""};
    maps m = {.c = conv_of(t, side), .size = hp_dtype_bytes((hp_dtype)t->dtype)};
    m.row = (int64_t)m.c.iw * CHANNELS;
    printf("{\"case\":\"%s\",\"prec\":\"%s\",\"side\":%d,\"elements\":%lld,", t->name,
           t->math == HP_DNN_TF32 ? "tf32" : TYPES[t->dtype], side, (long long)side * side * CHANNELS);
    const hp_status s = run_task(cuda, dnn, t, &m, &err);
    if (s != HP_OK && err.text[0]) {
        for (char *c = err.text; *c; c++)
            if (*c == '"' || *c == '\\' || *c < ' ') *c = '\'';
        printf("\"ok\":%s,\"error\":\"%s\"}\n", s == HP_EPLAN ? "null" : "false", err.text);
    }
    fflush(stdout);
    release(&m);
    return s == HP_OK || s == HP_EPLAN;
}

int main(int argc, char **argv) {
    const int32_t large = argc > 1 ? atoi(argv[1]) : 5800, tile = argc > 2 ? atoi(argv[2]) : 1024;
    hp_error err = {.text = ""};
    hp_cuda *cuda = NULL;
    hp_dnn *dnn = NULL;
    bool good = true;
    if (hp_cuda_open(NULL, &cuda, &err) != HP_OK || hp_dnn_open(cuda, &dnn, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 69;
    }
    for (size_t i = 0; i < sizeof TASKS / sizeof *TASKS; i++)
        good &= show(cuda, dnn, &TASKS[i], TASKS[i].large ? large : tile);
    hp_dnn_close(dnn);
    return good ? 0 : 1;
}
