/* fix.h - the smallest change that makes a rejected strategy feasible, evaluated before anyone reads it. */
#ifndef HP_FIX_H
#define HP_FIX_H

#include "plan/strategy/change.h"
#include "sim/search/evaluate.h"

/* What `e` evaluates, with another strategy. n_devices: at most, 0 = any number. */
hp_question hp_eval_question(const hp_eval *e, const hp_strategy *s, int n_devices);

/* Tasks of the programs that a fix may lower: of one reject among many, and where it is the only answer. */
enum { HP_FIX_QUICK = 25000, HP_FIX_THOROUGH = HP_TRIAL_TASKS };

/* How a fix begins that is none. */
#define HP_FIX_NONE "none found"

/* As hp_evaluate, on no more devices than the question allows and the machine has. `e` has the question's batch. */
hp_status hp_question_evaluate(hp_eval *e, const hp_question *q, hp_eval_depth depth, hp_arena *arena,
                               hp_evaluation *out, hp_error *err);

/* For a question that was rejected: why->fix becomes the change with the fewest options and keys, among those the
 * one that costs least per image, which was evaluated as a candidate is, and what a rank then needs:
 * "--batch 256, recompute=boundary -> 25.7 GB". What rules propose (plan/strategy/legal.h) is followed until all are met; then, as
 * long as memory lacks, recomputation, micro-batches, cuts, strips, stages and tiles are changed. Where nothing
 * helps, why->fix says "none found" and the least need that was met. why->limit becomes the need with buffers
 * placed. Deterministic. */
hp_status hp_search_fix(hp_eval *e, const hp_question *q, int64_t most_tasks, hp_reject *why, hp_error *err);

/* Is it a change, and not the news that none was found? */
bool hp_fix_found(const char *fix);

/* --- inside --- */

/* Other strategies than that of `q`, which lacks memory: on the same ranks with the same stages and tiles (`others` false),
 * or with others on about as many devices, or more: at most n_devices (0: any number). At most `room` are
 * written. */
int hp_memory_variants(hp_eval *e, const hp_question *q, int devices, int n_devices, bool others,
                       hp_strategy *out, int room);

#endif
