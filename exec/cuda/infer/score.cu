/* score.cu - how well logits meet their labels (exec/device/metric.h): one block, since a batch has few rows;
 * every row's part is added in a fixed order. */
#include "exec/cuda/infer/kernel.h"

static __device__ inline void add_row(const hp_cuda_scores &l, int64_t row, double (&sum)[HP_METRICS]) {
    const float *x = l.logits + row * l.classes;
    const int32_t label = l.labels[row];
    int32_t top = 0;
    double exps = 0;
    if (label < 0 || label >= l.classes) return;
    for (int32_t c = 1; c < l.classes; c++)
        if (x[c] > x[top]) top = c;
    const double most = (double)x[top];
    for (int32_t c = 0; c < l.classes; c++) exps += exp((double)x[c] - most);
    sum[HP_METRIC_LOSS] += log(exps) + most - (double)x[label];
    sum[HP_METRIC_COUNTED] += 1;
    sum[HP_METRIC_CORRECT] += top == label;
    sum[HP_METRIC_HIT] += top == label && label != 0;
    sum[HP_METRIC_PREDICTED] += top != 0;
    sum[HP_METRIC_LABELLED] += label != 0;
}

static __global__ void score(hp_cuda_scores l) {
    __shared__ double part[HP_METRICS][THREADS];
    double sum[HP_METRICS] = {};
    for (int64_t row = threadIdx.x; row < l.rows; row += THREADS) add_row(l, row, sum);
    for (int k = 0; k < HP_METRICS; k++) part[k][threadIdx.x] = sum[k];
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        for (int k = 0; threadIdx.x < half && k < HP_METRICS; k++)
            part[k][threadIdx.x] += part[k][threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x < HP_METRICS) l.metric[threadIdx.x] += part[threadIdx.x][0];
}

cudaError_t hp_cuda_score(const hp_cuda_scores *l, cudaStream_t s) {
    return HP_LAUNCH(score, 1, THREADS, s, *l);
}
