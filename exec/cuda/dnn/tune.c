/* tune.c - engines tried and timed on the GPU, in memory allocated only meanwhile. */
#include "exec/cuda/dnn/dnn_check.h"
#include "exec/cuda/dnn/engine.h"

#include <stdlib.h>
#include <string.h>

/* POISON makes NaN in every type: fills results before a run, and what an engine must not read. */
enum { BUFFERS = 7, REPEATS = 3, POISON = 0xff };

typedef struct trial {
    hp_dnn_data data;
    int64_t workspace;
    int32_t *wrong;
    cudaEvent_t begin, end;
} trial;

static int64_t most_workspace(hp_dnn_engine *const *engine, int n) {
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        if (engine[i]->workspace > most) most = engine[i]->workspace;
    return most;
}

static bool have(void **at, int64_t bytes) {
    if (cudaMalloc(at, (size_t)(bytes > 0 ? bytes : 1)) == cudaSuccess) return true;
    cudaGetLastError(); /* too little memory is an expected answer */
    return false;
}

static int64_t elements_of_y(const hp_dnn_conv *c) {
    return c->n * c->oh * c->ow * c->oc;
}

static int64_t elements_of_w(const hp_dnn_conv *c) {
    return (int64_t)c->oc * (c->ic / c->groups) * c->kh * c->kw;
}

static bool set_up(trial *t, const hp_dnn_conv *c) {
    const int64_t size = hp_dtype_bytes((hp_dtype)c->dtype), y = size * elements_of_y(c);
    return have(&t->data.x, size * c->n * hp_dnn_x_sample(c)) && have(&t->data.w, size * elements_of_w(c)) &&
           have(&t->data.y, y) && have(&t->data.z, c->add ? y : 0) &&
           have(&t->data.bias, 4 * (int64_t)c->oc) && have(&t->data.workspace, t->workspace) &&
           have((void **)&t->wrong, sizeof *t->wrong);
}

static void tear_down(trial *t) {
    void *const all[BUFFERS] = {t->data.x,    t->data.w,         t->data.y, t->data.z,
                                t->data.bias, t->data.workspace, t->wrong};
    for (int i = 0; i < BUFFERS; i++) cudaFree(all[i]);
    cudaEventDestroy(t->begin);
    cudaEventDestroy(t->end);
}

static hp_status once(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e, float *ms,
                      hp_error *err) {
    HP_CUDA(cudaEventRecord(t->begin, d->cuda->compute));
    HP_TRY(hp_dnn_engine_run(d, c, e, &t->data, err));
    HP_CUDA(cudaEventRecord(t->end, d->cuda->compute));
    HP_CUDA(cudaEventSynchronize(t->end));
    HP_CUDA(cudaEventElapsedTime(ms, t->begin, t->end));
    return HP_OK;
}

/* The shortest of a few runs. The check has warmed the engine up. */
static hp_status time_of(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e,
                         float *least, hp_error *err) {
    for (int i = 0; i < REPEATS; i++) {
        float ms = 0;
        HP_TRY(once(d, c, t, e, &ms, err));
        if (i == 0 || ms < *least) *least = ms;
    }
    return HP_OK;
}

/* --- what it computes --- */

/* Draws the operands, and fills the result with NaN unless it is added to. */
static hp_status fill(const hp_dnn *d, const hp_dnn_conv *c, const trial *t, hp_error *err) {
    const hp_dnn_data *at = &t->data;
    const int64_t n[] = {elements_of_y(c), c->n * hp_dnn_x_sample(c), elements_of_w(c)};
    void *const result = c->kind == HP_DNN_FORWARD ? at->y : c->kind == HP_DNN_DGRAD ? at->x : at->w;
    cudaStream_t s = d->cuda->compute;
    HP_CUDA(hp_dnn_draw(at->x, c->dtype, n[1], HP_DNN_DRAW_X, s));
    HP_CUDA(hp_dnn_draw(at->w, c->dtype, n[2], HP_DNN_DRAW_W, s));
    HP_CUDA(hp_dnn_draw(at->y, c->dtype, n[0], HP_DNN_DRAW_Y, s));
    if (c->add) HP_CUDA(hp_dnn_draw(at->z, c->dtype, n[0], HP_DNN_DRAW_Z, s));
    HP_CUDA(hp_dnn_draw(at->bias, HP_F32, c->oc, HP_DNN_DRAW_BIAS, s));
    HP_CUDA(cudaMemsetAsync(at->workspace, POISON, (size_t)t->workspace, s));
    HP_CUDA(cudaMemsetAsync(t->wrong, 0, sizeof *t->wrong, s));
    if (c->kind == HP_DNN_FORWARD || !c->add)
        HP_CUDA(
            cudaMemsetAsync(result, POISON, (size_t)(n[c->kind] * hp_dtype_bytes((hp_dtype)c->dtype)), s));
    return HP_OK;
}

