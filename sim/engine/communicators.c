/* communicators.c - before the clock starts: members and resource uses of each class of communicators. */
#include "sim/engine/state.h"

#include "machines/network.h"

#include <math.h>

static int world_rank(const sim *s, const hp_wired_group *g, int replica, int member) {
    return (replica + member / g->n) * s->program->n_role + g->role[member % g->n];
}

/* Scratch, all 0 between uses. */
typedef struct tally {
    int32_t *seen;  /* per class of ranks: its caller, + 1 */
    int32_t *on;    /* per place: communicators of a class with members there */
    int32_t *stamp; /* last communicator counted, + 1 */
    int32_t *here;  /* per place: members of a communicator */
    bool *taken;    /* per class of places */
} tally;

/* Members of a class post together, so they are one caller. */
static void list_callers(sim *s, communicator *c, const tally *t) {
    c->caller = HP_NEW(s->arena, caller, c->members < s->n_rank ? c->members : s->n_rank);
    for (int k = 0; k < c->members; k++) {
        const int rank = s->classes->of[world_rank(s, c->group, c->replica, k)];
        if (!t->seen[rank]) {
            c->caller[c->n_caller++] = (caller){rank, c->group->queue[k % c->group->n], 0};
            t->seen[rank] = c->n_caller;
        }
        c->caller[t->seen[rank] - 1].n++;
    }
    for (int i = 0; i < c->n_caller; i++) {
        const caller *at = &c->caller[i];
        s->rank[at->rank].calls[at->queue] = at->n;
        t->seen[at->rank] = 0;
    }
}

/* Uses of a communicator's collectives at a place: its number of members there, at most `most`, each with
 * `share`. */
typedef struct way {
    sim_resource_kind out, in;
    double share, most;
} way;

static int place_of(const sim *s, const communicator *c, int comm, int member, const way *w) {
    const int replica = comm - s->classes->world_comm[c->group - s->wiring->group];
    return s->classes->place[sim_place_of(w->out)].at[world_rank(s, c->group, replica, member)];
}

static void count_places(const sim *s, const communicator *c, int comm, const way *w, const tally *t,
                         bool on) {
    for (int m = 0; m < c->members; m++) {
        const int place = place_of(s, c, comm, m, w);
        if (!on) {
            t->on[place] = t->stamp[place] = 0;
        } else if (t->stamp[place] != comm + 1) {
            t->on[place]++;
            t->stamp[place] = comm + 1;
        }
    }
}

static void count_members(const sim *s, const communicator *c, int comm, const way *w, const tally *t,
                          bool on) {
    for (int m = 0; m < c->members; m++) {
        int32_t *here = &t->here[place_of(s, c, comm, m, w)];
        *here = on ? *here + 1 : 0;
    }
}

/* Both directions at every place where the communicator has members, once per class of places, plus others of
 * its class. */
static void use_places(sim *s, int like, communicator *c, const way *w, const tally *t) {
    const hp_classes *k = s->classes;
    const int32_t *class_of = k->place[sim_place_of(w->out)].class_of;
    for (int i = k->comm_first[like]; i < k->comm_first[like + 1]; i++)
        count_places(s, c, k->comm_member[i], w, t, true);
    const int first = k->comm_member[k->comm_first[like]];
    count_members(s, c, first, w, t, true);
    for (int m = 0; m < c->members; m++) {
        const int place = place_of(s, c, first, m, w), of = class_of[place];
        if (t->taken[of]) continue;
        t->taken[of] = true;
        const double demand = fmin(w->share * t->here[place], w->most) * t->on[place];
        c->use[c->n_use++] = (hp_share_use){sim_resource(s, w->out, of), demand};
        c->use[c->n_use++] = (hp_share_use){sim_resource(s, w->in, of), demand};
    }
    for (int m = 0; m < c->members; m++) t->taken[class_of[place_of(s, c, first, m, w)]] = false;
    count_members(s, c, first, w, t, false);
    for (int i = k->comm_first[like]; i < k->comm_first[like + 1]; i++)
        count_places(s, c, k->comm_member[i], w, t, false);
}

