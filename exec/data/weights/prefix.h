/* prefix.h - prefixes that wrappers add to every name of a file: "module." (DistributedDataParallel),
 * "_orig_mod." (torch.compile), "model." (Lightning), or several of them. */
#ifndef HP_PREFIX_H
#define HP_PREFIX_H

#include "exec/data/weights/differences.h"
#include "base/arena.h"

typedef struct hp_st_prefix {
    const char *prefix; /* prefix of the file's names, "" or ending in a dot */
    const char *strip;  /* what all the network's names start with instead; "" for most networks */
    int names;          /* number of the network's names that the file has under this prefix */
} hp_st_prefix;

/* Finds the prefixes under which the file has names of the network, most names first.
 * Returns their number. */
int hp_st_prefixes(hp_arena *a, const hp_safetensors *st, const hp_st_expected *want, int n,
                   hp_st_prefix **out);

#endif
