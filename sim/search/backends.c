/* backends.c - one kind of traffic after the other, each kept with the back end that gives the shorter step.
 */
#include "sim/search/search.h"

/* Less than the simulator can tell: `auto` then stays. */
static const double GAIN = 0.005;

static bool is_open(const hp_eval_setup *o, const hp_strategy *s) {
    for (int t = 0; t < HP_TRAFFICS; t++)
        if (s->comm[t] != HP_COMM_AUTO) return false;
    return o->device && hp_device_on_gpu(o->device) && !o->machine->device.is_cpu && s->clients == 1 &&
           hp_strategy_ranks(s) > 1;
}

hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(eval);
    if (!is_open(o, &e->strategy)) return HP_OK;
    const hp_backend own = hp_comm_backend(HP_COMM_AUTO, o->device, 1);
    for (int t = 0; t < HP_TRAFFICS; t++) {
        for (int32_t b = 0; b < (int32_t)HP_BACKENDS; b++) {
            hp_strategy other = e->strategy;
            hp_evaluation v;
            if (b == (int32_t)own || !hp_device_has_backend(o->device, (hp_backend)b)) continue;
            other.comm[t] = 1 + b;
            HP_TRY(hp_evaluate(eval, arena, &other, depth, &v, err));
            if (!v.reject.code && v.figures.step_s < (1 - GAIN) * e->figures.step_s) *e = v;
        }
    }
    return HP_OK;
}
