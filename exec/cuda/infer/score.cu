/* score.cu - compares logits with their labels (exec/device/metric.h). One block suffices, as a batch has few
 * rows; rows are added in a fixed order. */
#include "exec/cuda/infer/cuda_infer_kernel.h"
#include "exec/cuda/runtime/warp.h"

enum { ROWS = 32 }; /* rows at a time, one warp each */

/* The first of the largest classes of a row; a lane has looked at every 32nd class. */
typedef struct Top {
    float value;
    int32_t at;
} Top;

static __device__ inline Top top_of(const float *x, int32_t classes) {
    const int32_t lane = (int32_t)threadIdx.x;
    Top top = {lane < classes ? x[lane] : -INFINITY, lane};
    for (int32_t c = lane + WARP; c < classes; c += WARP)
        if (x[c] > top.value) top = {x[c], c};
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const Top other = {__shfl_xor_sync(~0u, top.value, lanes), __shfl_xor_sync(~0u, top.at, lanes)};
        if (other.value > top.value || (other.value == top.value && other.at < top.at)) top = other;
    }
    return top;
}

/* One row of a warp; every lane gets the sums. */
static __device__ inline void add_row(const hp_cuda_scores &l, int64_t row, double (&sum)[HP_METRICS]) {
    const float *x = l.logits + row * l.classes;
    const int32_t label = l.labels[row];
    if (label < 0 || label >= l.classes) return;
    const Top top = top_of(x, l.classes);
    double exps = 0;
    for (int32_t c = (int32_t)threadIdx.x; c < l.classes; c += WARP)
        exps += exp((double)x[c] - (double)top.value);
    sum[HP_METRIC_LOSS] += log(warp_sum(exps)) + (double)top.value - (double)x[label];
    sum[HP_METRIC_COUNTED] += 1;
    sum[HP_METRIC_CORRECT] += top.at == label;
    sum[HP_METRIC_HIT] += top.at == label && label != 0;
    sum[HP_METRIC_PREDICTED] += top.at != 0;
    sum[HP_METRIC_LABELLED] += label != 0;
}

static __global__ void score(hp_cuda_scores l) {
    __shared__ double part[HP_METRICS][ROWS];
    double sum[HP_METRICS] = {};
    for (int64_t row = threadIdx.y; row < l.rows; row += ROWS) add_row(l, row, sum);
    for (int k = 0; threadIdx.x == 0 && k < HP_METRICS; k++) part[k][threadIdx.y] = sum[k];
    __syncthreads();
    const unsigned k = threadIdx.y;
    if (threadIdx.x > 0 || k >= HP_METRICS) return;
    for (int row = 0; row < ROWS; row++) l.metric[k] += part[k][row];
}

cudaError_t hp_cuda_score(const hp_cuda_scores *l, cudaStream_t s) {
    return HP_LAUNCH(score, 1, dim3(WARP, ROWS), s, *l);
}
