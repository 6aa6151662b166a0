/* lower_choice.c - how each collective is done: as the strategy says; with comm=auto by the method measured
 * as fastest at its size; else by the rule of plan/collectives. A communicator has one back end: collectives
 * of the same members by another back end get their own group. */
#include "plan/lower/lower_choice.h"

#include "plan/lower/lower_inside.h"
#include "plan/lower/lower_placement.h"

int32_t hp_comm_table_choice(const hp_comm_table *t, const hp_collective_case *c, int64_t bytes) {
    for (int i = 0; t && i < t->n; i++) {
        const hp_comm_class *k = &t->row[i];
        if (k->what == c->what && k->ranks == c->size && k->per_node == c->per_node &&
            bytes <= k->up_to_bytes)
            return k->choice;
    }
    return HP_COMM_AUTO;
}

/* Measurements hold for one rank per device. */
static int32_t choice_of(const hp_comm_chooser *c, hp_traffic traffic, const hp_collective_case *what,
                         bool fills_nodes, int64_t bytes) {
    const int32_t named = c->comm ? c->comm[traffic] : HP_COMM_AUTO;
    if (named != HP_COMM_AUTO || c->clients > 1 || !fills_nodes) return named;
    const int32_t fastest = hp_comm_table_choice(c->table, what, bytes);
    const hp_algorithm a = hp_comm_algorithm(fastest);
    return a == HP_ALGORITHM_LIBRARY || hp_algorithm_does(a, what, true) ? fastest : HP_COMM_AUTO;
}

/* rule: the algorithm of a back end that runs steps, unless the choice names one that does the collective. */
static hp_comm_way way_by(int32_t choice, const hp_comm_chooser *c, hp_traffic traffic,
                          const hp_collective_case *what, hp_algorithm rule) {
    const hp_algorithm named = hp_comm_algorithm(choice);
    hp_comm_way way = {hp_comm_backend(choice, traffic, c->device, c->clients), HP_ALGORITHM_LIBRARY};
    if (!hp_backend_steps((int32_t)way.by)) return way;
    way.algorithm = named != HP_ALGORITHM_LIBRARY && hp_algorithm_does(named, what, true) ? named : rule;
    return way;
}

hp_comm_way hp_comm_way_of(const hp_comm_chooser *c, hp_traffic traffic, const hp_collective_case *what,
                           bool fills_nodes, int64_t bytes) {
    return way_by(choice_of(c, traffic, what, fills_nodes, bytes), c, traffic, what,
                  hp_algorithm_choose(what, bytes, true));
}

static int32_t fill_of(const hp_program_builder *b, int group) {
    if (!b->facts->o->machine) return 0;
    if (b->fill[group] < 0) b->fill[group] = hp_group_fill(b->p, b->facts->o->machine, group);
    return b->fill[group];
}

/* The call of a group with `per_node` members on each of its nodes, added if it is new. */
static int32_t call_of(hp_program_builder *b, hp_reduction how, int32_t per_node, int32_t root) {
    hp_program *p = b->p;
    for (int i = 0; i < p->n_call; i++)
        if (p->call[i].reduction == (int32_t)how && p->call[i].per_node == per_node &&
            p->call[i].root == root)
            return 1 + i;
    HP_ROOM(b->facts->arena, p->call, p->n_call, b->call_room);
    p->call[p->n_call] = (hp_call){.reduction = (int32_t)how, .root = root, .per_node = per_node};
    return ++p->n_call;
}

int32_t lower_call_of_root(hp_role_builder *c, int root) {
    return call_of(c->shared, HP_REDUCE_SUM, 0, root);
}

/* The group of these members for collectives by that back end; the first back end that asks gets the group
 * itself. All roles share the answer, so that members agree on it. */
static int group_by(hp_program_builder *b, int group, int root, hp_backend by) {
    hp_program *p = b->p;
    const int n = b->roots * HP_BACKENDS, k = root * HP_BACKENDS + (int)by;
    int32_t *twin = &b->twin[(int64_t)group * n];
    bool taken = false;
    for (int i = 0; i < n; i++) taken |= twin[i] == group;
    if (twin[k] >= 0) return twin[k];
    if (!taken) return twin[k] = group;
    HP_ROOM(b->facts->arena, p->group, p->n_group, b->group_room);
    p->group[p->n_group] = p->group[group];
    return twin[k] = p->n_group++;
}

static hp_comm_chooser chooser_of(const hp_role_builder *c) {
    const hp_lower_facts *f = c->facts;
    return (hp_comm_chooser){f->s->comm, f->s->clients, f->o->comm, f->o->device};
}

static hp_collective_case case_of(const hp_role_builder *c, int group, int root, const hp_task *t) {
    const int32_t fill = fill_of(c->shared, group), size = hp_group_size(c->shared->p, group);
    return (hp_collective_case){
        .what = hp_task_collective(t), .size = size, .root = root, .per_node = fill ? fill : size};
}

static void use_way(hp_role_builder *c, hp_task *t, int group, int root, const hp_comm_way *way) {
    const int member = group_by(c->shared, group, root, way->by);
    t->queue = (int16_t)lower_queue(c, HP_QUEUE_COLL, member, 0, way->by);
    t->algorithm = (uint8_t)way->algorithm;
}

void lower_reduction(hp_role_builder *c, int group, hp_reduction reduction, hp_task *t) {
    const hp_traffic traffic = group < c->shared->first_stats ? HP_TRAFFIC_ALLREDUCE : HP_TRAFFIC_STATS;
    const hp_comm_chooser chooser = chooser_of(c);
    const int32_t fill = fill_of(c->shared, group);
    const hp_collective_case what = case_of(c, group, 0, t);
    const hp_comm_way way = hp_comm_way_of(&chooser, traffic, &what, fill > 0, hp_task_bytes(t));
    use_way(c, t, group, 0, &way);
    t->collective.call = reduction == HP_REDUCE_SUM ? 0 : call_of(c->shared, reduction, 0, 0);
    if (way.algorithm == HP_ALGORITHM_TWO_LEVELS) t->collective.call = call_of(c->shared, reduction, fill, 0);
}

void lower_collective(hp_role_builder *c, int group, hp_task *t) {
    lower_reduction(c, group, HP_REDUCE_SUM, t);
}

void lower_rooted(hp_role_builder *c, int group, int root, hp_task *t) {
    const hp_traffic traffic = (hp_traffic)((int)HP_TRAFFIC_ALLREDUCE + (int)hp_task_collective(t));
    const hp_comm_chooser chooser = chooser_of(c);
    const int32_t fill = fill_of(c->shared, group);
    const hp_collective_case what = case_of(c, group, root, t);
    const hp_comm_way way = way_by(chooser.comm[traffic], &chooser, traffic, &what, HP_ALGORITHM_DIRECT);
    use_way(c, t, group, root, &way);
    t->collective.call =
        call_of(c->shared, HP_REDUCE_SUM, way.algorithm == HP_ALGORITHM_TWO_LEVELS ? fill : 0, root);
}
