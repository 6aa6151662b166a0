/* placement.h - on which node and which device each rank of a program runs: the single rule for simulator and
 * executor. Takes and returns plain numbers.
 *
 * Ranks are numbered replica by replica, with `roles` ranks each. `clients` consecutive replicas share their
 * devices, role by role (AccDP: several processes on one device). The devices they use, called places, are
 * numbered without gaps and fill one node after another. If there are more places than devices, they wrap
 * around. A placement may permute the places' seats; the set of devices stays the same. */
#ifndef HP_PLACEMENT_H
#define HP_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_placement {
    int32_t roles;    /* ranks of one replica */
    int32_t replicas; /* clients included */
    int32_t clients;  /* number of replicas that share a device; divides replicas */
    int32_t nodes, devices_per_node;
    const int32_t *seat; /* per place: its seat, a permutation; NULL: the place's own */
} hp_placement;

/* Number of devices that the ranks ask for; may exceed the machine's. */
static inline int hp_placement_places(const hp_placement *p) {
    return p->replicas / p->clients * p->roles;
}

/* The place of a rank: 0 .. hp_placement_places() - 1. */
static inline int hp_placement_place(const hp_placement *p, int rank) {
    return rank / p->roles / p->clients * p->roles + rank % p->roles;
}

/* Device of a rank, numbered node by node over the machine. */
static inline int hp_placement_device(const hp_placement *p, int rank) {
    const int place = hp_placement_place(p, rank);
    return (p->seat ? p->seat[place] : place) % (p->nodes * p->devices_per_node);
}

static inline int hp_placement_node(const hp_placement *p, int rank) {
    return hp_placement_device(p, rank) / p->devices_per_node;
}

/* Does a device hold more than one rank? */
static inline bool hp_placement_shares_devices(const hp_placement *p) {
    return p->clients > 1 || hp_placement_places(p) > p->nodes * p->devices_per_node;
}

#endif
