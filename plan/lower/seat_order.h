/* seat_order.h - orders in which places are given seats. Seats are numbered as block placement uses them
 * (machines/placement.h): seat k is on node k / per_node, and the last node used may have fewer seats. */
#ifndef HP_SEAT_ORDER_H
#define HP_SEAT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Cyclic: deals places to the nodes in turn, skipping full nodes (Slurm's srun(1), --distribution=cyclic). */
void hp_seats_cyclic(int places, int per_node, int32_t *seat);

/* Packed: takes blocks of communicating places, largest first (ties in order), and puts each on the first
 * node with room for all of it. Blocks that fit on no node take the first free seats (first fit decreasing:
 * Johnson 1974). `member` holds the blocks' places one after another, `size` the size of each block. */
void hp_seats_pack(int per_node, const int32_t *member, const int32_t *size, int n_block, int32_t *seat);

/* Does every place have its own seat? */
bool hp_seats_are_plain(int places, const int32_t *seat);

#endif
