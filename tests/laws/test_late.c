/* test_late.c - a device that works asynchronously, in memory that the host cannot reach. Messages are device
 * work or not; tasks are issued one by one or segment by segment. The bits are the same as with synchronous
 * work, and spans are in an order that the program allows. */
#include "exec/interp/graph_segments.h"
#include "tests/support/exec/late/late_comm.h"
#include "tests/support/exec/late/late_device.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/exec/run_ranks.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STEPS = 4, MAX_RANKS = 8 };

typedef struct outcome {
    double loss[STEPS];
    double *weights;
    int64_t n;
} outcome;

static outcome run(hp_arena *arena, const hp_graph *g, hp_program *p, const hp_device_ops *ops, bool late,
                   uint64_t seed, const char *rings) {
    outcome out = {.n = ranks_param_elems(g)};
    out.weights = HP_NEW(arena, double, out.n);
    ranks_job job = {.g = g,
                     .p = p,
                     .ops = ops,
                     .comm = late ? late_comm_new : NULL,
                     .steps = STEPS,
                     .lr = 0.05,
                     .lr_falls = 0.01,
                     .momentum = 0.9,
                     .weight_decay = 1e-4,
                     .seed = seed,
                     .ring_dir = rings,
                     .loss = out.loss,
                     .weights = out.weights};
    if (run_ranks(&job) != HP_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, job.err.text);
    return out;
}

typedef struct draw {
    hp_arena *arena;
    hp_graph *g;
    hp_strategy s;
    hp_program *p;
    char text[HP_STRATEGY_TEXT];
} draw;

static draw drawn(uint64_t seed) {
    dice die = {seed, 3000};
    draw d = {.arena = hp_arena_new()};
    hp_error err = {HP_OK, ""};
    d.g = random_net(d.arena, seed, roll(&die, 3, 6));
    d.s = random_strategy_of(&die, d.g, roll(&die, 1, 4), MAX_RANKS, DRAW_EXACT);
    draw_comm(&die, &d.s);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F64, .batch = hp_strategy_batch(&d.s, 4), .place = true};
    hp_strategy_text(&d.s, d.text);
    if (hp_lower(d.arena, d.g, &d.s, &o, &d.p, &err) != HP_OK || hp_program_check(d.p, d.g, &err) != HP_OK)
        fail_msg("seed %llu, %s: %s", (unsigned long long)seed, d.text, err.text);
    return d;
}

/* Every fourth time, nothing is captured. */
static hp_device_ops drawn_device(uint64_t seed) {
    static hp_stream_ops direct;
    static hp_memory_ops memory;
    hp_device_ops ops = late_device(&hp_device_ref, seed);
    direct = LATE_STREAMS;
    direct.capture = NULL;
    memory = LATE_MEMORY;
    memory.streams = &direct;
    if (seed % 4 == 0) ops.memory = &memory;
    return ops;
}

static void work_done_later_has_the_same_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(45); seed++) {
        draw d = drawn(seed);
        const hp_device_ops later = drawn_device(seed);
        const outcome want = run(d.arena, d.g, d.p, &hp_device_ref, false, seed, NULL);
        const outcome have = run(d.arena, d.g, d.p, &later, true, seed, NULL);
        if (memcmp(want.loss, have.loss, sizeof want.loss) != 0)
            fail_msg("seed %llu, %s: losses %.17g .. %.17g, were %.17g .. %.17g", (unsigned long long)seed,
                     d.text, have.loss[0], have.loss[STEPS - 1], want.loss[0], want.loss[STEPS - 1]);
        if (memcmp(want.weights, have.weights, sizeof(double) * (size_t)want.n) != 0)
            fail_msg("seed %llu, %s: weights differ", (unsigned long long)seed, d.text);
        hp_arena_free(d.arena);
    }
    assert_true(late_straight > late_opened && late_by_host > 0); /* a trial each, and messages */
}

/* Counts a role's compute tasks in segments of one task, and in longer ones. */
static void count_tasks(const hp_role *r, int64_t *alone, int64_t *together) {
    int32_t *length = calloc((size_t)r->n_task + 1, sizeof *length);
    hp_graph_segments(r, length);
    for (int t = 0; t < r->n_task; t++) {
        const bool host = r->task[t].op == HP_TASK_LOAD || r->task[t].op == HP_TASK_STORE;
        if (length[t] > 1) *together += length[t];
        if (length[t] == 1 && !host) ++*alone;
    }
    free(length);
}

/* Calls to the device: segments of two or more tasks are issued in every step except the first; everything
 * else is issued alone. */
static void steps_but_the_first_are_given_by_segments(void **state) {
    (void)state;
    for (uint64_t seed = 201; seed <= 206; seed++) {
        draw d = drawn(seed);
        const hp_device_ops later = late_device(&hp_device_ref, seed);
        int64_t alone = 0, together = 0;
        for (int rank = 0; rank < hp_program_ranks(d.p); rank++)
            count_tasks(&d.p->role[rank % d.p->n_role], &alone, &together);
        late_given = late_relaunched = 0;
        run(d.arena, d.g, d.p, &later, true, seed, NULL);
        assert_true(together > 0);
        assert_int_equal(late_relaunched, together * (STEPS - 1));
        assert_int_equal(late_given, together + alone * STEPS);
        hp_arena_free(d.arena);
    }
}

/* --- spans --- */

static const hp_span *find_span(const hp_ring_data *d, int task, int iter) {
    for (int64_t i = 0; i < d->n_span; i++)
        if (d->span[i].task == task && d->span[i].iter == iter) return &d->span[i];
    return NULL;
}

static void check_role(const hp_role *r, const hp_ring_data *d) {
    assert_int_equal(d->n_span, (int64_t)r->n_task * STEPS);
    for (int iter = 0; iter < STEPS; iter++)
        for (int t = 0; t < r->n_task; t++) {
            const hp_span *s = find_span(d, t, iter);
            assert_non_null(s);
            assert_true(s->t0_ns <= s->t1_ns);
            for (int k = r->dep_first[t]; k < r->dep_first[t + 1]; k++)
                assert_true(find_span(d, r->dep[k], iter)->t1_ns <= s->t1_ns);
        }
}

static void spans_are_in_an_order_the_program_allows(void **state) {
    (void)state;
    for (uint64_t seed = 100; seed < 106; seed++) {
        draw d = drawn(seed);
        const hp_device_ops later = drawn_device(seed);
        char dir[] = "late-XXXXXX", path[64];
        hp_error err;
        assert_non_null(mkdtemp(dir));
        run(d.arena, d.g, d.p, &later, true, seed, dir);
        for (int rank = 0; rank < hp_program_ranks(d.p); rank++) {
            hp_ring_data data;
            snprintf(path, sizeof path, "%s/rank-%d.ring", dir, rank);
            assert_int_equal(hp_ring_read(path, &data, &err), HP_OK);
            check_role(&d.p->role[rank % d.p->n_role], &data);
            hp_ring_free(&data);
            remove(path);
        }
        remove(dir);
        hp_arena_free(d.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_done_later_has_the_same_bits),
        cmocka_unit_test(steps_but_the_first_are_given_by_segments),
        cmocka_unit_test(spans_are_in_an_order_the_program_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
