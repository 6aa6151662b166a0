/* save_schedule.c - decides when a save is due, from the sum that ends a step: the same
 * answer on all ranks. */
#include "exec/checkpoint/save_inside.h"

#include "base/clock.h"

/* Terms of the sum: WRITTEN from up to 2^20 ranks, DUE from rank 0, LEAVE from up to 2^20 ranks. They are
 * whole numbers, so their sum is exact in any order. */
static const int64_t WRITTEN = 1, DUE = INT64_C(1) << 21, LEAVE = INT64_C(1) << 22;

double hp_checkpoint_ask(const hp_checkpoint *c) {
    if (!c) return 0;
    const bool late = c->o.comm->rank == 0 && c->o.every_s > 0 && hp_now_s() - c->saved_s >= c->o.every_s;
    return (double)((checkpoint_written(c) ? WRITTEN : 0) + (late ? DUE : 0) + (*c->o.leave ? LEAVE : 0));
}

typedef struct wanted {
    bool save, leave, complete;
} wanted;

static wanted read_sum(const hp_checkpoint *c, const hp_checkpoint_now *now) {
    const int64_t sum = (int64_t)now->asked;
    wanted w = {.leave = sum >= LEAVE && !now->last};
    w.save = w.leave || (sum / DUE) % 2 || (c->o.every_steps > 0 && now->done % c->o.every_steps == 0);
    w.complete = w.save || now->last || sum % DUE == c->o.comm->size;
    return w;
}

static hp_status act(hp_checkpoint *c, const hp_checkpoint_now *now, const wanted *w, hp_error *err) {
    if (c->pending && w->complete) HP_TRY(checkpoint_complete(c, false, err));
    if (w->save) {
        c->saved_s = hp_now_s();
        HP_TRY(checkpoint_begin(c, now, err));
    }
    if (c->pending && (w->leave || now->last)) return checkpoint_complete(c, w->leave, err);
    return HP_OK;
}

hp_status hp_checkpoint_visit(hp_checkpoint *c, const hp_checkpoint_now *now, bool *leave, hp_error *err) {
    *leave = false;
    if (!c) return HP_OK;
    const wanted w = read_sum(c, now);
    const bool idle = !w.save && !(c->pending && w.complete);
    const double begin_s = hp_now_s();
    const hp_status s = act(c, now, &w, err);
    c->cost.last_s = idle ? 0 : hp_now_s() - begin_s;
    c->cost.total_s += c->cost.last_s;
    *leave = w.leave && s == HP_OK;
    return s;
}
