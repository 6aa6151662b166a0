/* made_up_machine.c - a machine on which every shape class has a rate of its own. */
#include "tests/support/sim/made_up_machine.h"

#include "plan/lower/lower_placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

hp_machine local_like(int cores) {
    return (hp_machine){.name = "local",
                        .nodes = 1,
                        .devices_per_node = cores,
                        .cores_per_node = cores,
                        .nics_per_node = 1,
                        .device = {.name = "cpu",
                                   .is_cpu = true,
                                   .memory_bytes = INT64_C(8) << 30,
                                   .flops_per_s = 5e10,
                                   .bytes_per_s = 1e10,
                                   .launch_s = 1e-6},
                        .intra = {"shm", 2e-6, 4e9},
                        .inter = {"tcp", 5e-5, 1e9},
                        .share_cpu = true};
}

bool near(double have, double want, double relative) {
    return fabs(have - want) <= relative * fabs(want);
}

/* Do all participants of a message or a collective run on one node? */
static bool stays(const hp_program *p, const hp_machine *m, int rank, const hp_queue *q) {
    if (q->kind == HP_QUEUE_COLL) return hp_group_per_node(p, m, q->peer, 0) == hp_group_size(p, q->peer);
    return hp_rank_node(p, m, rank) == hp_rank_node(p, m, rank - rank % p->n_role + q->peer);
}

/* A made-up machine: each shape class has its own rate and overhead. Links between nodes reach nine tenths of
 * their data sheet's rate, after 20 us. */
static double true_seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    const hp_machine *m = self;
    const hp_role *r = &p->role[rank % p->n_role];
    const hp_work w = hp_task_work(p, g, r, task);
    uint64_t seed = 7;
    for (const char *c = w.key; *c; c++) seed = seed * 31 + (uint64_t)*c;
    const hp_queue *q = &r->queue[r->task[task].queue];
    if (q->kind != HP_QUEUE_COMPUTE)
        return stays(p, m, rank, q) ? 3e-6 + w.size * 4e-10 : 2e-5 + w.size / (0.9 * m->inter.bytes_per_s);
    return 2e-6 + w.size * 1e-8 * (1 + hp_rng_uniform(seed, 0, 0));
}

static double contended_share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self;
    (void)p;
    (void)g;
    (void)rank;
    (void)task;
    return 0.6;
}

hp_plan make_plan(hp_arena *arena, const hp_machine *m, hp_mode mode, const char *strategy, int64_t batch) {
    hp_error err = {HP_OK, ""};
    hp_plan plan = {.net = "resnet18",
                    .image_h = 64,
                    .image_w = 64,
                    .classes = 10,
                    .mode = (int32_t)mode,
                    .batch = batch,
                    .machine = *m,
                    .device = &hp_devices[HP_DEVICE_CPU]};
    if (hp_strategy_parse(strategy, &plan.strategy, &err) != HP_OK ||
        hp_plan_build(arena, &plan, NULL, &err) != HP_OK)
        fail_msg("%s", err.text);
    return plan;
}

/* Slowdown of each step: one per run, and one that changes slowly (AR(1)). */
static double *slowdowns(hp_arena *arena, const drifting *d) {
    enum { OF_RUN = 1, OF_STEP };
    const double present = d->availability > 0 ? d->availability : 1;
    double *f = HP_NEW(arena, double, d->steps), z = hp_rng_normal(d->seed, OF_STEP, 0);
    const double run = hp_rng_normal(d->seed, OF_RUN, 0);
    for (int i = 0; i < d->steps; i++) {
        z = 0.8 * z + 0.6 * hp_rng_normal(d->seed, OF_STEP, (uint64_t)i + 1);
        f[i] = d->seed ? 1 + fmin(1, fmax(0, 0.35 * (run + z))) : 1;
        f[i] /= present;
    }
    return f;
}

/* After a step each rank reads every yardstick once. */
static void add_readings(hp_db *db, int64_t run, const drifting *d, int rank, const double *slowdown,
                         int64_t step_ns) {
    const double present = d->availability > 0 ? d->availability : 1;
    hp_error err;
    hp_sample reading[HP_SPEED_CLASSES + 2];
    for (int i = 0; i < d->steps; i++) {
        for (int y = 0; y < HP_SPEED_CLASSES; y++) {
            const uint64_t at = (uint64_t)((i * HP_SPEED_CLASSES + y) * 64 + rank);
            const double noise = 1 + 0.02 * hp_rng_normal(d->seed, 3, at);
            reading[y] = (hp_sample){.name = (int32_t)hp_yardstick_counter((hp_yardstick)y),
                                     .iter = i,
                                     .t_ns = 4 * (i + 1) * step_ns + y,
                                     .value = 1e-9 * YARDSTICK_NS * slowdown[i] * present * noise};
        }
        const double step_s = 1e-9 * (double)step_ns * slowdown[i];
        reading[HP_SPEED_CLASSES] =
            (hp_sample){.name = HP_COUNTER_STEP, .iter = i, .t_ns = 4 * i * step_ns, .value = step_s};
        reading[HP_SPEED_CLASSES + 1] = (hp_sample){
            .name = HP_COUNTER_STEP_CPU, .iter = i, .t_ns = 4 * i * step_ns, .value = step_s * present};
        assert_int_equal(hp_trace_samples(db, run, rank, reading, HP_SPEED_CLASSES + 2, &err), HP_OK);
    }
}

