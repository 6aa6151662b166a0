/* loader.h - decides which samples a replica's micro-batch contains, and fills the rank's buffers
 * with its part of them.
 *
 * The batch of a step is positions step*batch ... +batch of the epoch, split contiguously over replicas, then
 * micro-batches: sample i of (replica, micro) is at step*batch + (replica*micro + m)*micro_batch + i. A rank
 * reads only its own box of them. */
#ifndef HP_LOADER_H
#define HP_LOADER_H

#include "exec/data/dataset/dataset.h"
#include "plan/program/program.h"

#include <stdbool.h>

typedef struct hp_loader hp_loader;

typedef struct hp_loader_options {
    hp_dataset *data;          /* must outlive the loader */
    const hp_program *program; /* provides batch, micro, micro_batch, dtype */
    int32_t replica;           /* data replica of this rank */
    bool shuffle;              /* false: --no-shuffle */
    bool eval;                 /* one pass in file order; a partial last batch is padded with label -1 */
    uint64_t seed;
    int32_t threads; /* threads that read the samples of one call; 0: one */
} hp_loader_options;

/* Errors: HP_EDATA: fewer samples than one batch (training only). */
hp_status hp_loader_open(const hp_loader_options *o, hp_loader **l, hp_error *err);
void hp_loader_close(hp_loader *l); /* NULL is fine */

/* Training: full batches of an epoch; a partial last one is dropped. Evaluation: batches that cover every
 * sample. */
int64_t hp_loader_steps(const hp_loader *l);

/* The handles, one per thread; the first is the options' data. Returns their number. */
int32_t hp_loader_handles(hp_loader *l, hp_dataset *const **handle);

/* Fills x, the box x_box of the micro-batch's images as `dtype` (HP_F32, HP_F64: normalised; HP_U8: the raw
 * pixels, before normalisation), and labels, int32: one for each sample of label_box, or with a label map the
 * box's rows and columns of each. Either may be NULL. Step counts from 0 through all epochs; in evaluation,
 * positions past the end and samples that are left out give zeros and label -1; in training the next one
 * stands in for these. Boxes of one image from its top to its bottom, such as streamed tiles, cost one pass
 * through its file. The options' threads read; what they fill in, and the error, which is that of the first
 * sample that cannot be read, do not depend on how many they are. One call at a time. Errors: HP_EDATA. */
hp_status hp_loader_read(hp_loader *l, int64_t step, int32_t micro, void *x, hp_dtype dtype,
                         const hp_box *x_box, int32_t *labels, const hp_box *label_box, hp_error *err);

#endif
