/* family.h - strategies of one kind: what a table shows one row of each of. */
#ifndef HP_FAMILY_H
#define HP_FAMILY_H

#include "plan/strategy/strategy.h"

#include <stdbool.h>

typedef enum hp_family {
    HP_FAMILY_DATA, /* data parallelism alone */
    HP_FAMILY_LAYER,
    HP_FAMILY_PIPELINE,
    HP_FAMILY_GEMS,
    HP_FAMILY_SPATIAL,
    HP_FAMILY_SPATIAL_LAYER, /* tiles, then whole images on other ranks or on the same */
    HP_FAMILY_SPATIAL_PIPELINE,
    HP_FAMILY_SPATIAL_GEMS,
    HP_FAMILY_CHANNEL,
    HP_FAMILY_BRANCH,
    HP_FAMILY_TENSOR,   /* linear layers shared, stages or not */
    HP_FAMILY_SEQUENCE, /* tokens shared */
    HP_FAMILY_CLIENTS,
    HP_FAMILY_STRIPS,
    HP_FAMILIES
} hp_family;

/* Data parallelism belongs to every family. */
hp_family hp_family_of(const hp_strategy *s);
/* "spatial + pipeline" */
const char *hp_family_name(hp_family f);
/* Data parallelism and nothing else, not even recomputation? */
bool hp_strategy_is_plain(const hp_strategy *s);

/* How hplan writes a strategy that PyTorch, DeepSpeed or Megatron-LM give this name: "dp=N" for "DDP"; "":
 * none does. */
const char *hp_strategy_called(const char *word);

#endif
