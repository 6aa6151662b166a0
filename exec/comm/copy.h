/* copy.h - copies from a peer's memory: work of the device where memory has streams, done at once where it has none. */
#ifndef HP_COPY_H
#define HP_COPY_H

#include "exec/base/exec_memory.h"

/* What a copy is waited for by; NULL of memory without streams. Made once, kept by *event. */
hp_status hp_copy_event(const hp_memory *m, hp_event **event, hp_error *err);
void hp_copy_event_free(const hp_memory *m, hp_event *event);
hp_status hp_copy_start(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_event *event,
                        hp_error *err);
/* Never blocks. */
hp_status hp_copy_done(const hp_memory *m, hp_event *event, bool *yes, hp_error *err);

#endif
