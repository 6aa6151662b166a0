/* network.h - which NICs a device sends through, and which leaf switches these are at.
 *
 * A node's NICs are shared by its devices, or each device sends through those near to it: K NICs of G devices fall into
 * gcd(K, G) sets, the first set for the first devices (NCCL and UCX take the NIC nearest on PCIe; a DGX A100 has its NICs under its GPUs' switches: "Validate PCI Switch System
 * Topology", NVIDIA AI Enterprise). Rails: NIC i of all nodes is at a leaf switch with each
 * other's ("InfiniBand Cluster Bring-up Procedure", NVIDIA 2024: rail-optimized). */
#ifndef HP_NETWORK_H
#define HP_NETWORK_H

#include "machines/machine.h"

/* Sets into which the NICs of a node fall, and the devices that send through them. */
int hp_network_sets(const hp_machine *m);
/* Of a device, numbered node by node: its set, of the node's. */
static inline int hp_network_set_at(const hp_machine *m, int device) {
    return (int)((int64_t)(device % m->devices_per_node) * hp_network_sets(m) / m->devices_per_node);
}
/* NICs that so many devices of a node reach, which lie as far apart as they can. */
double hp_network_nics(const hp_machine *m, int devices);

/* Nodes under a leaf switch; 1 where nothing is known of it. */
static inline int hp_network_leaf_nodes(const hp_machine *m) {
    return m->leaf > 0 ? m->leaf : 1;
}
/* NICs' worth of links that go up from a leaf switch. */
double hp_network_leaf_links(const hp_machine *m);
/* The number of the leaf switch that a device's NICs are at. */
int hp_network_leaf_at(const hp_machine *m, int device);
/* Of two devices: are their NICs on one rail, are their nodes at the same leaf switches? */
enum { HP_NETWORK_RAIL = 1, HP_NETWORK_LEAVES = 2 };
unsigned hp_network_meet(const hp_machine *m, int a, int b);
/* Nodes that a leaf switch takes whose ports are all used: the switches that are usual for the link. */
int hp_network_usual_leaf(const hp_machine *m);

#endif
