/* observe.h - watches a float deployed program while it runs, to choose the quantisation of the same
 * network's int8 program.
 *
 * Two passes over the calibration images: the first finds each tensor's range, the second counts within it
 * (min-max needs only the first). After each pass the ranks put together what they saw; minima, maxima and
 * integer counts come out the same whatever rank saw which part of which image. */
#ifndef HP_OBSERVE_H
#define HP_OBSERVE_H

#include "exec/comm/comm.h"
#include "exec/quant/clip.h"

typedef struct hp_observer hp_observer;

/* real: the float program's graph; quantised: the int8 program's, of the same network; only tensors it
 * quantises are watched. Both outlive the observer. Errors: HP_EINTERNAL (of two networks). */
hp_status hp_observer_new(const hp_graph *real, const hp_graph *quantised, hp_observer **o, hp_error *err);
void hp_observer_free(hp_observer *o); /* NULL is fine */

/* Looks at what a task of the float program has just made (forward and load tasks; others make nothing new).
 * own: the part of its output that this rank answers for, so that nothing is counted twice where ranks
 * compute the same; NULL: all of it. */
void hp_observe_task(hp_observer *o, const hp_role *role, int task, const unsigned char *arena,
                     const hp_box *own);
/* The same of elements of a tensor: `data` holds its box `have`, dense; those in `count` are seen. */
void hp_observe_box(hp_observer *o, int tensor, hp_dtype dtype, const void *data, const hp_box *have,
                    const hp_box *count);

/* Ends a pass. Collective: over all ranks. Errors: HP_EDATA (a layer's values are no numbers, nothing was
 * seen), the communicator's. */
hp_status hp_observer_next(hp_observer *o, hp_comm *comm, hp_error *err);

/* After the first pass. Per tensor of the float graph that is watched: its range; the largest size in every
 * channel (NULL: not watched). */
hp_range hp_observer_range(const hp_observer *o, int tensor);
const double *const *hp_observer_most(const hp_observer *o);

/* After both passes (min-max: after the first): quantisation of every tensor of `c`, constants of the int8
 * graph. */
void hp_observer_quantise(const hp_observer *o, const hp_clip_options *clip, hp_constants *c);
/* After both passes: corrects the biases of all 8-bit layers (exec/quant/correct.h). */
hp_status hp_observer_correct(const hp_observer *o, hp_constants *c, hp_error *err);

#endif
