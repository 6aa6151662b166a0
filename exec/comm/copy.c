/* copy.c - copies from a peer's memory, with streams or without. */
#include "exec/comm/copy.h"

hp_status hp_copy_event(const hp_memory *m, hp_event **event, hp_error *err) {
    if (!m->ops->streams || *event) return HP_OK;
    return m->ops->streams->event_new(m, event, err);
}

void hp_copy_event_free(const hp_memory *m, hp_event *event) {
    if (event) m->ops->streams->event_free(m, event);
}

hp_status hp_copy_start(const hp_memory *m, void *to, const void *from, int64_t bytes, hp_event *event,
                        hp_error *err) {
    const hp_order order = {.done = event};
    if (!m->ops->streams) return bytes > 0 ? m->ops->put(m, to, from, bytes, err) : HP_OK;
    return m->ops->streams->copy(m, HP_STREAM_COPY, to, from, bytes, &order, err);
}

hp_status hp_copy_done(const hp_memory *m, hp_event *event, bool *yes, hp_error *err) {
    *yes = true;
    return m->ops->streams ? m->ops->streams->query(m, event, yes, err) : HP_OK;
}
