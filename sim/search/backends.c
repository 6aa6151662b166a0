/* backends.c - refines one kind of traffic after another, keeping the choice with the shorter step; then the
 * size of gradient buckets, and whether their holders share the update. Before that, it chooses which ranks
 * share tokens, and where ranks sit. */
#include "sim/search/search.h"

#include "networks/graph/summands.h"
#include "plan/lower/lower_placement.h"
#include "sim/place/place_traffic.h"

/* Below the simulator's accuracy, the earlier choice stays. */
static const double GAIN = 0.01;
/* Fraction of the time that may be unmeasured: a choice must not win by unmeasured costs. */
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

/* On processors, collectives were measured per algorithm; on GPUs, only a library's choice, or the rule's,
 * can be distinguished. */
static hp_status consider_backend(const refiner *r, int traffic, hp_backend b, hp_error *err) {
    const hp_eval_setup *o = hp_eval_get(r->eval);
    const hp_backend own = hp_comm_backend(HP_COMM_AUTO, (hp_traffic)traffic, o->device, 1);
    const bool collective = hp_traffic_collective((hp_traffic)traffic);
    if (b == HP_BACKEND_OWN && !collective) return HP_OK; /* the same as MPI's messages */
    /* If auto follows the table, the algorithm that is fastest alone may delay the step, so its rule is one
     * of the choices. */
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

/* --- buckets --- */

/* Tries bucket sizes from many small sums, which begin early, to a single one. */
static hp_status choose_buckets(const refiner *r, hp_error *err) {
    static const int64_t SIZES[] = {1000000, 5000000, 100000000};
    const hp_eval_setup *o = hp_eval_get(r->eval);
    const int64_t usual = hp_strategy_default().fuse_bytes;
    const hp_strategy *s = &r->best->strategy;
    if (o->mode != HP_MODE_TRAIN || s->fuse_bytes != usual || hp_strategy_ranks(s) < 2) return HP_OK;
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        hp_strategy other = r->best->strategy;
        other.fuse_bytes = SIZES[i];
        HP_TRY(consider(r, &other, err));
    }
    return HP_OK;
}

/* --- ZeRO --- */

/* Tries the optimiser on parts, with the sum in two halves. */
static hp_status choose_parts(const refiner *r, hp_error *err) {
    hp_strategy other = r->best->strategy;
    if (hp_eval_get(r->eval)->mode != HP_MODE_TRAIN || other.zero || hp_strategy_ranks(&other) < 2)
        return HP_OK;
    other.zero = 1;
    return consider(r, &other, err);
}

/* --- tokens --- */

/* Tries ranks that share tokens (seq) instead of some that share layers, samples, or rows of tiles. Each try
 * is simulated, which takes too long for large programs. */
static hp_status consider_sequence(const refiner *r, hp_strategy s, int seq, hp_error *err) {
    static const int32_t WAYS[] = {HP_SEQ_RING, HP_SEQ_A2A};
    s.seq = seq;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        s.seq_by = WAYS[i];
        HP_TRY(consider(r, &s, err));
    }
    return HP_OK;
}

static hp_status choose_sequence(const refiner *r, hp_error *err) {
    const hp_strategy asked = r->best->strategy;
    const hp_eval_setup *o = hp_eval_get(r->eval);
    if (o->mode != HP_MODE_TRAIN || hp_graph_summands(o->graph) == 0 || asked.seq > 1 ||
        asked.place == HP_PLACE_LIST || r->best->tasks > HP_TRIAL_TASKS)
        return HP_OK;
    for (int seq = 2; seq <= asked.tp; seq *= 2) {
        hp_strategy other = asked;
        other.tp = asked.tp / seq;
        if (asked.tp % seq == 0) HP_TRY(consider_sequence(r, other, seq, err));
    }
    for (int seq = 2; seq <= 4 && asked.n_sp == 0 && asked.dp % seq == 0; seq *= 2) {
        hp_strategy other = asked;
        other.dp = asked.dp / seq;
        HP_TRY(consider_sequence(r, other, seq, err));
    }
    if (asked.n_sp != 1 || asked.stages != 1 || asked.sp_cols[0] > 1) return HP_OK;
    hp_strategy other = asked;
    other.n_sp = 0;
    return consider_sequence(r, other, asked.sp_rows[0], err);
}

/* --- places --- */

/* Chooses the ranks' places, if they span several nodes. */
static hp_status choose_places(const refiner *r, hp_error *err) {
    static const int32_t KINDS[] = {HP_PLACE_CYCLIC, HP_PLACE_TILE};
    const hp_strategy asked = r->best->strategy;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && asked.place == HP_PLACE_BLOCK; i++) {
        hp_strategy other = asked;
        other.place = KINDS[i];
        if (hp_seats_of(r->arena, &other, hp_eval_get(r->eval)->machine)) HP_TRY(consider(r, &other, err));
    }
    return HP_OK;
}

/* Improves seats by the ranks' traffic, starting from the current seats. */
static hp_status choose_seats(const refiner *r, hp_error *err) {
    enum { MOST = 64 }; /* a list that is still readable */
    const hp_machine *m = hp_eval_get(r->eval)->machine;
    hp_strategy other = r->best->strategy;
    const int n = hp_strategy_ranks(&other), per_node = m->devices_per_node;
    hp_program *p = NULL;
    if (other.place == HP_PLACE_LIST || other.clients > 1 || n <= per_node || n > MOST ||
        n > hp_machine_devices(m))
        return HP_OK;
    HP_TRY(hp_eval_lower(r->eval, r->arena, &other, &p, err));
    const double *traffic = hp_traffic_of(r->arena, p);
    const double before = hp_traffic_between_nodes(traffic, n, per_node, p->n_seat ? p->seat : NULL);
    for (int k = 0; k < n; k++) other.seat[k] = p->n_seat ? p->seat[k] : k;
    hp_traffic_exchange(traffic, n, m, other.seat);
    if (hp_traffic_between_nodes(traffic, n, per_node, other.seat) >= 0.99 * before) return HP_OK;
    other.place = HP_PLACE_LIST;
    other.n_seat = n;
    return consider(r, &other, err);
}

hp_status hp_search_backends(hp_eval *eval, hp_arena *arena, hp_eval_depth depth, hp_evaluation *e,
                             hp_error *err) {
    const refiner r = {eval, arena, depth, e};
    HP_TRY(choose_sequence(&r, err));
    HP_TRY(choose_places(&r, err));
    HP_TRY(choose_seats(&r, err));
    HP_TRY(choose_backends(&r, err));
    HP_TRY(choose_buckets(&r, err));
    return choose_parts(&r, err);
}
