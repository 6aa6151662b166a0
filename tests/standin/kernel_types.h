/* kernel_types.h - CUDA's short vectors, and its 16-bit floats, which round to nearest, ties to even. */
#ifndef HP_TESTS_KERNEL_TYPES_H
#define HP_TESTS_KERNEL_TYPES_H

#include <stdint.h>
#include <string.h>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define STANDIN_VECTORS(name, type)                                                                          \
    struct alignas(2 * sizeof(type)) name##2 {                                                               \
        type x, y;                                                                                           \
    };                                                                                                       \
    struct alignas(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16) name##4 {                                  \
        type x, y, z, w;                                                                                     \
    };                                                                                                       \
    inline name##2 make_##name##2(type x, type y) {                                                          \
        return {x, y};                                                                                       \
    }                                                                                                        \
    inline name##4 make_##name##4(type x, type y, type z, type w) {                                          \
        return {x, y, z, w};                                                                                 \
    }

STANDIN_VECTORS(char, signed char)
STANDIN_VECTORS(uchar, unsigned char)
STANDIN_VECTORS(short, short)
STANDIN_VECTORS(ushort, unsigned short)
STANDIN_VECTORS(int, int)
STANDIN_VECTORS(uint, unsigned)
STANDIN_VECTORS(longlong, long long)
STANDIN_VECTORS(float, float)
STANDIN_VECTORS(double, double)
#undef STANDIN_VECTORS

template <typename To, typename From> inline To standin_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

inline uint16_t standin_to_bf16(float f) {
    const uint32_t u = standin_bits<uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff; /* as CUDA's NaN */
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

inline float standin_from_bf16(uint16_t h) {
    return standin_bits<float>((uint32_t)h << 16);
}

uint16_t standin_to_f16(float f);
float standin_from_f16(uint16_t h);

struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : bits(standin_to_bf16(f)) {}
    operator float() const {
        return standin_from_bf16(bits);
    }
};

struct __half {
    uint16_t bits;
    __half() = default;
    __half(float f) : bits(standin_to_f16(f)) {}
    operator float() const {
        return standin_from_f16(bits);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

struct alignas(4) __half2 {
    __half x, y;
};

inline __nv_bfloat16 __float2bfloat16(float f) {
    return __nv_bfloat16(f);
}

inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    return __nv_bfloat16(f);
}

inline float __bfloat162float(__nv_bfloat16 h) {
    return h;
}

inline __half __float2half(float f) {
    return __half(f);
}

inline __half __float2half_rn(float f) {
    return __half(f);
}

inline float __half2float(__half h) {
    return h;
}

#endif
