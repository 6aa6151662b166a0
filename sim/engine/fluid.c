/* fluid.c - bookkeeping around share.c: who uses which resource, what is left, and what ends next. */
#include "sim/engine/fluid.h"

#include <math.h>
#include <stdlib.h>

typedef struct activity {
    const hp_share_use *use;
    int64_t owner, since_ns, then_ns; /* then: work after the current latency, */
    double left_ns, rate;
    int32_t n_use, n_then, next_free; /* and its uses; 0: not in a latency */
    uint32_t age;
    bool active, seen;
} activity;

typedef struct user_list {
    int32_t *id; /* activities that use the resource */
    int n, capacity;
    double load;       /* sum of their demands at rate 1 */
    const double *has; /* capacity by number of users; NULL: constant */
    int32_t local;     /* its index within the component; -1: outside */
    bool stale;        /* its users' rates are outdated */
} user_list;

/* The resources and activities that are being solved. */
typedef struct component {
    int32_t *member, *touched, *use_first, *index;
    hp_share_use *use;
    double *rate, *local_capacity, *work;
    int n_member, member_capacity, n_touched, touched_capacity, n_use, use_capacity, first_capacity,
        rate_capacity, index_capacity;
} component;

struct hp_fluid {
    hp_arena *arena;
    hp_events *events;
    const double *capacity;
    activity *act;
    user_list *users;
    int n_act, act_capacity, first_free;
    int32_t *stale; /* resources around which rates must be solved again */
    int n_stale, stale_capacity;
    hp_activity_state *state;
    int state_capacity;
    component part;
};

hp_fluid *hp_fluid_new(hp_arena *arena, int n_resource, const double *capacity, hp_events *events) {
    hp_fluid *f = HP_NEW(arena, hp_fluid, 1);
    f->arena = arena;
    f->events = events;
    f->capacity = capacity;
    f->users = HP_NEW(arena, user_list, n_resource > 0 ? n_resource : 1);
    for (int r = 0; r < n_resource; r++) f->users[r].local = -1;
    f->part.local_capacity = HP_NEW(arena, double, n_resource > 0 ? n_resource : 1);
    f->part.work = HP_NEW(arena, double, n_resource > 0 ? 2 * n_resource : 1);
    f->first_free = -1;
    return f;
}

void hp_fluid_capacities(hp_fluid *f, int resource, const double *has) {
    f->users[resource].has = has;
}

static double capacity_of(const hp_fluid *f, int32_t resource) {
    const user_list *u = &f->users[resource];
    return u->has && u->n > 0 ? u->has[u->n] : f->capacity[resource];
}

static void schedule(hp_fluid *f, int32_t id, int64_t now_ns) {
    activity *a = &f->act[id];
    a->age++;
    if (a->rate <= 0) return; /* starved; a later change gives it a rate */
    const double ns = a->left_ns > 0 ? ceil(a->left_ns / a->rate - 1e-6) : 0; /* 1e-6: rounding of left_ns */
    hp_events_push(f->events, now_ns + (int64_t)ns, id, a->age);
}

/* Does the demand on the resource exceed its capacity? If not, it limits no activity. */
static bool overloaded(const hp_fluid *f, int32_t resource) {
    return f->users[resource].load > capacity_of(f, resource) * (1 + 1e-9);
}

static bool contended(const hp_fluid *f, const activity *a) {
    for (int i = 0; i < a->n_use; i++)
        if (overloaded(f, a->use[i].resource)) return true;
    return false;
}

static void mark_stale(hp_fluid *f, const activity *a) {
    for (int i = 0; i < a->n_use; i++) {
        user_list *u = &f->users[a->use[i].resource];
        if (u->stale) continue;
        u->stale = true;
        HP_ROOM(f->arena, f->stale, f->n_stale, f->stale_capacity);
        f->stale[f->n_stale++] = a->use[i].resource;
    }
}

static void touch(hp_fluid *f, int32_t resource) {
    user_list *u = &f->users[resource];
    if (u->local >= 0) return;
    u->local = f->part.n_touched;
    f->part.local_capacity[f->part.n_touched] = capacity_of(f, resource);
    HP_ROOM(f->arena, f->part.touched, f->part.n_touched, f->part.touched_capacity);
    f->part.touched[f->part.n_touched++] = resource;
}

/* Collects members and resources reachable from a resource, breadth first, through overloaded resources. */
static void find_component(hp_fluid *f, int32_t resource) {
    f->part.n_member = f->part.n_touched = f->part.n_use = 0;
    touch(f, resource);
    for (int t = 0; t < f->part.n_touched; t++) {
        user_list *u = &f->users[f->part.touched[t]];
        u->stale = false;
        for (int k = 0; k < u->n; k++) {
            activity *a = &f->act[u->id[k]];
            if (a->seen) continue;
            a->seen = true;
            HP_ROOM(f->arena, f->part.member, f->part.n_member, f->part.member_capacity);
            f->part.member[f->part.n_member++] = u->id[k];
            for (int i = 0; i < a->n_use; i++)
                if (overloaded(f, a->use[i].resource)) touch(f, a->use[i].resource);
        }
    }
}

static void fill_problem(hp_fluid *f) {
    for (int m = 0; m <= f->part.n_member; m++) {
        HP_ROOM(f->arena, f->part.use_first, m, f->part.first_capacity);
        HP_ROOM(f->arena, f->part.rate, m, f->part.rate_capacity);
        f->part.use_first[m] = f->part.n_use;
        if (m == f->part.n_member) break;
        const activity *a = &f->act[f->part.member[m]];
        for (int i = 0; i < a->n_use; i++) {
            const int32_t local = f->users[a->use[i].resource].local;
            if (local < 0) continue;
            HP_ROOM(f->arena, f->part.use, f->part.n_use, f->part.use_capacity);
            f->part.use[f->part.n_use++] = (hp_share_use){local, a->use[i].demand};
        }
    }
}

