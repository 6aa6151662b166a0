/* sums.h - how the stand-in for NCCL reads, writes and adds elements of each type. */
#ifndef HP_TESTS_SUMS_H
#define HP_TESTS_SUMS_H

#include "exec/base/half.h"
#include "tests/standin/nccl.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

static size_t bytes_of(ncclDataType_t type) {
    static const size_t BYTES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return BYTES[type];
}

/* Reads and writes a type; 16-bit floats as float32. */
template <typename T> struct plain {
    using stored = T;
    using value = T;
    static value get(stored v) {
        return v;
    }
    static stored put(value v) {
        return v;
    }
};
struct half_float {
    using stored = uint16_t;
    using value = float;
    static value get(stored v) {
        return from_f16(v);
    }
    static stored put(value v) {
        return to_f16(v);
    }
};
struct brain_float {
    using stored = uint16_t;
    using value = float;
    static value get(stored v) {
        return from_bf16(v);
    }
    static stored put(value v) {
        return to_bf16(v);
    }
};

/* Integers wrap around; minima and maxima skip NaNs, as NCCL's fminf and fmaxf do. */
template <typename V> static V combine(V a, V b, ncclRedOp_t op) {
    if constexpr (std::is_integral_v<V>) {
        if (op == ncclSum || op == ncclAvg) return (V)((uint64_t)a + (uint64_t)b);
    } else {
        if (op == ncclSum || op == ncclAvg) return a + b;
        return op == ncclMin ? std::fmin(a, b) : std::fmax(a, b);
    }
    return op == ncclMin ? std::min(a, b) : std::max(a, b);
}

/* A contribution to an average: floats are multiplied by 1/n. */
template <typename T> static typename T::value shared_by(typename T::value v, int n) {
    if constexpr (std::is_integral_v<typename T::value>)
        return v;
    else
        return T::get(T::put(v * T::get(T::put((typename T::value)1 / (typename T::value)n))));
}

struct addition {
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count;
    int size, rank; /* number of members, and this one's index */
};

/* Combines contributions in the order of the members, each rounded to the type. An average multiplies floats
 * by 1/n first, and divides the sum of integers. */
template <typename T>
static void add_up(const addition &a, unsigned char *into, const unsigned char *own,
                   const unsigned char *theirs) {
    using stored = typename T::stored;
    using value = typename T::value;
    constexpr bool whole = std::is_integral_v<value>;
    const bool averages = a.op == ncclAvg;
    stored *to = (stored *)(void *)into;
    for (size_t i = 0; i < a.count; i++) {
        value all = 0;
        for (int r = 0; r < a.size; r++) {
            const unsigned char *at = r == a.rank ? own : theirs + (size_t)r * a.count * sizeof(stored);
            const value given = T::get(((const stored *)(const void *)at)[i]),
                        v = averages ? shared_by<T>(given, a.size) : given;
            all = r ? T::get(T::put(combine(all, v, a.op))) : v;
        }
        if (averages && whole) all = (value)(all / (value)a.size);
        to[i] = T::put(all);
    }
}

static void standin_add_up(const addition &a, unsigned char *to, const unsigned char *own,
                           const unsigned char *theirs) {
    if (a.type == ncclFloat32) add_up<plain<float>>(a, to, own, theirs);
    if (a.type == ncclFloat64) add_up<plain<double>>(a, to, own, theirs);
    if (a.type == ncclInt32) add_up<plain<int32_t>>(a, to, own, theirs);
    if (a.type == ncclInt8) add_up<plain<int8_t>>(a, to, own, theirs);
    if (a.type == ncclUint8) add_up<plain<uint8_t>>(a, to, own, theirs);
    if (a.type == ncclFloat16) add_up<half_float>(a, to, own, theirs);
    if (a.type == ncclBfloat16) add_up<brain_float>(a, to, own, theirs);
}

#endif
