/* oom.h - was a process killed for lack of memory? The kernel counts that per control group and for the
 * node. */
#ifndef HP_OOM_H
#define HP_OOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct oom_count {
    int64_t group, node; /* processes killed so far; -1: not counted */
} oom_count;
oom_count oom_count_read(void);

/* Reason why a process of this node was killed since `before`, as the end of a message; `needs`: the run's
 * memory needs. */
const char *oom_words(const oom_count *before, const char *needs, char *out, size_t size);

#endif
