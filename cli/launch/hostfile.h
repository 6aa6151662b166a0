/* hostfile.h - the nodes that a run is given: Open MPI's hostfile, else Slurm's allocation, else this node. */
#ifndef HP_HOSTFILE_H
#define HP_HOSTFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct given_nodes {
    int nodes;
    int slots;      /* over all nodes; 0: not said */
    int most_slots; /* of one node; 0: not said */
    bool here;      /* this node is one of them, so that what it offers counts */
} given_nodes;

/* path: NULL without a hostfile. Errors: HP_EDATA. */
hp_status given_nodes_read(const char *path, given_nodes *given, hp_error *err);

/* Is that a name or an address of this node? */
bool given_node_is_here(const char *name);

/* The name of a hostfile's node of that number; false: it has none. */
bool given_nodes_name(const char *path, int number, char *name, size_t n);

/* Writes a line for each rank, the name of its node (Open MPI's --map-by seq, Slurm's SLURM_HOSTFILE): the nodes are
 * those of the hostfile in turn, node_of numbers them. Errors: HP_EDATA, HP_EIO. */
hp_status given_nodes_deal(const char *hostfile, const int32_t *node_of, int ranks, const char *out,
                           hp_error *err);

/* So many of `ranks` lie on one node, at most: mpirun fills slots node by node and deals what is left evenly. Where the
 * file does not say slots, they are the nodes' cores, so that an even share finds too many exactly where there are. */
int given_nodes_fullest(const given_nodes *given, int ranks);

#endif
