/* placement.h - on which node and which device each rank of a program runs: the one rule that the simulator
 * and the executor share. Plain numbers in, plain numbers out.
 *
 * Ranks are numbered replica by replica, `roles` to each. `clients` replicas in a row share their devices,
 * role by role (AccDP: several processes on one device); the devices they use are numbered without gaps and
 * fill node after node. Where there are more of them than the machine has, they wrap around. Each of them is a place;
 * a placement may give the places each other's seats: the devices used stay the same ones. */
#ifndef HP_PLACEMENT_H
#define HP_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_placement {
    int32_t roles;    /* ranks of one replica */
    int32_t replicas; /* clients included */
    int32_t clients;  /* replicas that share a device; divides replicas */
    int32_t nodes, devices_per_node;
    const int32_t *seat; /* per place: a permutation; NULL: the place's own */
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
    const int place = hp_placement_place(p, rank);
    return (p->seat ? p->seat[place] : place) % (p->nodes * p->devices_per_node);
}

static inline int hp_placement_node(const hp_placement *p, int rank) {
    return hp_placement_device(p, rank) / p->devices_per_node;
}

/* Does a device hold more than one rank? */
bool hp_placement_shares_devices(const hp_placement *p);

/* Seats are numbered as block placement uses them: seat k is on node k / per_node, and the last node used may have fewer
 * seats than the others.
 *
 * Cyclic: places are dealt to the nodes in turn, past nodes that have no seat left (Slurm's srun(1),
 * --distribution=cyclic). */
void hp_seats_cyclic(int places, int per_node, int32_t *seat);

/* Packed: blocks of places that talk to each other, the largest first (ties: in their order), each on the first node that
 * has room for all of it; what no node has room for takes the first seats that are free (first fit decreasing:
 * Johnson 1974). `member` has the blocks' places one after another, `size` how many each has. */
void hp_seats_pack(int per_node, const int32_t *member, const int32_t *size, int n_block, int32_t *seat);

/* Does every place have its own seat? */
bool hp_seats_are_plain(int places, const int32_t *seat);

#endif
