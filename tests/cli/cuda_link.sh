#!/bin/bash
# cuda_link.sh - where a CUDA toolkit is installed: a program that calls the CUDA runtime, cuDNN and NCCL compiles,
# links and starts. No driver is needed. Exit 77 = skipped (CTest), with the reason.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 77
}

cuda=${CUDA_HOME:-/usr/local/cuda}
nvcc=$cuda/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || skip "there is no nvcc in $cuda/bin or PATH"
for header in cudnn.h nccl.h; do
  [ -e "$cuda/include/$header" ] || [ -e "/usr/include/$header" ] || skip "there is no $header beside CUDA"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/link.cu" <<'CU'
#include <cstdio>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>

__global__ void twice(float *x) {
    x[threadIdx.x] *= 2;
}

int main() {
    int devices = 0, nccl = 0, runtime = 0;
    const cudaError_t e = cudaGetDeviceCount(&devices);
    if (ncclGetVersion(&nccl) != ncclSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess) return 1;
    if (nccl <= 0 || cudnnGetVersion() == 0 || runtime <= 0) return 1;
    std::printf("CUDA %d, cuDNN %zu, NCCL %d, %d devices (%s)\n", runtime, cudnnGetVersion(), nccl,
                e == cudaSuccess ? devices : 0, cudaGetErrorString(e));
    return 0;
}
CU
timeout -k 5 300 "$nvcc" -arch=sm_90 -o "$scratch/link" "$scratch/link.cu" -lcudnn -lnccl
LD_LIBRARY_PATH=$cuda/lib64:${LD_LIBRARY_PATH:-} timeout -k 5 60 "$scratch/link"
