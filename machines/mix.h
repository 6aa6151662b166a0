/* mix.h - devices that differ: classes within a node, kinds of nodes, and places slower than their class. */
#ifndef HP_MIX_H
#define HP_MIX_H

#include "machines/device_class.h"

enum { HP_MORE_CLASSES = 7, HP_NODE_KINDS = 4, HP_NODE_PARTS = 4, HP_SLOW_PLACES = 16 };

/* A run of a node's devices with the same class. */
typedef struct hp_node_part {
    int32_t class, count;
} hp_node_part;

/* Consecutive nodes with the same devices. */
typedef struct hp_node_kind {
    int32_t nodes, n_part;
    hp_node_part part[HP_NODE_PARTS];
} hp_node_kind;

/* A device of a node, or all of them (-1), that runs at a fraction (0, 1] of its class's speed. */
typedef struct hp_slow_place {
    int32_t node, device;
    double speed;
} hp_slow_place;

typedef struct hp_mix {
    int32_t n_class, n_kind, n_slow;
    hp_device_class class[HP_MORE_CLASSES]; /* classes 1 .. n_class */
    hp_node_kind kind[HP_NODE_KINDS];       /* no kinds if n_class is 0 */
    hp_slow_place slow[HP_SLOW_PLACES];
} hp_mix;

#endif
