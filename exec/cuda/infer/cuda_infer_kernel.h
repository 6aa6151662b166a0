/* cuda_infer_kernel.h - shared by the kernels of inference: conversion of elements of any store from and
 * to floats, and activations. Products and sums are never contracted, to match
 * exec/device/kernels/loops_*.inc. */
#ifndef HP_CUDA_INFER_KERNEL_H
#define HP_CUDA_INFER_KERNEL_H

#include "exec/cuda/runtime/cuda_elements.h"
#include "exec/cuda/infer/cuda_infer_kernels.h"
#include "exec/device/device_act.h"

/* Sums are in registers, so loops over them are unrolled; other long loops are not. */
#if defined(HP_CUDA_STANDIN)
#define HP_UNROLL
#define HP_UNROLL_SOME
#define HP_ROLLED
#else
#define HP_UNROLL      _Pragma("unroll")
#define HP_UNROLL_SOME _Pragma("unroll 4") /* number of loads in flight */
#define HP_ROLLED      _Pragma("unroll 1")
#endif

static __device__ inline float acted(const hp_cuda_act &k, float v) {
    return k.clamps ? hp_act_clamp_f32(v, k.lo, k.hi) : hp_act_of_f32(k.act, v, k.a, k.b);
}

/* Nearest integer, ties to even; a NaN becomes the smallest. */
static __device__ inline int32_t nearest(float v, float lo, float hi) {
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return __float2int_rn(v);
}

template <typename T, int V> static __device__ inline Pack<T, V> pack_at(const void *x, int64_t i) {
    return *reinterpret_cast<const Pack<T, V> *>((const T *)x + i);
}

template <int V>
static __device__ inline void load_bytes(float (&to)[V], const void *x, int64_t i, const hp_qparams &l) {
    const Pack<uint8_t, V> p = pack_at<uint8_t, V>(x, i);
    for (int v = 0; v < V; v++) to[v] = __fmul_rn(l.scale, (float)((int32_t)p.at[v] - l.zero));
}

/* Reads V adjacent elements from element i on as floats. */
template <int V>
static __device__ inline void load_as(float (&to)[V], const void *x, int64_t i, const hp_qparams &l) {
    if (l.dtype == HP_U8) load_bytes<V>(to, x, i, l);
    if (l.dtype == HP_F32) load<float, V>(to, (const float *)x, i);
    if (l.dtype == HP_BF16) load<__nv_bfloat16, V>(to, (const __nv_bfloat16 *)x, i);
    if (l.dtype == HP_F16) load<__half, V>(to, (const __half *)x, i);
}

template <int V>
static __device__ inline void store_bytes(void *y, int64_t i, const float (&from)[V], const hp_cuda_put &p) {
    Pack<uint8_t, V> to;
    for (int v = 0; v < V; v++)
        to.at[v] = (uint8_t)(nearest(__fmul_rn(from[v], p.to.inverse), p.lo, p.hi) + p.to.zero);
    *reinterpret_cast<Pack<uint8_t, V> *>((uint8_t *)y + i) = to;
}

template <int V>
static __device__ inline void store_as(void *y, int64_t i, const float (&from)[V], const hp_cuda_put &p) {
    if (p.to.dtype == HP_U8) store_bytes<V>(y, i, from, p);
    if (p.to.dtype == HP_F32) store<float, V>((float *)y, i, from);
    if (p.to.dtype == HP_BF16) store<__nv_bfloat16, V>((__nv_bfloat16 *)y, i, from);
    if (p.to.dtype == HP_F16) store<__half, V>((__half *)y, i, from);
}

/* --- the end of a matrix layer: exec/device/kernels/panel.h --- */

/* Finishes V adjacent elements from element i on. */
template <int V> static __device__ inline void finish_at(const hp_cuda_finish &f, int64_t i, float (&v)[V]) {
    const bool bytes = f.put.to.dtype == HP_U8;
    hp_qparams as_is = f.put.to;
    as_is.scale = 1;
    as_is.zero = 0;
    if (f.adds) {
        float added[V];
        load_as<V>(added, f.y, i, as_is);
        for (int k = 0; k < V; k++)
            v[k] = bytes ? __fmaf_rn(f.add_scale, added[k], v[k]) : __fadd_rn(v[k], added[k]);
    }
    if (!f.units) {
        for (int k = 0; k < V; k++) v[k] = acted(f.act, v[k]);
        store_as<V>(f.y, i, v, f.put);
        return;
    }
    Pack<uint8_t, V> q;
    for (int k = 0; k < V; k++) {
        const int32_t byte = nearest(v[k], 0.0f, 255.0f), least = byte > f.lo8 ? byte : f.lo8;
        q.at[k] = (uint8_t)(least < f.hi8 ? least : f.hi8);
    }
    *reinterpret_cast<Pack<uint8_t, V> *>((uint8_t *)f.y + i) = q;
}

/* --- on the host --- */

/* Are groups of four elements from `p` on aligned? */
static inline bool by_fours(const void *p, int32_t dtype) {
    const size_t bytes = dtype == HP_U8 ? 4 : dtype == HP_F32 ? 16 : 8;
    return !p || (uintptr_t)p % bytes == 0;
}

#endif
