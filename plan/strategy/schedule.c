/* schedule.c - LP, GPipe (Huang et al. 2019), 1F1B (PipeDream-Flush, Narayanan et al. 2021), interleaved 1F1B
 * (Narayanan et al., SC 2021, section 2.2), ZB-H1 (Qi et al. 2023) and GEMS (Jain et al., SC 2020) as orders
 * of forward and backward passes.
 *
 * All are one rule: run `warm` forwards, then one backward and one forward in turn, then the backwards that
 * are left. They differ in `warm` and, for several chunks, in which chunk the k-th pass belongs to. GEMS does
 * it once per pass over the pipeline. ZB-H1 computes the weights' gradients of a micro-batch `lag` backwards
 * later, where 1F1B would wait. */
#include "plan/strategy/schedule.h"

#include "plan/strategy/sched_kind.h"

const hp_sched_kind *const hp_sched_kinds[HP_SCHEDS] = {
#define SCHED(ID, id) [HP_SCHED_##ID] = &hp_sched_##id,
#include "plan/strategy/sched.def"
};

typedef struct walk {
    const hp_strategy *s;
    int positions, position;
    int first, flip; /* micro-batch and orientation of the pass over the pipeline */
    hp_sched_step *step;
    int n;
} walk;

static int warm_up(const walk *w, int total) {
    const hp_sched_kind *kind = hp_sched_of(w->s);
    int warm = total; /* every forward first */
    if (w->positions == 1)
        warm = 1; /* gradient accumulation keeps one stash */
    else if (kind->warm_up)
        warm = kind->warm_up(w->positions, w->position, w->s->chunks);
    return warm < total ? warm : total;
}

/* Passes come in groups of positions*chunks: that many micro-batches go through one chunk, then through the
 * next. */
static int group_width(const walk *w) {
    return w->s->chunks > 1 ? w->positions : 1;
}

static void emit(walk *w, hp_step_kind kind, int k) {
    const int chunks = w->s->chunks, width = group_width(w), period = width * chunks;
    const int chunk = k % period / width, micro = k / period * width + k % width;
    w->step[w->n++] = (hp_sched_step){(int32_t)kind, w->flip,
                                      kind == HP_STEP_FORWARD ? chunk : chunks - 1 - chunk, w->first + micro};
}

static bool splits_backward(const walk *w) {
    return hp_sched_of(w->s)->splits_backward && w->positions > 1;
}

/* One pass over the pipeline. No position keeps more than 1F1B's first does: 1F1B keeps positions - position
 * micro-batches, the weights' gradients that come `position` later keep as many again. */
static void pass(walk *w) {
    const int total = w->s->micro * w->s->chunks, warm = warm_up(w, total);
    const int lag = splits_backward(w) ? w->position : total;
    int forward = 0, backward = 0, weights = 0;
    while (forward < warm) emit(w, HP_STEP_FORWARD, forward++);
    while (backward < total) {
        emit(w, HP_STEP_BACKWARD, backward++);
        if (backward > lag) emit(w, HP_STEP_WEIGHTS, weights++);
        if (forward < total) emit(w, HP_STEP_FORWARD, forward++);
    }
    while (splits_backward(w) && weights < total) emit(w, HP_STEP_WEIGHTS, weights++);
}

/* The forwards of the last chunk among the first `warm`. */
int hp_schedule_in_flight(const hp_strategy *s, int position) {
    const walk w = {.s = s, .positions = hp_positions(s), .position = position};
    const int warm = warm_up(&w, s->micro * s->chunks), width = group_width(&w), period = width * s->chunks;
    const int in_last_group = warm % period - (s->chunks - 1) * width;
    return warm / period * width + (in_last_group > 0 ? in_last_group : 0);
}

int hp_schedule_most(const hp_strategy *s) {
    return (hp_sched_of(s)->splits_backward ? 3 : 2) * s->gems * s->micro * s->chunks;
}

int hp_schedule(const hp_strategy *s, int role, hp_sched_step *step) {
    walk w = {.s = s, .positions = hp_positions(s), .step = step};
    for (int i = 0; i < s->gems; i++) {
        int part;
        w.flip = i % 2;
        w.first = i * s->micro;
        hp_role_place(s, role, w.flip, &w.position, &part);
        pass(&w);
    }
    return w.n;
}
