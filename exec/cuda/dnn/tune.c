/* tune.c - engines tried and timed on the GPU, in memory that is had for the while. */
#include "exec/cuda/dnn/engine.h"

#include <stdlib.h>
#include <string.h>

/* PATTERN: numbers near 1 in f16, near 0.01 in bf16 and f32: zeros would be faster than what is real, since
 * tensor cores spend less power on them. */
enum { BUFFERS = 6, REPEATS = 3, PATTERN = 0x3c };

typedef struct trial {
    hp_dnn_data data;
    cudaEvent_t begin, end;
} trial;

static int64_t most_workspace(hp_dnn_engine *const *engine, int n) {
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        if (engine[i]->workspace > most) most = engine[i]->workspace;
    return most;
}

static bool have(void **at, int64_t bytes) {
    if (cudaMalloc(at, (size_t)(bytes > 0 ? bytes : 1)) == cudaSuccess &&
        cudaMemset(*at, PATTERN, (size_t)bytes) == cudaSuccess)
        return true;
    cudaGetLastError(); /* too little memory is an answer */
    return false;
}

static int64_t output_bytes(const hp_dnn_conv *c) {
    return hp_dtype_bytes((hp_dtype)c->dtype) * c->n * c->oh * c->ow * c->oc;
}

static bool set_up(trial *t, const hp_dnn_conv *c, int64_t workspace) {
    const int64_t size = hp_dtype_bytes((hp_dtype)c->dtype), y = output_bytes(c);
    return have(&t->data.x, size * c->n * hp_dnn_x_sample(c)) &&
           have(&t->data.w, size * c->oc * (c->ic / c->groups) * c->kh * c->kw) && have(&t->data.y, y) &&
           have(&t->data.z, c->add ? y : 0) && have(&t->data.bias, 4 * (int64_t)c->oc) &&
           have(&t->data.workspace, workspace);
}

static void tear_down(trial *t) {
    void *const all[BUFFERS] = {t->data.x, t->data.w, t->data.y, t->data.z, t->data.bias, t->data.workspace};
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

/* The least of a few runs after one that warms up. */
static hp_status time_of(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e,
                         float *least, hp_error *err) {
    HP_TRY(once(d, c, t, e, least, err));
    for (int i = 0; i < REPEATS; i++) {
        float ms = 0;
        HP_TRY(once(d, c, t, e, &ms, err));
        if (i == 0 || ms < *least) *least = ms;
    }
    return HP_OK;
}

/* --- what is added lies where the result goes --- */

static bool joins(const hp_dnn_conv *c) {
    return c->kind == HP_DNN_FORWARD && c->add;
}

/* In front, in the middle and at the end. */
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

/* Is the result the same when z is y, as it will be? An engine that writes y twice would have lost z. The
 * graph API's documentation does not say. Behind a run with another z. */
static hp_status joins_in_place(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e,
                                hp_error *err) {
    bool same = true;
    hp_dnn_data data = t->data;
    data.y = data.z;
    HP_TRY(hp_dnn_engine_run(d, c, e, &data, err));
    HP_CUDA(cudaStreamSynchronize(d->cuda->compute));
    HP_TRY(compare(t->data.y, t->data.z, output_bytes(c), &same, err));
    HP_CUDA(cudaMemset(t->data.z, PATTERN, (size_t)output_bytes(c)));
    HP_CUDA(cudaDeviceSynchronize());
    return same ? HP_OK : hp_fail(err, HP_EUNAVAIL, "%s: the engine does not add in place", e->key);
}

/* --- all of them --- */

static hp_status try_one(hp_dnn *d, const hp_dnn_conv *c, const trial *t, const hp_dnn_engine *e, float *ms,
                         hp_error *err) {
    HP_TRY(time_of(d, c, t, e, ms, err));
    return joins(c) ? joins_in_place(d, c, t, e, err) : HP_OK;
}

/* An engine that fails, though its plan was made, is none; what the GPU does not recover from is an error. */
static hp_status try_all(hp_dnn *d, const hp_dnn_conv *c, const trial *t, hp_dnn_engine *const *engine, int n,
                         int *best, hp_error *err) {
    hp_status all = HP_OK;
    float least = 0;
    *best = -1;
    HP_CUDA(cudaDeviceSynchronize()); /* buffers are filled on another stream */
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
    trial t = {.begin = NULL};
    *best = 0;
    if (!d->cuda || (n < 2 && !joins(c))) return HP_OK;
    HP_CUDA(cudaEventCreate(&t.begin));
    HP_CUDA(cudaEventCreate(&t.end));
    const hp_status s =
        set_up(&t, c, most_workspace(engine, n)) ? try_all(d, c, &t, engine, n, best, err) : HP_OK;
    cudaDeviceSynchronize();
    tear_down(&t);
    return s;
}