double execute_drifting(hp_arena *arena, const hp_plan *plan, const drifting *d, const char *path) {
    hp_machine truth = plan->machine;
    const hp_sim_costs costs = {true_seconds, contended_share, &truth};
    const hp_sim_options o = {.want_spans = true, .straggler_rank = -1};
    hp_error err = {HP_OK, ""};
    hp_sim_result r;
    hp_db db = {0};
    int64_t run;
    assert_int_equal(hp_sim_run(arena, plan->program, plan->graph, &plan->machine, &costs, &o, &r, &err),
                     HP_OK);
    char text[HP_STRATEGY_TEXT];
    const hp_run_info info = {"exec", plan->hash.hex, hp_strategy_text(&plan->strategy, text), "local", "cpu",
                              1,      r.n_rank};
    const double *slowdown = slowdowns(arena, d);
    assert_int_equal(hp_db_create(path, &db, &err), HP_OK);
    assert_int_equal(hp_plan_write(&db, plan, &err), HP_OK);
    assert_int_equal(hp_trace_begin(&db, &info, plan->program, plan->graph, &run, &err), HP_OK);
    for (int rank = 0; rank < r.n_rank; rank++) {
        hp_span *span = HP_NEW(arena, hp_span, r.n_span[rank]);
        for (int i = 0; i < d->steps; i++) {
            const int64_t t0_ns = 4 * i * r.makespan_ns; /* a step takes at most four times as long */
            for (int64_t k = 0; k < r.n_span[rank]; k++) {
                span[k] = r.span[rank][k];
                span[k].iter = i;
                span[k].t0_ns = t0_ns + (int64_t)((double)span[k].t0_ns * slowdown[i]);
                span[k].t1_ns = t0_ns + (int64_t)((double)span[k].t1_ns * slowdown[i]);
            }
            assert_int_equal(
                hp_trace_spans(&db, run, rank, rank % plan->program->n_role, span, r.n_span[rank], &err),
                HP_OK);
        }
        if (d->yardsticks) add_readings(&db, run, d, rank, slowdown, r.makespan_ns);
    }
    assert_int_equal(hp_trace_end(&db, run, 0, &err), HP_OK);
    assert_int_equal(hp_db_commit(&db, &err), HP_OK);
    hp_db_close(&db);
    return 1e-9 * (double)r.makespan_ns;
}

double execute(hp_arena *arena, const hp_plan *plan, const char *path) {
    const drifting quiet = {.steps = 5};
    return execute_drifting(arena, plan, &quiet, path);
}

hp_cost_table *calibrate(hp_arena *arena, const hp_machine *m, hp_mode mode, const char *const *strategy,
                         int n) {
    hp_error err = {HP_OK, ""};
    hp_calibration *c = hp_calibration_new(arena, m);
    hp_cost_table *t = NULL;
    for (int i = 0; i < n; i++) {
        const hp_plan plan = make_plan(arena, m, mode, strategy[i], 4);
        hp_db db = {0};
        const char *path = scratch_path("calibrate.db");
        execute(arena, &plan, path);
        assert_int_equal(hp_db_open(path, &db, &err), HP_OK);
        if (hp_calibration_add(c, "one", 0, &db, &err) != HP_OK) fail_msg("%s", err.text);
        hp_db_close(&db);
    }
    if (hp_calibration_table(c, NULL, "2026-01-01", &t, &err) != HP_OK) fail_msg("%s", err.text);
    return t;
}

double predict(hp_arena *arena, const hp_cost_table *t, const hp_plan *plan) {
    hp_error err = {HP_OK, ""};
    const hp_eval_setup setup = {.graph = plan->graph,
                                 .machine = &plan->machine,
                                 .table = t,
                                 .mode = (hp_mode)plan->mode,
                                 .dtype = HP_F32,
                                 .batch = plan->batch,
                                 .straggler_rank = -1};
    hp_evaluation e;
    if (hp_evaluate(hp_eval_new(arena, &setup), arena, &plan->strategy, HP_EVAL_PLACED, &e, &err) != HP_OK)
        fail_msg("%s", err.text);
    return e.figures.step_s;
}
