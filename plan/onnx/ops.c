/* ops.c - the supported operators, by name. */
#include "plan/onnx/inside.h"

#include <string.h>

#define ROW(d, n, from, min_in, max_in, known, integers, ...)                                                \
    {.domain = d,                                                                                            \
     .name = n,                                                                                              \
     .since = from,                                                                                          \
     .least = min_in,                                                                                        \
     .most = max_in,                                                                                         \
     .attributes = " " known " ",                                                                            \
     .quantised = integers,                                                                                  \
     __VA_ARGS__},
#define READ(domain, name, id, since, least, most, attributes, integers)                                     \
    ROW(domain, name, since, least, most, attributes, integers, .read = onnx_read_##id)
#define BOTH(domain, name, id, since, least, most, attributes, integers)                                     \
    ROW(domain, name, since, least, most, attributes, integers, .read = onnx_read_##id,                      \
        .fold = onnx_fold_##id)
#define FOLD(domain, name, id, since, least, most, attributes)                                               \
    ROW(domain, name, since, least, most, attributes, false, .fold = onnx_fold_##id)
static const onnx_op ops[] = {
#include "plan/onnx/ops.def"
};
#undef READ
#undef BOTH
#undef FOLD
#undef ROW

const onnx_op *onnx_find_op(const char *domain, const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0 && strcmp(ops[i].domain, domain) == 0) return &ops[i];
    return NULL;
}
