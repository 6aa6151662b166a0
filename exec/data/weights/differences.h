/* differences.h - compares a safetensors file with the tensors expected in it: every name with its shape and
 * type, and no others. */
#ifndef HP_DIFFERENCES_H
#define HP_DIFFERENCES_H

#include "exec/data/weights/safetensors.h"
#include "base/arena.h"
#include "networks/graph/graph.h"

enum { HP_ST_ANY_REAL = -1 };

typedef struct hp_st_expected {
    const char *name;
    int32_t dtype; /* hp_st_dtype, or HP_ST_ANY_REAL */
    int32_t n_dim;
    int32_t dim[4];
} hp_st_expected;

/* Describes the first differences. */
typedef struct hp_differences {
    int n, shown;
    size_t used;
    char text[960];
} hp_differences;

/* Lists the differences between the file and `want` (n entries); ignores tensors that state dicts have beside
 * parameters (*.num_batches_tracked). */
void hp_st_differences(const hp_safetensors *st, const hp_st_expected *want, int n, hp_differences *d);

/* Does the file have all of them, whatever else it has? */
bool hp_st_has(const hp_safetensors *st, const hp_st_expected *want, int n);

/* Does the file contain the network's parameters? If exactly one prefix of the file's names, such as
 * "module.", makes it so, sets that prefix (hp_safetensors_use_prefix) and leaves out everything else.
 * Errors: HP_EDATA listing the first differences, and under which prefix. */
hp_status hp_weights_compare(const char *path, hp_safetensors *st, const hp_graph *g, hp_error *err);
/* A note about such a prefix and what was left out; NULL: the file has none. */
const char *hp_weights_prefix_note(hp_arena *a, const char *path, const hp_graph *g);

#endif
