/* process.h - what the kernel tells about a process of this node: whether it runs, and whether a process id
 * still means the same process. */
#ifndef HP_PROCESS_H
#define HP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_process_state {
    HP_PROCESS_GONE,
    HP_PROCESS_RUNS,    /* one of its threads computes, or is ready to */
    HP_PROCESS_SLEEPS,  /* waits for a message, a file's bytes */
    HP_PROCESS_DISK,    /* one of its threads waits in the kernel for a disk or file system, and
                         * cannot take signals */
    HP_PROCESS_STOPPED, /* stopped by SIGSTOP, a suspended job, or a debugger */
    HP_PROCESS_STATES
} hp_process_state;

/* State of a process, over its threads and the processes that decode its images (exec/data/image/decoder.h),
 * for which it waits. */
hp_process_state hp_process_state_of(int32_t pid);

/* Name of a decoding process. */
#define HP_DECODER_NAME "hplan-decode"
bool hp_process_decodes(int32_t pid);

/* Start time, in ticks since the node booted; it distinguishes the process from a later one with the same
 * id. 0: there is none. */
uint64_t hp_process_begin(int32_t pid);

#endif
