/* placement.h - on which node and which device each rank of a program runs: the one rule that the simulator
 * and the executor share. Plain numbers in, plain numbers out.
 *
 * Ranks are numbered replica by replica, `roles` to each. `clients` replicas in a row share their devices,
 * role by role (AccDP: several processes on one device); the devices they use are numbered without gaps and
 * fill node after node. Where there are more of them than the machine has, they wrap around. */
#ifndef HP_PLACEMENT_H
#define HP_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_placement {
    int32_t roles;    /* ranks of one replica */
    int32_t replicas; /* clients included */
    int32_t clients;  /* replicas that share a device; divides replicas */
    int32_t nodes, devices_per_node;
} hp_placement;

/* Devices that the ranks ask for, which may be more than the machine has. */
static inline int hp_placement_places(const hp_placement *p) {
    return p->replicas / p->clients * p->roles;
}

/* The place of a rank: 0 .. hp_placement_places() - 1. */
static inline int hp_placement_place(const hp_placement *p, int rank) {
    return rank / p->roles / p->clients * p->roles + rank % p->roles;
}

/* Of all devices of the machine, numbered node by node. */
static inline int hp_placement_device(const hp_placement *p, int rank) {
    return hp_placement_place(p, rank) % (p->nodes * p->devices_per_node);
}

static inline int hp_placement_node(const hp_placement *p, int rank) {
    return hp_placement_device(p, rank) / p->devices_per_node;
}

/* Does a device hold more than one rank? */
bool hp_placement_shares_devices(const hp_placement *p);

#endif
