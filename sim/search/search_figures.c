/* search_figures.c - one simulation, or a few draws of the machine's jitter; then the interval. */
#include "sim/search/search_figures.h"

#include "costmodels/cost_rows.h"
#include "costmodels/table.h"
#include "sim/results/bound_by.h"

#include <math.h>

enum {
    MOST_DRAWS = 16,      /* half of them mirror the others */
    LEAST_DRAWS = 4,      /* for large programs */
    DRAWN_TASKS = 200000, /* tasks over all draws of one program: a tenth of a second */
    UNFOLDED_RANKS = 16   /* with more ranks, equal ones are folded into the last of them */
};

/* A tick of Linux at 250 Hz, the default of most distributions: processes of equal priority switch at ticks
 * (EEVDF: Zijlstra 2023). A process that yields beside a computing one gets its core every 4 ms. */
static const double SLICE_S = 4e-3;

/* That of a GPU's class also holds for its relatives. */
static const hp_row *jitter_row(const hp_cost_table *t, const hp_device_class *d) {
    const hp_row *row = hp_rows_find(t, HP_ROW_JITTER, d->name, "");
    for (; t && !row && !d->is_cpu; t = t->base) row = hp_row_of_class(t, HP_ROW_JITTER, d, "");
    return row;
}

static hp_jitter_process jitter_of(const hp_eval_setup *o) {
    if (o->jitter_cv > 0) return (hp_jitter_process){.task = o->jitter_cv};
    const hp_row *row = jitter_row(o->table, &o->machine->device);
    if (o->jitter_cv < 0 || !row || row->y[HP_JITTER_TAU] <= 0) return (hp_jitter_process){0};
    return (hp_jitter_process){row->y[HP_JITTER_CV], row->y[HP_JITTER_TAU], row->y[HP_JITTER_TASK]};
}

/* With more ranks than cores, each rank gets to a core in its own way. */
static bool is_crowded(const hp_eval_setup *o, const hp_program *p) {
    return o->machine->share_cpu &&
           hp_program_ranks(p) > (int64_t)o->machine->nodes * o->machine->cores_per_node;
}

hp_sim_options hp_figures_options(const hp_eval_setup *o, const hp_program *p) {
    return (hp_sim_options){.fold =
                                !o->no_fold && !(is_crowded(o, p) && hp_program_ranks(p) <= UNFOLDED_RANKS),
                            .slice_s = SLICE_S,
                            .straggler_rank = o->straggler_rank,
                            .straggler_factor = o->straggler_factor};
}

hp_sim_options hp_figures_drawn(const hp_eval_setup *o, const hp_program *p, hp_draws draw) {
    hp_sim_options s = hp_figures_options(o, p);
    s.jitter = jitter_of(o);
    s.draws = draw;
    if (hp_jitters(&s.jitter) && hp_program_ranks(p) <= UNFOLDED_RANKS) s.fold = false;
    return s;
}

/* --- draws --- */

/* The accumulated draws of a step. */
typedef struct drawn {
    int n;
    double step_s[MOST_DRAWS];
    hp_sim_result sum; /* sum of the fractions; all draws have equal weight */
} drawn;

static void add_result(drawn *d, const hp_sim_result *r) {
    hp_sim_result *s = &d->sum;
    d->step_s[d->n++] = (double)r->makespan_ns * 1e-9;
    s->bubble += r->bubble;
    s->exposed_comm += r->exposed_comm;
    s->recompute += r->recompute;
    s->packing += r->packing;
    s->coding += r->coding;
    for (int k = 0; k < HP_SIM_WAITS; k++) s->wait[k] += r->wait[k];
    s->comm_bytes = r->comm_bytes;
}

static void divide(hp_sim_result *s, int n) {
    s->bubble /= n;
    s->exposed_comm /= n;
    s->recompute /= n;
    s->packing /= n;
    s->coding /= n;
    for (int k = 0; k < HP_SIM_WAITS; k++) s->wait[k] /= n;
}

static hp_status run(const hp_eval_setup *o, const hp_sim_costs *costs, const hp_program *p,
                     const hp_sim_options *s, hp_sim_result *r, hp_error *err) {
    hp_arena *scratch = hp_arena_new(); /* a simulation's state is larger than its program */
    const hp_status status = hp_sim_run(scratch, p, o->graph, o->machine, costs, s, r, err);
    hp_arena_free(scratch);
    return status;
}

static hp_draws draw_of(const hp_eval_setup *o, int i) {
    return (hp_draws){.seed = o->seed + (uint64_t)i / 2, .mirrored = i % 2 == 1};
}

static hp_status draw_all(const hp_eval_setup *o, const hp_sim_costs *costs, const hp_program *p, int n,
                          drawn *d, hp_error *err) {
    *d = (drawn){.n = 0};
    for (int i = 0; i < n; i++) {
        const hp_sim_options s = hp_figures_drawn(o, p, draw_of(o, i));
        hp_sim_result r;
        HP_TRY(run(o, costs, p, &s, &r, err));
        add_result(d, &r);
    }
    divide(&d->sum, n);
    return HP_OK;
}

/* Number of draws; one without jitter. What lasts for all of a step is drawn once for a rank, so a few
 * draws tell: a pair where alike ranks are folded into the last of them. */
