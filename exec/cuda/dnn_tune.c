/* dnn_tune.c - engines timed on the GPU, in memory that is had for the while. */
#include "exec/cuda/dnn_engine.h"

enum { BUFFERS = 6, REPEATS = 3 };

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

/* Numbers near 1 in f16, near 0.01 in bf16 and f32: zeros would be faster than what is real, since tensor
 * cores spend less power on them. */
static bool have(void **at, int64_t bytes) {
    enum { PATTERN = 0x3c };
    if (cudaMalloc(at, (size_t)(bytes > 0 ? bytes : 1)) == cudaSuccess &&
        cudaMemset(*at, PATTERN, (size_t)bytes) == cudaSuccess)
        return true;
    cudaGetLastError(); /* too little memory is an answer */
    return false;
}

static bool set_up(trial *t, const hp_dnn_conv *c, int64_t workspace) {
    const int64_t size = hp_dtype_bytes((hp_dtype)c->dtype), y = size * c->n * c->oh * c->ow * c->oc;
    return have(&t->data.x, size * c->n * c->ih * c->iw * c->ic) &&
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

/* The least of a few runs behind one that warms up. */
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

static hp_status try_all(hp_dnn *d, const hp_dnn_conv *c, const trial *t, hp_dnn_engine *const *engine, int n,
                         int *best, hp_error *err) {
    float least = 0;
    for (int i = 0; i < n; i++) {
        float ms = 0;
        HP_TRY(time_of(d, c, t, engine[i], &ms, err));
        if (i > 0 && ms >= least) continue;
        least = ms;
        *best = i;
    }
    return HP_OK;
}

hp_status hp_dnn_fastest(hp_dnn *d, const hp_dnn_conv *c, hp_dnn_engine *const *engine, int n, int *best,
                         hp_error *err) {
    trial t = {.begin = NULL};
    *best = 0;
    if (!d->cuda || n < 2) return HP_OK;
    HP_CUDA(cudaEventCreate(&t.begin));
    HP_CUDA(cudaEventCreate(&t.end));
    const hp_status s =
        set_up(&t, c, most_workspace(engine, n)) ? try_all(d, c, &t, engine, n, best, err) : HP_OK;
    cudaDeviceSynchronize();
    tear_down(&t);
    return s;
}
