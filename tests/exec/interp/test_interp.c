/* test_interp.c - the executor's loop on lowered programs, with a device and a communicator that only take
 * notes; and the all-reduce algorithms with all their members in one process. */
#include "exec/interp/exec_interp.h"
#include "plan/lower/lower.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* --- a single rank: its device and its communicator record calls --- */

enum { MOST_TASKS = 4096, NEVER = 1 << 30, PATIENT_S = 600 /* longer than a step takes on a busy machine */ };

typedef struct notebook {
    hp_comm comm;
    const hp_program *program;
    const hp_role *role;
    hp_interp *interp;
    int clock;
    int started[MOST_TASKS], done[MOST_TASKS]; /* turn of the start and end; 0: not yet */
    int compute_order[MOST_TASKS], n_compute;
    int handle_left[MOST_TASKS], n_handle; /* polls until an operation is done */
    int delay;                             /* polls that every operation takes */
    int loads;
} notebook;

static notebook *notes; /* notes of the running test: the device's interface has no other place for them */

static hp_status note_join(hp_comm *c, const hp_program *p, hp_error *err) {
    (void)c, (void)p, (void)err;
    return HP_OK;
}

static hp_status note_start(hp_comm *c, const hp_comm_op *op, int *handle, hp_error *err) {
    (void)err;
    notebook *n = (notebook *)c;
    assert_non_null(op->data);
    *handle = n->n_handle++;
    n->handle_left[*handle] = n->delay;
    return HP_OK;
}

static hp_status note_test(hp_comm *c, int handle, bool *done, hp_error *err) {
    (void)err;
    notebook *n = (notebook *)c;
    *done = n->handle_left[handle] <= 0;
    if (n->handle_left[handle] < NEVER) n->handle_left[handle]--;
    return HP_OK;
}

static const hp_comm_ops NOTE_COMM = {
    .name = "notes", .join = note_join, .start = note_start, .test = note_test};

static hp_status note_run(hp_device *d, int task, const hp_step *step, hp_error *err) {
    (void)d, (void)step, (void)err;
    notes->compute_order[notes->n_compute++] = task;
    return HP_OK;
}

static const hp_memory NOTE_MEMORY = {.ops = &hp_memory_host};
static const hp_device_ops NOTE_DEVICE = {
    .name = "notes", .dtype = HP_F32, .run = note_run, .memory = &hp_memory_host};

static hp_status note_load(void *self, int32_t iter, int32_t micro, void *x, hp_dtype x_dtype,
                           const hp_box *x_box, void *labels, const hp_box *label_box, hp_error *err) {
    (void)self, (void)iter, (void)micro, (void)x_dtype, (void)err;
    assert_true(x || labels);
    assert_true(!x == !x_box && !labels == !label_box);
    notes->loads++;
    return HP_OK;
}

typedef struct fixture {
    hp_arena *memory;
    hp_graph *graph;
    hp_program *program;
    notebook *notes;
    hp_watch *watch;
    hp_ring *ring;
    unsigned char *arena;
    hp_clock clock;
    hp_interp *interp;
} fixture;

static const char RING[] = "test_exec_interp.ring";

static void set_up(fixture *f, const char *strategy, int role, int delay, const volatile sig_atomic_t *stop) {
    hp_error err;
    hp_strategy s;
    *f = (fixture){.memory = hp_arena_new()};
    assert_int_equal(hp_net_build(f->memory, "cnn", 28, 28, 10, &f->graph, &err), HP_OK);
    assert_int_equal(hp_strategy_parse(strategy, &s, &err), HP_OK);
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = 16, .place = true};
    assert_int_equal(hp_lower(f->memory, f->graph, &s, &o, &f->program, &err), HP_OK);
    const hp_role *r = &f->program->role[role];
    assert_true(r->n_task < MOST_TASKS);
    f->notes = notes = HP_NEW(f->memory, notebook, 1);
    *notes = (notebook){.comm = {.ops = &NOTE_COMM, .rank = role, .size = hp_program_ranks(f->program)},
                        .delay = delay,
                        .program = f->program,
                        .role = r};
    f->arena = HP_NEW(f->memory, unsigned char, r->arena_bytes);
    assert_int_equal(hp_watch_open(NULL, role, notes->comm.size, &f->watch, &err), HP_OK);
    assert_int_equal(hp_ring_create(RING, role, role, 1 << 16, 16, &f->ring, &err), HP_OK);
    const hp_interp_config c = {.program = f->program,
                                .graph = f->graph,
                                .role = r,
                                .memory = &NOTE_MEMORY,
                                .arena = f->arena,
                                .ops = &NOTE_DEVICE,
                                .load = note_load,
                                .comm = &notes->comm,
                                .clock = &f->clock,
                                .ring = f->ring,
                                .watch = f->watch,
                                .stop = stop};
    assert_int_equal(hp_interp_new(&c, &f->interp, &err), HP_OK);
}

static void tear_down(fixture *f) {
    hp_interp_free(f->interp);
    hp_watch_close(f->watch);
    if (f->ring) hp_ring_close(f->ring);
    remove(RING);
    hp_arena_free(f->memory);
}

/* --- laws of the loop --- */

static const char *const STRATEGIES[] = {"dp=1",
                                         "stages=2,micro=4,sched=gpipe",
                                         "stages=3,micro=8,sched=1f1b",
                                         "dp=2,stages=2,micro=2",
                                         "stages=2,chunks=2,micro=4,sched=interleaved",
                                         "dp=4,fuse=100k"};
