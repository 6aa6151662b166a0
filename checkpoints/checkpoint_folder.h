/* checkpoint_folder.h - a folder of checkpoints: step-000000000120/ holds rank-0.safetensors, ... and at last manifest.json; what is
 * being written has a name that ends in .part. All are of one run, the newest few
 * are kept. */
#ifndef HP_CHECKPOINT_FOLDER_H
#define HP_CHECKPOINT_FOLDER_H

#include "checkpoints/manifest.h"
#include "checkpoints/checkpoint_state.h"

/* "DIR/step-000000000120", with ".part" while it is written. */
const char *hp_checkpoint_path(hp_arena *arena, const char *dir, int64_t step, bool part);
/* "PATH/rank-3.safetensors" */
const char *hp_checkpoint_file(hp_arena *arena, const char *path, int64_t rank);

/* Steps of which there is a checkpoint, whole or not, the newest first; *n of them. Errors: HP_EDATA (no such folder). */
hp_status hp_checkpoint_list(hp_arena *arena, const char *dir, int64_t **step, int *n, hp_error *err);

/* The manifest of a checkpoint, which has to be of that step. Errors: HP_EDATA. */
hp_status hp_checkpoint_read(hp_arena *arena, const char *dir, int64_t step, hp_manifest *m, hp_error *err);
/* Files first, first + every, ... of it. Errors: HP_EDATA. */
hp_status hp_checkpoint_verify(hp_arena *arena, const char *dir, const hp_manifest *m, int64_t first,
                               int64_t every, hp_error *err);

/* One rank's share of a save, by that rank: its pieces in a file of the part. `data`: the pieces that are home, one after
 * the other, of `dtype`. *chunks: what the file holds; the caller frees its hashes. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_checkpoint_put(const hp_disk_ops *disk, const char *dir, int64_t step, int64_t rank,
                            const hp_graph *g, const hp_state_piece *piece, int n, hp_dtype dtype,
                            const void *data, hp_chunks *chunks, hp_error *err);

/* The end of a save, by one process: all files of the part are on the disk. Writes the manifest, makes it the
 * checkpoint, and leaves the `keep` newest up to it; later ones are there only if they are damaged.
 * Errors: HP_ECREATE, HP_EIO. */
hp_status hp_checkpoint_commit(const hp_disk_ops *disk, const char *dir, const hp_manifest *m, int64_t keep,
                               hp_error *err);
/* Removes parts that a run has left, which must be over. */
void hp_checkpoint_clean(const hp_disk_ops *disk, const char *dir);

#endif