static int draws_wanted(const hp_eval_setup *o, const hp_program *p, int64_t tasks) {
    const hp_jitter_process jitter = jitter_of(o);
    const int64_t ranks = hp_program_ranks(p), all = ranks <= UNFOLDED_RANKS ? tasks * p->dp : tasks;
    if (!hp_jitters(&jitter)) return 1;
    if (jitter.task <= 0) return ranks <= UNFOLDED_RANKS ? LEAST_DRAWS : 2;
    const int64_t pairs = DRAWN_TASKS / (2 * (all > 0 ? all : 1));
    return (int)(pairs < LEAST_DRAWS / 2 ? LEAST_DRAWS : pairs > MOST_DRAWS / 2 ? MOST_DRAWS : 2 * pairs);
}

/* --- figures --- */

/* The median of nearly log-normal values. */
static double median_of(const drawn *d) {
    double sum = 0;
    for (int i = 0; i < d->n; i++) sum += log(d->step_s[i] / d->step_s[0]);
    return d->step_s[0] * exp(sum / d->n);
}

/* The variance of a step, and the remaining variance of the mean, estimated from pairs (their errors cancel
 * within a pair). */
static double variance_of(const drawn *d, double median_s, double *of_mean) {
    double steps = 0, pairs = 0;
    *of_mean = 0;
    if (d->n < 2) return 0;
    for (int i = 0; i + 1 < d->n; i += 2) {
        const double a = log(d->step_s[i] / median_s), b = log(d->step_s[i + 1] / median_s);
        steps += a * a + b * b;
        pairs += (a + b) * (a + b) / 4;
    }
    const int n = d->n / 2;
    *of_mean = n > 1 ? pairs / (n - 1) / n : pairs;
    return steps / (d->n - 1);
}

static int nearest(const drawn *d, double step_s) {
    int best = 0;
    for (int i = 1; i < d->n; i++)
        if (fabs(d->step_s[i] - step_s) < fabs(d->step_s[best] - step_s)) best = i;
    return best;
}

static void set_interval(const hp_eval_setup *o, const hp_program *p, double variance, double of_mean,
                         hp_evaluation *out) {
    const hp_jitter_process jitter = jitter_of(o);
    const int ranks = hp_program_ranks(p), here = o->machine->devices_per_node;
    hp_candidate *c = &out->figures;
    const double model = hp_interval_model(o->table, o->machine, c->step_s, is_crowded(o, p)),
                 drift = hp_interval_drift(o->table, o->machine, ranks < here ? ranks : here);
    out->uncertainty =
        (hp_uncertainty){.model = model * model,
                         .costs = fmax(0, hp_exposure_variance(&out->exposure) - model * model),
                         .jitter = hp_interval_jitter(&jitter, c->step_s, variance),
                         .drift = drift * drift,
                         .draws = of_mean};
    hp_interval(&out->uncertainty, c->step_s, &c->step_low_s, &c->step_high_s);
}

static int busiest_role(const hp_eval_setup *o, const hp_program *p, const hp_sim_costs *costs) {
    int busiest = 0;
    double most = 0;
    for (int r = 0; r < p->n_role; r++) {
        double work = 0;
        for (int t = 0; t < p->role[r].n_task; t++)
            if (p->role[r].task[t].queue == 0) work += costs->seconds(costs->self, p, o->graph, r, t);
        if (work > most) {
            most = work;
            busiest = r;
        }
    }
    return busiest;
}

/* Without jitter, which belongs to a machine shared with others. */
static hp_status set_quiet(const hp_eval_setup *o, const hp_sim_costs *costs, const hp_program *p,
                           hp_candidate *c, hp_error *err) {
    const hp_sim_options s = hp_figures_options(o, p);
    hp_sim_result r;
    if (!costs) return HP_OK;
    HP_TRY(run(o, costs, p, &s, &r, err));
    c->step_quiet_s = (double)r.makespan_ns * 1e-9;
    return HP_OK;
}

hp_status hp_figures_of(const hp_eval_setup *o, const hp_figures_costs *costs, const hp_program *p,
                        hp_evaluation *out, hp_error *err) {
    const hp_sim_costs *usual = &costs->usual;
    hp_candidate *c = &out->figures;
    drawn d;
    double of_mean;
    HP_TRY(set_quiet(o, costs->quiet, p, c, err));
    HP_TRY(draw_all(o, usual, p, draws_wanted(o, p, out->tasks), &d, err));
    c->step_s = median_of(&d);
    const double variance = variance_of(&d, c->step_s, &of_mean);
    out->draw = draw_of(o, nearest(&d, c->step_s));
    c->images_per_s = c->step_s > 0 ? (double)o->batch / c->step_s : 0;
    c->bubble = d.sum.bubble;
    c->exposed_comm = d.sum.exposed_comm;
    c->comm_bytes = d.sum.comm_bytes;
    c->measured_share = hp_costs_measured_share(usual, p, o->graph);
    const int role = busiest_role(o, p, usual);
    hp_exposure_of(usual, p, o->graph, role, &d.sum, &out->exposure);
    set_interval(o, p, variance, of_mean, out);
    const double host = c->step_s > 0 ? hp_costs_late_s(usual, role) / c->step_s : 0;
    out->bound_by = hp_bound_by(&out->strategy, &d.sum, host, role, c->note, sizeof c->note);
    return HP_OK;
}
