/* network.h - which NICs a device sends through, and the leaf switches of these NICs.
 *
 * A node's devices share its NICs, or each sends through those near it. In the latter case, K NICs of G
 * devices form gcd(K, G) sets, the first set for the first devices (NCCL and UCX take the NIC nearest on
 * PCIe; a DGX A100 has its NICs under its GPUs' switches: "Validate PCI Switch System Topology", NVIDIA AI
 * Enterprise). With rails, the NICs number i of all nodes share a leaf switch ("InfiniBand Cluster Bring-up
 * Procedure", NVIDIA 2024: rail-optimized). */
#ifndef HP_NETWORK_H
#define HP_NETWORK_H

#include "machines/machine.h"

/* Number of NIC sets of a node, each used by an equal number of devices. */
int hp_network_sets(const hp_machine *m);
/* Set of a device, numbered node by node, among those of its node. */
static inline int hp_network_set_at(const hp_machine *m, int device) {
    return (int)((int64_t)(device % m->devices_per_node) * hp_network_sets(m) / m->devices_per_node);
}
/* Number of NICs that this many devices of a node reach, if they are as far apart as possible. */
double hp_network_nics(const hp_machine *m, int devices);

/* Number of nodes per leaf switch; 1 if unknown. */
static inline int hp_network_leaf_nodes(const hp_machine *m) {
    return m->leaf > 0 ? m->leaf : 1;
}
/* Uplinks of a leaf switch, in units of NICs. */
double hp_network_leaf_links(const hp_machine *m);
/* Index of the leaf switch to which a device's NICs are connected. */
int hp_network_leaf_at(const hp_machine *m, int device);
/* Relation of two devices: NICs on the same rail, nodes at the same leaf switches. */
enum { HP_NETWORK_RAIL = 1, HP_NETWORK_LEAVES = 2 };
unsigned hp_network_meet(const hp_machine *m, int a, int b);
/* Nodes per fully used leaf switch, for the usual switches of the link. */
int hp_network_usual_leaf(const hp_machine *m);

#endif
