/* axis_comm.c - `comm`: which back end carries what; its text is in plan/strategy/backend.h. */
#include "plan/strategy/strategy_axis.h"

static hp_status parse_comm(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    return hp_comm_parse(value, s->comm, err);
}

static void print_comm(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a;
    hp_comm_text(s->comm, value, HP_STRATEGY_TEXT);
}

static bool is_auto(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return hp_comm_is_auto(s->comm);
}

static bool legal_comm(const hp_legal_case *c, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        if (c->s->clients == 1 || !hp_comm_wants_devices(c->s->comm[i])) continue;
        hp_refuse(why, HP_REJECT_COMM, "comm=%s:nccl: NCCL wants a device for each rank, clients=%d",
                  hp_traffic_names[i], c->s->clients);
        return hp_fix(why, "comm=mpi");
    }
    return true;
}

static bool on_device(const hp_strategy *s, const hp_device_info *device, hp_reject *why) {
    for (int i = 0; i < HP_TRAFFICS; i++) {
        const hp_backend b = hp_comm_backend(s->comm[i], (hp_traffic)i, device, s->clients);
        if (hp_device_has_backend(device, b)) continue;
        hp_refuse(why, HP_REJECT_COMM, "comm=%s:%s: device %.20s has no %s", hp_traffic_names[i],
                  hp_backend_names[b], device->name, hp_backend_names[b]);
        return hp_fix(why, "comm=auto");
    }
    return true;
}

const hp_axis hp_axis_comm = {.name = "comm",
                              .example = "comm=halo:shm+allreduce:own.ring",
                              .usual = "auto",
                              .means = "back end (own mpi shm nccl) of everything, or of each kind (halo "
                                       "stage stats allreduce, other collectives by name)",
                              .parse = parse_comm,
                              .print = print_comm,
                              .omits = is_auto,
                              .legal = legal_comm,
                              .on_device = on_device};