enum { N_STRATEGY = sizeof STRATEGIES / sizeof *STRATEGIES };

static void check_spans(const hp_role *r, const hp_ring_data *d) {
    const hp_span *of[MOST_TASKS] = {0};
    assert_int_equal(d->n_span, r->n_task);
    for (int64_t i = 0; i < d->n_span; i++) {
        assert_null(of[d->span[i].task]);
        of[d->span[i].task] = &d->span[i];
    }
    int64_t compute_end = 0, queue_start[64] = {0};
    for (int t = 0; t < r->n_task; t++) {
        assert_non_null(of[t]);
        assert_true(of[t]->t0_ns <= of[t]->t1_ns);
        for (int k = r->dep_first[t]; k < r->dep_first[t + 1]; k++)
            assert_true(of[r->dep[k]]->t1_ns <= of[t]->t0_ns);
        const int q = r->task[t].queue;
        if (q == 0) {
            assert_true(of[t]->t0_ns >= compute_end); /* one at a time, in order */
            compute_end = of[t]->t1_ns;
        }
        assert_true(of[t]->t0_ns >= queue_start[q]); /* every queue starts in order */
        queue_start[q] = of[t]->t0_ns;
    }
}

static void every_task_runs_once_after_its_dependencies_in_queue_order(void **state) {
    (void)state;
    for (int s = 0; s < N_STRATEGY; s++)
        for (int delay = 0; delay < 12; delay += 3)
            for (int role = 0;; role++) {
                fixture f;
                hp_error err;
                hp_ring_data data;
                set_up(&f, STRATEGIES[s], role, delay, NULL);
                const int roles = f.program->n_role;
                const hp_step step = {0};
                assert_int_equal(hp_interp_step(f.interp, &step, 0, PATIENT_S, &err), HP_OK);
                hp_ring_close(f.ring);
                f.ring = NULL;
                assert_int_equal(hp_ring_read(RING, &data, &err), HP_OK);
                check_spans(f.notes->role, &data);
                hp_ring_free(&data);
                tear_down(&f);
                if (role + 1 == roles) break;
            }
}

static void planned_peak_is_observed_peak(void **state) {
    (void)state;
    for (int s = 0; s < N_STRATEGY; s++) {
        fixture f;
        hp_error err;
        set_up(&f, STRATEGIES[s], 0, 1, NULL);
        const hp_step step = {0};
        assert_int_equal(hp_interp_step(f.interp, &step, 0, PATIENT_S, &err), HP_OK);
        assert_int_equal(hp_interp_peak_bytes(f.interp), f.program->role[0].arena_bytes);
        tear_down(&f);
    }
}

static void a_step_starts_from_a_zero_metric(void **state) {
    (void)state;
    fixture f;
    hp_error err;
    set_up(&f, "dp=1", 0, 0, NULL);
    const hp_step step = {0};
    double *metric = (double *)(void *)(f.arena + f.program->role[0].buffer[HP_BUF_METRIC].offset);
    for (int i = 0; i < HP_METRICS; i++) metric[i] = 7;
    assert_int_equal(hp_interp_step(f.interp, &step, 0, PATIENT_S, &err), HP_OK);
    for (int i = 0; i < HP_METRICS; i++) assert_true(hp_interp_metric(f.interp)[i] == 0);
    tear_down(&f);
}

static void a_message_that_never_comes_is_a_stall_that_names_it(void **state) {
    (void)state;
    fixture f;
    hp_error err;
    set_up(&f, "stages=2,micro=4,sched=gpipe", 1, NEVER, NULL);
    const hp_step step = {0};
    assert_int_equal(hp_interp_step(f.interp, &step, 4, 0.05, &err), HP_ESTALL);
    assert_non_null(strstr(err.text, "rank 1"));
    assert_non_null(strstr(err.text, "step 5"));
    assert_non_null(strstr(err.text, "recv"));
    assert_non_null(strstr(err.text, "rank 0"));
    tear_down(&f);
}

static void a_signal_ends_a_wait(void **state) {
    (void)state;
    fixture f;
    hp_error err;
    const volatile sig_atomic_t stop = SIGTERM;
    set_up(&f, "stages=2,micro=4,sched=gpipe", 1, NEVER, &stop);
    const hp_step step = {0};
    assert_int_equal((int)hp_interp_step(f.interp, &step, 0, PATIENT_S, &err), 128 + SIGTERM);
    tear_down(&f);
}

static void patience_is_the_larger_of_ten_seconds_and_twenty_times_the_step(void **state) {
    (void)state;
    const hp_patience fixed = {.fixed_s = 3, .predicted_s = 100},
                      quick = {.predicted_s = 0.1, .predicted_here = true, .longest_s = 0.2};
    const hp_patience slow = {.predicted_s = 0.1, .predicted_here = true, .longest_s = 2},
                      first = {.predicted_s = 30, .predicted_here = true};
    assert_true(hp_patience_limit_s(&fixed) == 3);
    assert_true(hp_patience_limit_s(&quick) == 10);
    assert_true(hp_patience_limit_s(&slow) == 40);
    assert_true(hp_patience_limit_s(&first) == 600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_after_its_dependencies_in_queue_order),
        cmocka_unit_test(planned_peak_is_observed_peak),
        cmocka_unit_test(a_step_starts_from_a_zero_metric),
        cmocka_unit_test(a_message_that_never_comes_is_a_stall_that_names_it),
        cmocka_unit_test(a_signal_ends_a_wait),
        cmocka_unit_test(patience_is_the_larger_of_ten_seconds_and_twenty_times_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
