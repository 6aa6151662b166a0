/* memory_yardstick.h - host memory of each rank beyond its arena: the buffers of the kernels that sample the
 * machine's speed (exec/yardstick/). Programs do not contain them, but a node's memory must hold them. */
#ifndef HP_MEMORY_YARDSTICK_H
#define HP_MEMORY_YARDSTICK_H

enum {
    HP_YARDSTICK_NEAR_BYTES = 256 << 10, /* read from L2: fits the L2 cache of current processors */
    HP_YARDSTICK_FAR_BYTES = 512 << 10,  /* read from memory */
    HP_YARDSTICK_BYTES = HP_YARDSTICK_NEAR_BYTES + HP_YARDSTICK_FAR_BYTES
};

#endif
