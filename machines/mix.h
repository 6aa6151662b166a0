/* mix.h - devices that are not all alike: classes of them within a node, kinds of nodes, and places that are slower than
 * their class. */
#ifndef HP_MIX_H
#define HP_MIX_H

#include "machines/device_class.h"

enum { HP_MORE_CLASSES = 7, HP_NODE_KINDS = 4, HP_NODE_PARTS = 4, HP_SLOW_PLACES = 16 };

/* Of a node's devices, in their order, so many of a class. */
typedef struct hp_node_part {
    int32_t class, count;
} hp_node_part;

/* Nodes that follow one another and have the same devices. */
typedef struct hp_node_kind {
    int32_t nodes, n_part;
    hp_node_part part[HP_NODE_PARTS];
} hp_node_kind;

/* A device of a node, or all of them (-1), that works at a share of its class's speed, above 0, at most 1. */
typedef struct hp_slow_place {
    int32_t node, device;
    double speed;
} hp_slow_place;

typedef struct hp_mix {
    int32_t n_class, n_kind, n_slow;
    hp_device_class class[HP_MORE_CLASSES]; /* classes 1 .. n_class */
    hp_node_kind kind[HP_NODE_KINDS];       /* none where n_class is 0 */
    hp_slow_place slow[HP_SLOW_PLACES];
} hp_mix;

#endif
