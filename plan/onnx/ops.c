/* ops.c - the supported operators, by name. */
#include "plan/onnx/inside.h"

#include <string.h>

#define READ(domain, name, id, since, least, most, attributes, integers)                                     \
    {domain, name, since, least, most, " " attributes " ", integers, onnx_read_##id, NULL},
#define BOTH(domain, name, id, since, least, most, attributes, integers)                                     \
    {domain, name, since, least, most, " " attributes " ", integers, onnx_read_##id, onnx_fold_##id},
#define FOLD(domain, name, id, since, least, most, attributes)                                               \
    {domain, name, since, least, most, " " attributes " ", false, NULL, onnx_fold_##id},
static const onnx_op ops[] = {
#include "plan/onnx/ops.def"
};
#undef READ
#undef BOTH
#undef FOLD

const onnx_op *onnx_find_op(const char *domain, const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0 && strcmp(ops[i].domain, domain) == 0) return &ops[i];
    return NULL;
}
