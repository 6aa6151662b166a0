/* events.c - binary heap: within a factor of two of every fancier queue at the tens to hundreds of events
 * that are pending here, and the simplest to prove. */
#include "sim/events.h"

void hp_events_init(hp_events *q, hp_arena *arena) {
    *q = (hp_events){.arena = arena};
}

static bool before(const hp_event *a, const hp_event *b) {
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->seq < b->seq;
}

void hp_events_push(hp_events *q, int64_t t_ns, int32_t what, uint32_t age) {
    HP_ROOM(q->arena, q->heap, q->n, q->capacity);
    const hp_event e = {.t_ns = t_ns, .seq = q->next_seq++, .what = what, .age = age};
    int i = q->n++;
    while (i > 0 && before(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
}

bool hp_events_pop(hp_events *q, hp_event *e) {
    if (q->n == 0) return false;
    *e = q->heap[0];
    const hp_event last = q->heap[--q->n];
    int i = 0;
    for (int child = 1; child < q->n; child = 2 * i + 1) {
        if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child])) child++;
        if (!before(&q->heap[child], &last)) break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
    return true;
}
