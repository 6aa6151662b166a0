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

/* Text of the first differences. */
typedef struct hp_differences {
    int n, shown;
    size_t used;
    char text[960];
} hp_differences;

/* The differences between the file and `want` (n entries); tensors that state dicts have
 * beside parameters are ignored (*.num_batches_tracked). */
void hp_st_differences(const hp_safetensors *st, const hp_st_expected *want, int n, hp_differences *d);

/* Has the file all of them, whatever it has beside? */
bool hp_st_has(const hp_safetensors *st, const hp_st_expected *want, int n);

/* Does the file contain the parameters of the network? Where only one prefix before the file's names makes them the
 * network's, as "module.", it is set (hp_safetensors_use_prefix), and what is not under it left out. Errors: HP_EDATA
 * listing the first differences, and under which prefix. */
hp_status hp_weights_compare(const char *path, hp_safetensors *st, const hp_graph *g, hp_error *err);
/* What to say of such a prefix and of what was left out; NULL: the file has none. */
const char *hp_weights_prefix_note(hp_arena *a, const char *path, const hp_graph *g);

#endif