static void apply_rates(hp_fluid *f, int64_t now_ns) {
    for (int m = 0; m < f->part.n_member; m++) {
        activity *a = &f->act[f->part.member[m]];
        a->seen = false;
        if (a->rate == f->part.rate[m]) continue; // NOLINT: equal rates need no new event
        if (a->rate > 0) a->left_ns = fmax(0, a->left_ns - a->rate * (double)(now_ns - a->since_ns));
        a->since_ns = now_ns;
        a->rate = f->part.rate[m];
        schedule(f, f->part.member[m], now_ns);
    }
    for (int t = 0; t < f->part.n_touched; t++) f->users[f->part.touched[t]].local = -1;
}

static void solve_around(hp_fluid *f, int32_t resource, int64_t now_ns) {
    find_component(f, resource);
    fill_problem(f);
    const hp_share_problem p = {.n_activity = f->part.n_member,
                                .n_resource = f->part.n_touched,
                                .use_first = f->part.use_first,
                                .use = f->part.use,
                                .capacity = f->part.local_capacity};
    while (f->part.index_capacity < hp_share_indices(&p))
        HP_ROOM(f->arena, f->part.index, f->part.index_capacity, f->part.index_capacity);
    hp_share_solve(&p, f->part.work, f->part.index, f->part.rate);
    apply_rates(f, now_ns);
}

void hp_fluid_settle(hp_fluid *f, int64_t now_ns) {
    for (int i = 0; i < f->n_stale; i++)
        if (f->users[f->stale[i]].stale) solve_around(f, f->stale[i], now_ns);
    f->n_stale = 0;
}

static int32_t take_slot(hp_fluid *f) {
    if (f->first_free < 0) {
        HP_ROOM(f->arena, f->act, f->n_act, f->act_capacity);
        f->act[f->n_act] = (activity){.next_free = -1};
        return f->n_act++;
    }
    const int32_t id = f->first_free;
    f->first_free = f->act[id].next_free;
    return id;
}

/* Begins its work, or its latency, which uses nothing. */
static void begin(hp_fluid *f, int32_t id, int64_t now_ns, int64_t work_ns) {
    activity *a = &f->act[id];
    a->since_ns = now_ns;
    a->left_ns = (double)work_ns;
    a->rate = 0;
    for (int i = 0; i < a->n_use; i++) {
        user_list *u = &f->users[a->use[i].resource];
        HP_ROOM(f->arena, u->id, u->n, u->capacity);
        u->id[u->n++] = id;
        u->load += a->use[i].demand;
    }
    if (contended(f, a)) {
        mark_stale(f, a); /* it stands still until rates are solved */
    } else {
        a->rate = 1;
        hp_events_push(f->events, now_ns + work_ns, id, ++a->age);
    }
}

void hp_fluid_start(hp_fluid *f, int64_t now_ns, int64_t latency_ns, int64_t work_ns, int n_use,
                    const hp_share_use *use, int64_t owner) {
    const int32_t id = take_slot(f);
    const bool waits = latency_ns > 0 && n_use > 0;
    f->act[id] = (activity){.use = use,
                            .n_use = waits ? 0 : n_use,
                            .n_then = waits ? n_use : 0,
                            .then_ns = waits ? work_ns : 0,
                            .owner = owner,
                            .age = f->act[id].age,
                            .active = true};
    begin(f, id, now_ns, waits ? latency_ns : latency_ns + work_ns);
}

static void forget(hp_fluid *f, int32_t id) {
    activity *a = &f->act[id];
    for (int i = 0; i < a->n_use; i++) {
        user_list *u = &f->users[a->use[i].resource];
        int k = 0;
        while (u->id[k] != id) k++;
        for (u->n--; k < u->n; k++) u->id[k] = u->id[k + 1];
        u->load = u->n > 0 ? u->load - a->use[i].demand : 0; /* stops rounding errors from accumulating */
    }
    a->active = false;
    a->age++;
    a->next_free = f->first_free;
    f->first_free = id;
}

bool hp_fluid_end(hp_fluid *f, const hp_event *e, int64_t *owner) {
    activity *a = &f->act[e->what];
    if (!a->active || a->age != e->age) return false;
    if (a->n_then > 0) {
        const int64_t work_ns = a->then_ns;
        a->n_use = a->n_then;
        a->n_then = 0;
        a->then_ns = 0;
        begin(f, e->what, e->t_ns, work_ns);
        return false;
    }
    *owner = a->owner;
    if (contended(f, a)) mark_stale(f, a);
    forget(f, e->what);
    return true;
}

static int compare_owners(const void *a, const void *b) {
    const hp_activity_state *x = a, *y = b;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

int hp_fluid_state(hp_fluid *f, int64_t now_ns, hp_activity_state **state) {
    int n = 0;
    for (int i = 0; i < f->n_act; i++) {
        const activity *a = &f->act[i];
        if (!a->active) continue;
        HP_ROOM(f->arena, f->state, n, f->state_capacity);
        f->state[n++] = (hp_activity_state){a->owner, now_ns - a->since_ns, a->then_ns, a->left_ns, a->rate};
    }
    if (n > 1) qsort(f->state, (size_t)n, sizeof *f->state, compare_owners);
    *state = f->state;
    return n;
}

void hp_fluid_delay(hp_fluid *f, int64_t ns) {
    for (int i = 0; i < f->n_act; i++) f->act[i].since_ns += ns;
}