/* Does it have members at several leaf switches? */
static bool spans_leaves(const sim *s, const communicator *c) {
    const int32_t *at = s->classes->place[HP_PLACE_LEAF].at;
    for (int m = 1; m < c->members && at; m++)
        if (at[world_rank(s, c->group, c->replica, m)] != at[world_rank(s, c->group, c->replica, 0)])
            return true;
    return false;
}

/* Part of a node's outgoing traffic that leaves the leaf switch. For all-to-alls, it is all of it; other
 * traffic goes from node to node, so one node's worth leaves. The cost of a collective alone already includes
 * the limit of the links. */
static way way_by_leaf(const sim *s, const hp_task *first, int per_node) {
    const hp_machine *m = s->machine;
    const bool all = hp_task_collective(first) == HP_COLLECTIVE_ALL_TO_ALL;
    const double nics = fmin(per_node, hp_network_nics(m, per_node)), links = hp_network_leaf_links(m);
    return (way){RES_LEAF_UP, RES_LEAF_DOWN, nics / per_node, all ? links : fmin(nics, links)};
}

/* On every node it spans, a collective uses as many NICs as it has members there; within a node, its members'
 * links; through host memory, it copies all their data. */
static void communicator_uses(sim *s, int group, int like, communicator *c, const tally *t) {
    const hp_classes *k = s->classes;
    const int ranks = hp_group_size(s->program, group);
    if (s->on_cores || c->members == 0 || ranks == 1 || c->group->calls == 0) return;
    const int per_node = hp_group_per_node(s->program, s->machine, group, c->replica);
    const int most = 3 * (c->members < k->places ? c->members : k->places);
    c->use = HP_NEW(s->arena, hp_share_use, 2 * most);
    const hp_wired_role *w = &s->wiring->role[c->group->role[0]];
    const int queue = c->group->queue[0];
    const bool host = sim_by_host(s, &w->role->queue[queue]), one_node = per_node == ranks;
    const double nics = s->machine->nics_per_node > 0 ? s->machine->nics_per_node : 1;
    const way by_memory = {RES_HOST_OUT, RES_HOST_IN, 1, 1}, by_link = {RES_LINK_OUT, RES_LINK_IN, 1, 1},
              by_nic = {RES_NICS_OUT, RES_NICS_IN, 1, nics / hp_network_sets(s->machine)};
    if (host) use_places(s, like, c, &by_memory, t);
    if (!one_node)
        use_places(s, like, c, &by_nic, t);
    else if (!host)
        use_places(s, like, c, &by_link, t);
    if (!spans_leaves(s, c)) return;
    const way by_leaf = way_by_leaf(s, &w->role->task[hp_wired_task(w, queue, 0)], per_node);
    use_places(s, like, c, &by_leaf, t);
}

void sim_communicators_init(sim *s) {
    const hp_program *p = s->program;
    const hp_classes *k = s->classes;
    const tally t = {.seen = HP_NEW(s->arena, int32_t, k->n),
                     .on = HP_NEW(s->arena, int32_t, k->places),
                     .stamp = HP_NEW(s->arena, int32_t, k->places),
                     .here = HP_NEW(s->arena, int32_t, k->places),
                     .taken = HP_NEW(s->arena, bool, k->places)};
    s->comm = HP_NEW(s->arena, communicator, k->n_comm);
    for (int g = 0; g < p->n_group; g++) {
        for (int world = k->world_comm[g]; world < k->world_comm[g + 1]; world++) {
            communicator *c = &s->comm[k->comm[world]];
            if (k->comm_member[k->comm_first[k->comm[world]]] != world)
                continue; /* not the first of its class */
            c->group = &s->wiring->group[g];
            c->replica = world - k->world_comm[g];
            c->members = c->group->n * (p->group[g].all_replicas ? p->dp : 1);
            c->posted = HP_NEW(s->arena, int32_t, c->group->calls);
            list_callers(s, c, &t);
            if (s->options->steps || sim_is_star(s, c)) sim_steps_init(s, c);
            communicator_uses(s, g, k->comm[world], c, &t);
        }
    }
}
