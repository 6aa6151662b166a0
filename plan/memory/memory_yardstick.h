/* memory_yardstick.h - memory of the host that each rank of a run has beside its arena: the buffers of the kernels that sample
 * the machine's speed (exec/yardstick/). Programs do not hold it; a node's memory must. */
#ifndef HP_MEMORY_YARDSTICK_H
#define HP_MEMORY_YARDSTICK_H

enum {
    HP_YARDSTICK_NEAR_BYTES = 256 << 10, /* read from the second-level cache: fits it on current processors */
    HP_YARDSTICK_FAR_BYTES = 512 << 10,  /* read from memory */
    HP_YARDSTICK_BYTES = HP_YARDSTICK_NEAR_BYTES + HP_YARDSTICK_FAR_BYTES
};

#endif
