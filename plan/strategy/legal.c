/* legal.c - which strategies are possible for a network, a batch and a number of devices. Asks the keys in
 * turn; each refusal carries its code, the limiting number and the smallest change that meets the rule. */
#include "plan/strategy/strategy_axis.h"
#include "plan/strategy/rules_mpi4dl.h"

#include <string.h>

/* Keys by the turn of their rules. */
static const hp_axis *const by_turn[] = {
#define AXIS(key, turn) [turn] = &hp_axis_##key,
#include "plan/strategy/axes.def"
};
enum { N_TURN = sizeof by_turn / sizeof by_turn[0] };

bool hp_strategy_legal(const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                       hp_reject *why) {
    const hp_strategy canonical = hp_strategy_canonical(s);
    const hp_legal_case c = {&canonical, g, batch, n_devices};
    if (why) memset(why, 0, sizeof *why);
    for (int i = 0; i < N_TURN; i++)
        if (by_turn[i] && by_turn[i]->legal && !by_turn[i]->legal(&c, why)) return false;
    return true;
}

bool hp_device_allows(const hp_device_info *device, const hp_strategy *s, bool infer, hp_reject *why) {
    for (int i = 0; i < HP_STRATEGY_AXES && device; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        if (a->on_device && !a->on_device(s, device, why)) return false;
    }
    return hp_prec_allowed(s->prec, infer, device, why);
}

const char *const hp_rules_names[] = {"hplan", "mpi4dl", NULL};

bool hp_rules_allow(hp_rules rules, const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                    hp_reject *why) {
    if (!hp_strategy_legal(s, g, batch, n_devices, why)) return false;
    return rules == HP_RULES_HPLAN || hp_mpi4dl_allows(s, g, why);
}
