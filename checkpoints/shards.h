/* shards.h - a checkpoint's tensors, assembled from all ranks' files: any range of any
 * parameter, for any plan. */
#ifndef HP_SHARDS_H
#define HP_SHARDS_H

#include "checkpoints/manifest.h"
#include "checkpoints/checkpoint_state.h"

typedef struct hp_shards hp_shards;

/* Maps all files of a verified checkpoint of `dir`. The manifest must outlive it. Errors: HP_EDATA. */
hp_status hp_shards_open(const char *dir, const hp_manifest *m, hp_shards **s, hp_error *err);
void hp_shards_close(hp_shards *s); /* NULL is fine */

enum { HP_SHARDS_ALL = -1 };

/* Reads elements [first, first + count) of a parameter (carries: named by a number in decimal) into `out`, of
 * type `dtype` (HP_F32, HP_F64). `rank`: reads what that rank saved. HP_SHARDS_ALL: combines all ranks: the
 * mean of weights and optimiser state, whose copies differ only between two averages of sync=local; the sum
 * of statistics. *missing: number of elements that no rank saved; they are set to zero. Errors: HP_EDATA. */
hp_status hp_shards_read(const hp_shards *s, int32_t kind, const char *param, int64_t first, int64_t count,
                         int64_t rank, hp_dtype dtype, void *out, int64_t *missing, hp_error *err);

/* The next parameter name after `name` (NULL: the first) that has shards of this kind; NULL: no more. */
const char *hp_shards_next(const hp_shards *s, int32_t kind, const char *name);
/* The parameter's dimensions, at most HP_ST_MAX_DIM; *n: their number. Errors: HP_EDATA. */
hp_status hp_shards_shape(const hp_shards *s, int32_t kind, const char *name, int64_t *dim, int32_t *n,
                          hp_error *err);

#endif
