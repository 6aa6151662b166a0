/* lower_lanes.c - writes the joint order of all ranks into each role: task numbers, and what lanes wait
 * for. */
#include "plan/program/lanes.h"

#include "plan/lower/lanes_order.h"
#include "plan/check/check.h"

#include <stdlib.h>
#include <string.h>

bool hp_has_lanes(const hp_program *p) {
    for (int r = 0; r < p->n_role; r++)
        for (int q = 1; q < p->role[r].n_queue; q++)
            if (hp_lane_stream_of(&p->role[r].queue[q]) >= 0) return true;
    return false;
}

typedef struct relay { /* a role being written anew */
    hp_arena *arena;   /* the program's */
    const hp_role *from;
    hp_role *to;
    const hp_lane_order *order;
    int32_t *now;     /* per old task: its new number */
    int32_t *stamp;   /* per new task: the last lane or task whose dependencies name it */
    int32_t dep_room; /* room of to->dep */
    struct {
        int32_t first, end;
    } before[HP_LANE_STREAMS]; /* the stream's lane before, as new tasks */
} relay;

static int ascending(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void wait_for(relay *r, int task, int on) {
    if (r->stamp[on] == task + 1) return;
    r->stamp[on] = task + 1;
    HP_ROOM(r->arena, r->to->dep, r->to->n_dep, r->dep_room);
    r->to->dep[r->to->n_dep++] = on;
}

static void sort_from(relay *r, int first) {
    qsort(r->to->dep + first, (size_t)(r->to->n_dep - first), sizeof *r->to->dep, ascending);
}

/* --- a task by itself --- */

static void write_task(relay *r, int task) {
    const int old = r->order->task[task], first = r->to->dep_first[task] = r->to->n_dep;
    r->to->task[task] = r->from->task[old];
    for (int i = r->from->dep_first[old]; i < r->from->dep_first[old + 1]; i++)
        wait_for(r, task, r->now[r->from->dep[i]]);
    sort_from(r, first);
}

/* --- a lane --- */

/* A lane waits only for the last compute task among its dependencies, as compute tasks run in order. Host and
 * device are counted apart: an output fetched by the host does not show that the device is done. */
static void wait_for_members(relay *r, int first, int end) {
    int compute[2] = {-1, -1}; /* last on the device, last on the host */
    for (int task = first; task < end; task++) {
        const int old = r->order->task[task];
        for (int i = r->from->dep_first[old]; i < r->from->dep_first[old + 1]; i++) {
            const int on = r->now[r->from->dep[i]];
            const hp_task *t = &r->from->task[r->from->dep[i]];
            int *last = &compute[hp_task_on_host(t->op)];
            if (t->queue != 0)
                wait_for(r, first, on);
            else if (on > *last)
                *last = on;
        }
    }
    for (int i = 0; i < 2; i++)
        if (compute[i] >= 0) wait_for(r, first, compute[i]);
}

/* Members first .. end - 1: the dependencies of all of them, and the lane before. */
static void write_lane(relay *r, int first, int end, int stream) {
    const int at = r->to->n_dep;
    wait_for_members(r, first, end);
    for (int t = r->before[stream].first; t < r->before[stream].end; t++) wait_for(r, first, t);
    sort_from(r, at);
    const int n = r->to->n_dep - at;
    for (int task = first; task < end; task++) {
        r->to->task[task] = r->from->task[r->order->task[task]];
        r->to->dep_first[task] = task == first ? at : r->to->n_dep;
        for (int i = 0; i < n && task > first; i++) wait_for(r, task, r->to->dep[at + i]);
    }
    r->before[stream].first = first;
    r->before[stream].end = end;
}

static int lane_end(const relay *r, int first) {
    const hp_lane_order *o = r->order;
    int end = first + 1;
    while (end < o->n && o->lane[o->task[end]] == o->lane[o->task[first]]) end++;
    return end;
}

static void write_tasks(relay *r) {
    for (int task = 0; task < r->order->n;) {
        const int old = r->order->task[task];
        if (r->order->lane[old] < 0) {
            write_task(r, task++);
            continue;
        }
        const int end = lane_end(r, task);
        write_lane(r, task, end, hp_lane_stream_of(&r->from->queue[r->from->task[old].queue]));
        task = end;
    }
    r->to->dep_first[r->to->n_task] = r->to->n_dep;
}

/* --- the role --- */

/* Lifetimes in the new numbers: what shares memory is ordered by dependencies, so it stays apart. */
static void renumber_buffers(relay *r) {
    hp_role *to = r->to;
    for (int b = 0; b < to->n_buffer; b++)
        if (to->buffer[b].first > 0 || to->buffer[b].last < to->n_task)
            to->buffer[b].first = to->buffer[b].last = -1;
    for (int t = 0; t < to->n_task; t++) {
        int32_t used[HP_MAX_USES];
        for (int n = hp_task_uses(to, t, used); n-- > 0;) {
            hp_buffer *b = &to->buffer[used[n]];
            if (b->first < 0) b->first = t;
            if (b->last < t) b->last = t;
        }
    }
}

static void write_role(hp_arena *arena, hp_arena *scratch, hp_role *role, const hp_lane_order *order) {
    const hp_role from = *role;
    relay r = {.arena = arena, .from = &from, .to = role, .order = order};
    r.now = HP_NEW(scratch, int32_t, from.n_task);
    r.stamp = HP_NEW(scratch, int32_t, from.n_task);
    for (int t = 0; t < from.n_task; t++) r.now[order->task[t]] = t;
    role->task = HP_NEW(arena, hp_task, from.n_task);
    role->dep_first = HP_NEW(arena, int32_t, from.n_task + 1);
    role->dep = HP_NEW(arena, int32_t, r.dep_room = from.n_dep + 1);
    role->n_dep = 0;
    write_tasks(&r);
    renumber_buffers(&r);
}

hp_status hp_lanes(hp_arena *arena, hp_program *p, const hp_graph *g, hp_error *err) {
    if (!hp_has_lanes(p)) return HP_OK;
    hp_arena *scratch = hp_arena_new();
    const hp_wiring *w = hp_wiring_new(scratch, p);
    const hp_lane_order *order = hp_lanes_order(scratch, w, g);
    const hp_status s = order ? HP_OK : hp_check_waits(w, g, err); /* it names the circle */
    HP_ASSERT(order || s != HP_OK);
    for (int r = 0; order && r < p->n_role; r++) write_role(arena, scratch, &p->role[r], &order[r]);
    hp_arena_free(scratch);
    return s;
}
