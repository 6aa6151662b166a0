/* schedule.c - LP, GPipe (Huang et al. 2019), 1F1B (PipeDream-Flush, Narayanan et al. 2021) and interleaved
 * 1F1B (Narayanan et al., SC 2021, section 2.2) as orders of forward and backward passes.
 *
 * All four are one rule: run `warm` forwards, then one forward and one backward in turn, then the backwards
 * that are left. They differ in `warm` and, for several chunks, in which chunk the k-th pass belongs to. */
#include "plan/schedule.h"

static int warm_up(const hp_strategy *s, int stage, int total) {
    int warm = total; /* gpipe, lp: every forward first */
    if (s->stages == 1) {
        warm = 1; /* gradient accumulation keeps one stash */
    } else if (s->sched == HP_SCHED_1F1B) {
        warm = s->stages - stage;
    } else if (s->sched == HP_SCHED_INTERLEAVED) {
        warm = (s->stages - stage - 1) * 2 + (s->chunks - 1) * s->stages + 1;
    }
    return warm < total ? warm : total;
}

/* Passes come in groups of stages*chunks: `stages` micro-batches through one chunk, then through the next. */
static hp_sched_step kth_pass(const hp_strategy *s, int k, int backward) {
    const int width = s->chunks > 1 ? s->stages : 1, period = width * s->chunks;
    const int chunk = k % period / width;
    return (hp_sched_step){backward, backward ? s->chunks - 1 - chunk : chunk,
                           k / period * width + k % width};
}

void hp_schedule(const hp_strategy *s, int stage, hp_sched_step *step) {
    const int total = s->micro * s->chunks;
    int forward = 0, backward = 0, n = 0;
    for (const int warm = warm_up(s, stage, total); forward < warm; forward++)
        step[n++] = kth_pass(s, forward, 0);
    while (backward < total) {
        step[n++] = kth_pass(s, backward++, 1);
        if (forward < total) step[n++] = kth_pass(s, forward++, 0);
    }
}
