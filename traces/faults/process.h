/* process.h - what the kernel says of a process of this node: whether it runs, and whether a number is still the same process. */
#ifndef HP_PROCESS_H
#define HP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hp_process_state {
    HP_PROCESS_GONE,
    HP_PROCESS_RUNS,   /* a thread of it computes, or would */
    HP_PROCESS_SLEEPS, /* until something comes: a message, a file's bytes */
    HP_PROCESS_DISK, /* a thread of it waits in the kernel for a disk or file system, and can take no signal */
    HP_PROCESS_STOPPED, /* by SIGSTOP, a suspended job, or a debugger */
    HP_PROCESS_STATES
} hp_process_state;

/* Of its threads, and of the processes that decode its images (exec/data/image/decoder.h), which it waits for. */
hp_process_state hp_process_state_of(int32_t pid);

/* What such a process is called. */
#define HP_DECODER_NAME "hplan-decode"
bool hp_process_decodes(int32_t pid);

/* When it began, in ticks since the node did: with the number that tells it from a later process of the same number.
 * 0: there is none. */
uint64_t hp_process_begin(int32_t pid);

#endif
