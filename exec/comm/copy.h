/* copy.h - copies from a peer's memory: asynchronous where memory has streams, else synchronous. */
#ifndef HP_COPY_H
#define HP_COPY_H

#include "exec/base/exec_memory.h"

/* Creates the event that signals a copy's completion, once; *event keeps it. NULL for
 * memory without streams. */
hp_status hp_copy_event(const hp_memory *m, hp_event **event, hp_error *err);
void hp_copy_event_free(const hp_memory *m, hp_event *event);
hp_status hp_copy_start(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_event *event,
                        hp_error *err);
/* Never blocks. */
hp_status hp_copy_done(const hp_memory *m, hp_event *event, bool *yes, hp_error *err);

#endif
