/* numbers.h - how the stand-ins for cuDNN and cuBLASLt read and write a device's tensors: float32 in between,
 * products summed in float64. */
#ifndef HP_TESTS_NUMBERS_H
#define HP_TESTS_NUMBERS_H

#include "tests/standin/kernel_types.h"
#include "tests/standin/runtime.h"

extern "C" {
#include "exec/cuda/dnn/dnn.h"
}

#include <algorithm>
#include <string.h>
#include <vector>

/* Rounds like TF32's factors: to 10 bits of mantissa. */
inline float standin_tf32(float f) {
    return standin_bits<float>((standin_bits<uint32_t>(f) + 0x1000u) & ~0x1fffu);
}

inline float standin_number(const void *from, int64_t i, int32_t dtype) {
    if (dtype == HP_BF16) return ((const __nv_bfloat16 *)from)[i];
    if (dtype == HP_F16) return ((const __half *)from)[i];
    return ((const float *)from)[i];
}

inline void standin_set_number(void *to, int64_t i, int32_t dtype, float v) {
    if (dtype == HP_BF16)
        ((__nv_bfloat16 *)to)[i] = v;
    else if (dtype == HP_F16)
        ((__half *)to)[i] = v;
    else
        ((float *)to)[i] = v;
}

inline std::vector<float> standin_numbers(const void *from, int64_t n, int32_t dtype, bool tf32) {
    std::vector<float> all((size_t)n);
    for (int64_t i = 0; i < n; i++) {
        const float v = standin_number(from, i, dtype);
        all[(size_t)i] = tf32 ? standin_tf32(v) : v;
    }
    return all;
}

/* Finds a tensor's real address. False: it is not what the caller claims, *err tells why. */
inline bool standin_tensor(void **at, int64_t elements, int64_t element_bytes, int64_t alignment,
                           const char *name, hp_error *err) {
    const size_t bytes = (size_t)(elements * element_bytes);
    if (!standin_is_device(*at) || !standin_in_memory(*at, bytes))
        hp_fail(err, HP_EINTERNAL, "%s: %zu bytes from %p on are no device memory", name, bytes, *at);
    else if ((uintptr_t)*at % (uintptr_t)alignment)
        hp_fail(err, HP_EINTERNAL, "%s: %p is not aligned to %d bytes", name, *at, (int)alignment);
    else
        return *at = standin_real(*at), true;
    return false;
}

/* Plans request some scratch, and overwrite it. */
enum { STANDIN_WORKSPACE = 4096 };

#endif