static hp_status computes(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e,
                          hp_error *err) {
    int32_t wrong = 0;
    HP_TRY(fill(d, c, t, err));
    HP_TRY(hp_dnn_engine_run(d, c, e, &t->data, err));
    HP_CUDA(hp_dnn_check(c, &t->data, t->wrong, d->cuda->compute));
    HP_CUDA(cudaMemcpyAsync(&wrong, t->wrong, sizeof wrong, cudaMemcpyDeviceToHost, d->cuda->compute));
    HP_CUDA(cudaStreamSynchronize(d->cuda->compute));
    if (wrong == 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "%s: engine %lld computes something else", e->key, (long long)e->index);
}

/* --- what is added lies where the result goes --- */

static bool joins(const hp_dnn_conv *c) {
    return c->kind == HP_DNN_FORWARD && c->add;
}

/* Compares the front, the middle and the end. */
static hp_status compare(const void *a, const void *b, int64_t bytes, bool *same, hp_error *err) {
    enum { MOST = 1 << 20, PLACES = 3 };
    const int64_t n = bytes < MOST ? bytes : MOST;
    unsigned char *const host = malloc(2 * (size_t)n + 1);
    HP_ASSERT(host);
    cudaError_t code = cudaSuccess;
    *same = true;
    for (int k = 0; k < PLACES && code == cudaSuccess; k++) {
        const int64_t at = (bytes - n) / (PLACES - 1) * k;
        code = cudaMemcpy(host, (const unsigned char *)a + at, (size_t)n, cudaMemcpyDeviceToHost);
        if (code == cudaSuccess)
            code = cudaMemcpy(host + n, (const unsigned char *)b + at, (size_t)n, cudaMemcpyDeviceToHost);
        *same = *same && memcmp(host, host + n, (size_t)n) == 0;
    }
    free(host);
    return hp_cuda_checked(code, "cudaMemcpy", err);
}

/* Is the result the same with z in place of y, as in real runs? An engine that writes y twice would lose z,
 * and the documentation of the graph API does not say. Run after a result with a separate z. */
static hp_status joins_in_place(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e,
                                hp_error *err) {
    bool same = true;
    hp_dnn_data data = t->data;
    data.y = data.z;
    HP_TRY(hp_dnn_engine_run(d, c, e, &data, err));
    HP_CUDA(cudaStreamSynchronize(d->cuda->compute));
    HP_TRY(compare(t->data.y, t->data.z, elements_of_y(c) * hp_dtype_bytes((hp_dtype)c->dtype), &same, err));
    return same ? HP_OK : hp_fail(err, HP_EUNAVAIL, "%s: the engine does not add in place", e->key);
}

/* --- all of them --- */

static hp_status try_one(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e, float *ms,
                         hp_error *err) {
    HP_TRY(computes(d, c, t, e, err));
    HP_TRY(time_of(d, c, t, e, ms, err));
    return joins(c) ? joins_in_place(d, c, t, e, err) : HP_OK;
}

/* An engine that fails although its plan was made is skipped; a failure that the GPU does not
 * recover from is an error. */
static hp_status try_all(hp_dnn *d, const hp_dnn_conv *c, const trial *t, hp_dnn_engine *const *engine, int n,
                         int *best, hp_error *err) {
    hp_status all = HP_OK;
    float least = 0;
    *best = -1;
    for (int i = 0; i < n; i++) {
        float ms = 0;
        const hp_status s = try_one(d, c, t, engine[i], &ms, err);
        if (s != HP_OK) HP_CUDA(cudaDeviceSynchronize());
        if (s != HP_OK) all = s;
        if (s != HP_OK || (*best >= 0 && ms >= least)) continue;
        least = ms;
        *best = i;
    }
    return *best < 0 ? all : HP_OK;
}

hp_status hp_dnn_fastest(hp_dnn *d, const hp_dnn_conv *c, hp_dnn_engine *const *engine, int n, int *best,
                         hp_error *err) {
    trial t = {.workspace = most_workspace(engine, n)};
    *best = 0;
    if (!d->cuda) return HP_OK;
    HP_CUDA(cudaEventCreate(&t.begin));
    HP_CUDA(cudaEventCreate(&t.end));
    const hp_status s = set_up(&t, c) ? try_all(d, c, &t, engine, n, best, err) : HP_OK;
    cudaDeviceSynchronize();
    tear_down(&t);
    return s;
}
