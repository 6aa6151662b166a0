/* gpu_nccl.h - the times that NCCL's own tuner expects of its collectives: the fastest of ring and tree in
 * each of its protocols (LL, LL128, Simple), and of sums inside NVSwitches (NVLS). The constants are those of
 * NCCL 2.30, src/graph/tuning.cc; they change between releases. */
#ifndef HP_GPU_NCCL_H
#define HP_GPU_NCCL_H

#include <stdbool.h>

typedef enum hp_nccl_chip { HP_NCCL_VOLTA, HP_NCCL_AMPERE, HP_NCCL_HOPPER, HP_NCCL_CHIPS } hp_nccl_chip;

/* Counted in passes of the whole data around a ring. */
typedef enum hp_nccl_what {
    HP_NCCL_ALLREDUCE,
    HP_NCCL_HALF /* all-gather, reduce-scatter */,
    HP_NCCL_ROOTED,
    HP_NCCL_ALL_TO_ALL /* sends and receives of all pairs, which its tuner does not choose for */
} hp_nccl_what;

typedef struct hp_nccl_net {
    int ranks, per_node; /* per_node >= ranks: one node */
    hp_nccl_chip chip;
    bool nvlink;              /* NVLink within a node; otherwise PCIe */
    bool sharp;               /* network switches sum data in transit */
    bool nvswitch;            /* NVSwitch within a node; Hopper's sums data in transit */
    double intra_bytes_per_s; /* from a device to the others of its node, one direction */
    double net_bytes_per_s;   /* over all NICs of a node */
} hp_nccl_net;

/* NVLS: the switches of a single node sum. NVLS tree: those of each node, and a tree of the nodes. CollNet:
 * chains within the nodes, and network switches sum. */
typedef enum hp_nccl_way {
    HP_NCCL_RING,
    HP_NCCL_TREE,
    HP_NCCL_NVLS,
    HP_NCCL_NVLS_TREE,
    HP_NCCL_COLLNET,
    HP_NCCL_PAIRS,
    HP_NCCL_WAYS
} hp_nccl_way;

typedef struct hp_nccl_choice {
    double seconds;
    hp_nccl_way way;
    int protocol; /* 0 LL, 1 LL128, 2 Simple */
} hp_nccl_choice;

/* bytes: whole data. Needs at least two ranks. */
hp_nccl_choice hp_nccl_choose(hp_nccl_what what, const hp_nccl_net *n, double bytes);

#endif
