/* sim_memory_fit.c - memory first: most candidates for a large image fail here, cheaply. */
#include "sim/memory/sim_memory_fit.h"
#include "base/alloc.h"

#include "base/units.h"
#include "machines/placement.h"
#include "plan/memory/memory_yardstick.h"
#include "sim/memory/eager.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hp_memory_limit hp_memory_limit_of(const hp_machine *m, int64_t user_limit, int clients, bool eager) {
    const int64_t contexts = clients > 1 && !eager ? clients * hp_context_bytes(m, false) : 0;
    hp_memory_limit l = {.node_bytes = m->share_cpu ? m->device.memory_bytes : 0};
    for (int k = 0; k < hp_machine_classes(m); k++) {
        const int64_t device = hp_machine_class(m, k)->memory_bytes;
        l.class_bytes[k] = m->share_cpu ? device : (device - contexts) / clients;
        if (user_limit > 0 && (k == 0 || user_limit < l.class_bytes[k])) l.class_bytes[k] = user_limit;
        if (l.class_bytes[k] > l.rank_bytes) l.rank_bytes = l.class_bytes[k];
    }
    return l;
}

/* Rounds up to three significant digits, so that the limit printed by hp_format_bytes suffices. */
static double round_up_digits(double bytes) {
    const double step = pow(10, floor(log10(bytes)) - 2);
    return step > 1 ? ceil(bytes / step) * step : bytes;
}

static bool refuse(hp_reject *why, const char *who, double bytes, double has) {
    char a[32], b[32];
    memset(why, 0, sizeof *why);
    why->code = HP_REJECT_MEM;
    snprintf(why->limit, sizeof why->limit, "%s %s, has %s", who, hp_format_bytes(round_up_digits(bytes), a),
             hp_format_bytes(has, b));
    return false;
}

bool hp_memory_refuse(hp_reject *why, const hp_memory_limit *limit, int position, int positions,
                      double bytes) {
    char who[60];
    snprintf(who, sizeof who, positions > 1 ? "a rank of stage %d needs at least" : "a rank needs at least",
             position);
    return refuse(why, who, bytes, (double)limit->rank_bytes);
}

static hp_placement placement_of(const hp_machine *m, const hp_memory_demand *d) {
    return (hp_placement){.roles = d->n_role,
                          .replicas = d->dp,
                          .clients = d->clients,
                          .nodes = m->nodes,
                          .devices_per_node = m->devices_per_node,
                          .seat = d->seat};
}

/* Checks every rank on its device. If false, `why` names the one that lacks most. */
static bool ranks_fit(const hp_memory_limit *limit, const hp_machine *m, const hp_memory_demand *d,
                      hp_reject *why) {
    const hp_placement at = placement_of(m, d);
    int worst = -1, class = 0;
    double most = 1;
    for (int rank = 0; rank < d->n_role * d->dp; rank++) {
        const int k = hp_machine_class_at(m, hp_placement_device(&at, rank));
        const double part = (double)d->by_role[rank % d->n_role] / (double)limit->class_bytes[k];
        if (part <= most) continue;
        most = part;
        worst = rank;
        class = k;
    }
    if (worst < 0) return true;
    char who[60];
    snprintf(who, sizeof who, "rank %d, on a %.20s, needs", worst, hp_machine_class(m, class)->name);
    return refuse(why, who, (double)d->by_role[worst % d->n_role], (double)limit->class_bytes[class]);
}

static double fullest_node(const hp_machine *m, const hp_memory_demand *d) {
    const hp_placement at = placement_of(m, d);
    double *sum = hp_zeroed((size_t)m->nodes, sizeof *sum), most = 0;
    for (int rank = 0; rank < d->n_role * d->dp; rank++) {
        double *node = &sum[hp_placement_node(&at, rank)];
        *node += (double)d->by_role[rank % d->n_role] + HP_YARDSTICK_BYTES;
        if (*node > most) most = *node;
    }
    free(sum);
    return most;
}

bool hp_memory_fits(const hp_memory_limit *limit, const hp_machine *m, const hp_memory_demand *d,
                    hp_reject *why) {
    memset(why, 0, sizeof *why);
    int fullest = 0;
    for (int r = 1; r < d->n_role; r++)
        if (d->by_role[r] > d->by_role[fullest]) fullest = r;
    if (d->by_role[fullest] > limit->rank_bytes) {
        char who[60];
        snprintf(who, sizeof who, d->n_role > 1 ? "rank %d of a replica needs" : "a rank needs", fullest);
        return refuse(why, who, (double)d->by_role[fullest], (double)limit->rank_bytes);
    }
    if (m->mix.n_class > 0 && !ranks_fit(limit, m, d, why)) return false;
    if (limit->node_bytes == 0) return true;
    const double node = fullest_node(m, d);
    return node <= (double)limit->node_bytes ? true
                                             : refuse(why, "a node needs", node, (double)limit->node_bytes);
}
