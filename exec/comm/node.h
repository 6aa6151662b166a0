/* node.h - which ranks share a node. */
#ifndef HP_NODE_H
#define HP_NODE_H

#include <stdint.h>

/* Identifies the node as NCCL does: host name and boot id. */
uint64_t hp_node_id(void);

#endif
