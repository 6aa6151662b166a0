/* hostfile.h - the nodes available to a run: Open MPI's hostfile, otherwise Slurm's allocation, otherwise
 * this node. */
#ifndef HP_HOSTFILE_H
#define HP_HOSTFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct given_nodes {
    int nodes;
    int slots;      /* total over all nodes; 0: unspecified */
    int most_slots; /* largest number on one node; 0: unspecified */
    bool here;      /* this node is one of them, so its resources count */
} given_nodes;

/* path: NULL without a hostfile. Errors: HP_EDATA. */
hp_status given_nodes_read(const char *path, given_nodes *given, hp_error *err);

/* Is `name` a name or an address of this node? */
bool given_node_is_here(const char *name);

/* Name of node `number` in a hostfile; false if it does not exist. */
bool given_nodes_name(const char *path, int number, char *name, size_t n);

/* Writes one line per rank with its node's name (Open MPI's --map-by seq, Slurm's SLURM_HOSTFILE). node_of
 * numbers the hostfile's nodes in order. Errors: HP_EDATA, HP_EIO. */
hp_status given_nodes_deal(const char *hostfile, const int32_t *node_of, int ranks, const char *out,
                           hp_error *err);

/* Largest number of `ranks` on one node. mpirun fills slots node by node and distributes the rest evenly.
 * Without slots in the file, it uses the nodes' cores, so an even distribution exceeds them exactly if there
 * are too many ranks. */
int given_nodes_fullest(const given_nodes *given, int ranks);

#endif
