/* fix.h - the smallest change that makes a rejected strategy feasible, evaluated before it is shown. */
#ifndef HP_FIX_H
#define HP_FIX_H

#include "plan/strategy/change.h"
#include "sim/search/evaluate.h"

/* What `e` evaluates, with another strategy. n_devices: upper limit; 0: any number. */
hp_question hp_eval_question(const hp_eval *e, const hp_strategy *s, int n_devices);

/* Limits on tasks of the programs that a fix may lower: for one reject among many, and where it is the only
 * answer. */
enum { HP_FIX_QUICK = 25000, HP_FIX_THOROUGH = HP_TRIAL_TASKS };

/* Beginning of the text if no fix was found. */
#define HP_FIX_NONE "none found"

/* Like hp_evaluate, on at most as many devices as the question allows and the machine has. `e` must have the
 * question's batch. */
hp_status hp_question_evaluate(hp_eval *e, const hp_question *q, hp_eval_depth depth, hp_arena *arena,
                               hp_evaluation *out, hp_error *err);

/* Finds a fix for a rejected question. why->fix becomes the change with the fewest options and keys, and
 * among those the cheapest per image, followed by a rank's need: "--batch 256, recompute=boundary -> 25.7
 * GB". It was evaluated like a candidate.
 *
 * Follows what rules propose (plan/strategy/legal.h) until all are met. Then, while memory is short, changes
 * recomputation, micro-batches, cuts, strips, stages and tiles. If nothing helps, why->fix says "none found"
 * and the smallest need found. why->limit becomes the need with buffers placed. Deterministic. */
hp_status hp_search_fix(hp_eval *e, const hp_question *q, int64_t most_tasks, hp_reject *why, hp_error *err);

/* Is it a change, rather than the message that none was found? */
bool hp_fix_found(const char *fix);

/* --- inside --- */

/* Variants of `q`, which lacks memory: on the same ranks with the same stages and tiles (`others` false), or
 * with others on about as many devices, or more, up to n_devices (0: any number). Writes at most `room`. */
int hp_memory_variants(hp_eval *e, const hp_question *q, int devices, int n_devices, bool others,
                       hp_strategy *out, int room);

#endif
