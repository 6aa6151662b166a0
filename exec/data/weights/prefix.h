/* prefix.h - what wrappers put before every name of a file: "module." (DistributedDataParallel), "_orig_mod."
 * (torch.compile), "model." (Lightning), several of them. */
#ifndef HP_PREFIX_H
#define HP_PREFIX_H

#include "exec/data/weights/differences.h"
#include "base/arena.h"

typedef struct hp_st_prefix {
    const char *prefix; /* of the file's names, "" or ending in a dot */
    const char *strip;  /* what all the network's names have in its place; "" for most networks */
    int names;          /* of the network that the file has under it */
} hp_st_prefix;

/* Under which prefixes the file has names of the network, most names first. Returns how many there are. */
int hp_st_prefixes(hp_arena *a, const hp_safetensors *st, const hp_st_expected *want, int n,
                   hp_st_prefix **out);

#endif
