/* checkpoint_folder.h - a folder of checkpoints. step-000000000120/ holds rank-0.safetensors, ... and,
 * written last, manifest.json. A checkpoint being written has a name that ends in .part. All belong to one
 * run; only the newest few are kept. */
#ifndef HP_CHECKPOINT_FOLDER_H
#define HP_CHECKPOINT_FOLDER_H

#include "checkpoints/manifest.h"
#include "checkpoints/checkpoint_state.h"

/* "DIR/step-000000000120", with ".part" while it is written. */
const char *hp_checkpoint_path(hp_arena *arena, const char *dir, int64_t step, bool part);
/* "PATH/rank-3.safetensors" */
const char *hp_checkpoint_file(hp_arena *arena, const char *path, int64_t rank);

/* Lists the steps that have a checkpoint, whole or not, newest first; *n: their number. Errors:
 * HP_EDATA (no such folder). */
hp_status hp_checkpoint_list(hp_arena *arena, const char *dir, int64_t **step, int *n, hp_error *err);

/* Reads a checkpoint's manifest and checks that it is of that step. Errors: HP_EDATA. */
hp_status hp_checkpoint_read(hp_arena *arena, const char *dir, int64_t step, hp_manifest *m, hp_error *err);
/* Verifies files first, first + every, ... of a checkpoint. Errors: HP_EDATA. */
hp_status hp_checkpoint_verify(hp_arena *arena, const char *dir, const hp_manifest *m, int64_t first,
                               int64_t every, hp_error *err);

/* Writes this rank's pieces to its file in the .part folder. `data`: the pieces that are home, concatenated,
 * of type `dtype`. *chunks: the hashes of the file; the caller frees them. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_checkpoint_put(const hp_disk_ops *disk, const char *dir, int64_t step, int64_t rank,
                            const hp_graph *g, const hp_state_piece *piece, int n, hp_dtype dtype,
                            const void *data, hp_chunks *chunks, hp_error *err);

/* Completes a save, called by one process once all files of the .part folder are on the disk. Writes the
 * manifest, renames the folder, and keeps the newest `keep` checkpoints up to it. Later ones stay; they exist
 * only if they are damaged. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_checkpoint_commit(const hp_disk_ops *disk, const char *dir, const hp_manifest *m, int64_t keep,
                               hp_error *err);
/* Removes .part folders that earlier runs left behind. No other run may be writing. */
void hp_checkpoint_clean(const hp_disk_ops *disk, const char *dir);

#endif
