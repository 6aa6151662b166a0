/* observe.h - observes the tensors of a float deployed program while it runs, to choose the qparams of the
 * same network's int8 program.
 *
 * Two passes over the calibration images: the first finds each tensor's range, the second counts a histogram
 * over it (min-max needs only the first). After each pass the ranks merge their observations; minima, maxima
 * and integer counts do not depend on which rank observed which part of which image. */
#ifndef HP_OBSERVE_H
#define HP_OBSERVE_H

#include "exec/comm/comm.h"
#include "exec/quant/clip.h"

typedef struct hp_observer hp_observer;

/* real: the float program's graph; quantised: the int8 program's graph of the same network; only tensors it
 * quantises are observed. Both must outlive the observer. Errors: HP_EINTERNAL (different networks). */
hp_status hp_observer_new(const hp_graph *real, const hp_graph *quantised, hp_observer **o, hp_error *err);
void hp_observer_free(hp_observer *o); /* NULL is fine */

/* Observes the output of a task of the float program (forward and load tasks; others write no new values).
 * own: the part of the output this rank is responsible for, so that nothing is counted twice where several
 * ranks compute it; NULL: all of it. */
void hp_observe_task(hp_observer *o, const hp_role *role, int task, const unsigned char *arena,
                     const hp_box *own);
/* The same for elements of a tensor: `data` holds its box `have`, dense; those in `count` are observed. */
void hp_observe_box(hp_observer *o, int tensor, hp_dtype dtype, const void *data, const hp_box *have,
                    const hp_box *count);

/* Ends a pass. Collective: over all ranks. Errors: HP_EDATA (NaN or infinite values in a layer, nothing
 * observed), the communicator's. */
hp_status hp_observer_next(hp_observer *o, hp_comm *comm, hp_error *err);

/* After the first pass. For a tensor of the float graph that is observed: its range; the largest magnitude in
 * every channel (NULL: not observed). */
hp_range hp_observer_range(const hp_observer *o, int tensor);
const double *const *hp_observer_most(const hp_observer *o);

/* After both passes (min-max: after the first): sets the qparams of every tensor of `c`, constants of the
 * int8 graph. */
void hp_observer_quantise(const hp_observer *o, const hp_clip_options *clip, hp_constants *c);
/* After both passes: corrects the biases of all 8-bit layers (exec/quant/correct.h). */
hp_status hp_observer_correct(const hp_observer *o, hp_constants *c, hp_error *err);

#endif
