/* backends.c - tries other values for the best strategy: values of its keys, seats of its ranks, and back
 * ends for one kind of traffic after another. Keeps what shortens the step. */
#include "sim/search/search.h"

#include "plan/lower/lower_placement.h"
#include "plan/strategy/strategy_axis.h"
#include "sim/place/place_traffic.h"

/* Less than the simulator can tell: what stood before then stays. */
static const double GAIN = 0.01;
/* A choice may lower the measured part of the work's time by so much: it may not win through costs that
 * nobody measured. */
static const double UNMEASURED = 0.01;

typedef struct refiner {
    hp_eval *eval;
    hp_arena *arena;
    hp_eval_depth depth;
    hp_evaluation *best;
} refiner;

static hp_status consider(const refiner *r, const hp_strategy *s, hp_error *err) {
    hp_evaluation v;
    const hp_candidate *old = &r->best->figures;
    HP_TRY(hp_evaluate(r->eval, r->arena, s, r->depth, &v, err));
    if (v.reject.code || v.figures.step_s >= (1 - GAIN) * old->step_s) return HP_OK;
    if (v.figures.measured_share >= old->measured_share - UNMEASURED) *r->best = v;
    return HP_OK;
}

/* --- values that keys say --- */

/* Does another place move anybody? */
static bool moves(const refiner *r, const hp_strategy *asked, const hp_strategy *s) {
    return s->place.how == asked->place.how || hp_seats_of(r->arena, s, hp_eval_get(r->eval)->machine);
}

static hp_status try_keys(const refiner *r, hp_axis_try when, hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(r->eval);
    hp_strategy *other = HP_NEW(r->arena, hp_strategy, HP_AXIS_OTHERS);
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        const hp_strategy asked = r->best->strategy;
        const hp_axis_facts facts = {.g = o->graph,
                                     .batch = o->batch,
                                     .trains = o->mode == HP_MODE_TRAIN,
                                     .large = r->best->tasks > HP_TRIAL_TASKS};
        const int n = a->tried == when ? a->tries(&asked, &facts, other) : 0;
        for (int k = 0; k < n; k++)
            if (moves(r, &asked, &other[k])) HP_TRY(consider(r, &other[k], err));
    }
    return HP_OK;
}

/* --- back ends and algorithms --- */

static bool is_open(const hp_strategy *s) {
    for (int t = 0; t < HP_TRAFFICS; t++)
        if (s->comm[t] != HP_COMM_AUTO) return false;
    return s->clients == 1 && hp_strategy_ranks(s) > 1;
}

static hp_status consider_choice(const refiner *r, int traffic, hp_backend b, hp_algorithm a, hp_error *err) {
    hp_strategy other = r->best->strategy;
    other.comm[traffic] = hp_comm_choice(b, a);
    hp_comm_settle(other.comm);
    return consider(r, &other, err);
}

/* Processors' collectives were measured algorithm by algorithm. On GPUs only a library's choice and the
 * rule's can be told apart. */
static hp_status consider_backend(const refiner *r, int traffic, hp_backend b, hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(r->eval);
    const hp_backend own = hp_comm_backend(HP_COMM_AUTO, (hp_traffic)traffic, o->device, 1);
    const bool collective = hp_traffic_collective((hp_traffic)traffic);
    if (b == HP_BACKEND_OWN && !collective) return HP_OK; /* MPI's messages by another name */
    /* the fastest collective in the table may still hold up the step, so the rule is a choice, too */
    const bool by_table = collective && hp_eval_comm(r->eval)->n > 0;
    if (b != own || by_table) HP_TRY(consider_choice(r, traffic, b, HP_ALGORITHM_LIBRARY, err));
    if (!collective || !hp_backend_steps((int32_t)b) || !o->machine->device.is_cpu) return HP_OK;
    for (int a = HP_ALGORITHM_LIBRARY + 1; a < HP_ALGORITHMS; a++)
        if (hp_algorithms[a]->does & 1u << HP_COLLECTIVE_ALLREDUCE)
            HP_TRY(consider_choice(r, traffic, b, (hp_algorithm)a, err));
    return HP_OK;
}

static hp_status choose_backends(const refiner *r, hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(r->eval);
    if (!o->device || !is_open(&r->best->strategy)) return HP_OK;
    for (int t = 0; t < HP_TRAFFICS; t++)
        for (int b = 0; b < HP_BACKENDS && hp_traffic_of_networks((hp_traffic)t); b++)
            if (hp_device_has_backend(o->device, (hp_backend)b))
                HP_TRY(consider_backend(r, t, (hp_backend)b, err));
    return HP_OK;
}

/* --- places --- */

/* Chooses seats by what the ranks send each other, starting from where they sit. */
static hp_status choose_seats(const refiner *r, hp_error *err) {
    enum { MOST = 64 }; /* a list that can be read */
    const hp_machine *m = hp_eval_get(r->eval)->machine;
    hp_strategy other = r->best->strategy;
    const int n = hp_strategy_ranks(&other), per_node = m->devices_per_node;
    hp_program *p = NULL;
    if (other.place.how == HP_PLACE_LIST || other.clients > 1 || n <= per_node || n > MOST ||
        n > hp_machine_devices(m))
        return HP_OK;
    HP_TRY(hp_eval_lower(r->eval, r->arena, &other, &p, err));
    const double *traffic = hp_traffic_of(r->arena, p);
    const double before = hp_traffic_between_nodes(traffic, n, per_node, p->n_seat ? p->seat : NULL);
    for (int k = 0; k < n; k++) other.place.seat[k] = p->n_seat ? p->seat[k] : k;
    hp_traffic_exchange(traffic, n, m, other.place.seat);
    if (hp_traffic_between_nodes(traffic, n, per_node, other.place.seat) >= 0.99 * before) return HP_OK;
    other.place.how = HP_PLACE_LIST;
    other.place.n_seat = n;
    return consider(r, &other, err);
}

hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err) {
    const refiner r = {eval, arena, depth, e};
    HP_TRY(try_keys(&r, HP_TRY_RANKS, err));
    HP_TRY(try_keys(&r, HP_TRY_PLACE, err));
    HP_TRY(choose_seats(&r, err));
    HP_TRY(choose_backends(&r, err));
    HP_TRY(try_keys(&r, HP_TRY_BUCKETS, err));
    return try_keys(&r, HP_TRY_STATE, err);
}
