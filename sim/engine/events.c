/* events.c - binary heap. With the tens to hundreds of pending events here, it is within a factor of two of
 * every fancier queue, and the simplest to prove. */
#include "sim/engine/events.h"

typedef struct hp_event_instant {
    int64_t t_ns;
    uint64_t seq;  /* order of insertion: breaks ties */
    int32_t first; /* its events */
} hp_event_instant;

typedef struct hp_event_link {
    int32_t what, next; /* next: -1 none */
    uint32_t age;
} hp_event_link;

void hp_events_init(hp_events *q, hp_arena *arena) {
    *q = (hp_events){.arena = arena, .free_link = -1, .newest = -1};
}

static bool before(const hp_event_instant *a, const hp_event_instant *b) {
    return a->t_ns != b->t_ns ? a->t_ns < b->t_ns : a->seq < b->seq;
}

static void push_instant(hp_events *q, int64_t t_ns, int32_t first) {
    HP_ROOM(q->arena, q->heap, q->n, q->capacity);
    const hp_event_instant e = {.t_ns = t_ns, .seq = q->next_seq++, .first = first};
    int i = q->n++;
    while (i > 0 && before(&e, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = e;
}

static int32_t take_link(hp_events *q) {
    const int32_t id = q->free_link;
    if (id < 0) {
        HP_ROOM(q->arena, q->link, q->n_link, q->link_capacity);
        return q->n_link++;
    }
    q->free_link = q->link[id].next;
    return id;
}

void hp_events_push(hp_events *q, int64_t t_ns, int32_t what, uint32_t age) {
    const int32_t id = take_link(q);
    q->link[id] = (hp_event_link){.what = what, .next = -1, .age = age};
    if (q->newest >= 0 && q->newest_ns == t_ns)
        q->link[q->newest].next = id;
    else
        push_instant(q, t_ns, id);
    q->newest = id;
    q->newest_ns = t_ns;
}

int64_t hp_events_next_ns(const hp_events *q) {
    return q->n > 0 ? q->heap[0].t_ns : INT64_MAX;
}

static void pop_instant(hp_events *q) {
    const hp_event_instant last = q->heap[--q->n];
    int i = 0;
    for (int child = 1; child < q->n; child = 2 * i + 1) {
        if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child])) child++;
        if (!before(&q->heap[child], &last)) break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
}

bool hp_events_pop(hp_events *q, hp_event *e) {
    if (q->n == 0) return false;
    const int32_t id = q->heap[0].first;
    hp_event_link *l = &q->link[id];
    *e = (hp_event){.t_ns = q->heap[0].t_ns, .what = l->what, .age = l->age};
    q->heap[0].first = l->next;
    if (l->next < 0) pop_instant(q);
    if (q->newest == id) q->newest = -1;
    l->next = q->free_link;
    q->free_link = id;
    return true;
}

void hp_events_delay(hp_events *q, int64_t ns) {
    for (int i = 0; i < q->n; i++) q->heap[i].t_ns += ns;
    q->newest_ns += ns;
}
