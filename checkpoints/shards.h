/* shards.h - a checkpoint's tensors, put together from the ranks' files: any range of any parameter, for whatever plan
 * wants it. */
#ifndef HP_SHARDS_H
#define HP_SHARDS_H

#include "checkpoints/manifest.h"
#include "checkpoints/checkpoint_state.h"

typedef struct hp_shards hp_shards;

/* Maps all files of a verified checkpoint of `dir`. The manifest must outlive it. Errors: HP_EDATA. */
hp_status hp_shards_open(const char *dir, const hp_manifest *m, hp_shards **s, hp_error *err);
void hp_shards_close(hp_shards *s); /* NULL is fine */

enum { HP_SHARDS_ALL = -1 };

/* What the ranks have saved of elements [first, first + count) of a parameter (carries: of the number as text), into `out`
 * of type `dtype` (HP_F32, HP_F64). `rank`: what that one has saved, as it is, or of all ranks: of weights and momentum
 * the mean of the copies, which are alike but between two averages of sync=local; of statistics the sum.
 * *missing: elements that nobody has saved, which are zero. Errors: HP_EDATA. */
hp_status hp_shards_read(const hp_shards *s, int32_t kind, const char *param, int64_t first, int64_t count,
                         int64_t rank, hp_dtype dtype, void *out, int64_t *missing, hp_error *err);

/* The parameters that ranks have saved of a kind, by name: the first after `name` (NULL: of all), or NULL. */
const char *hp_shards_next(const hp_shards *s, int32_t kind, const char *name);
/* Its dimensions, at most HP_ST_MAX_DIM, *n of them. Errors: HP_EDATA. */
hp_status hp_shards_shape(const hp_shards *s, int32_t kind, const char *name, int64_t *dim, int32_t *n,
                          hp_error *err);

#endif
