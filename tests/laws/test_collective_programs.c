/* test_collective_programs.c - random programs of messages and collectives are proved, simulated to their
 * end, and executed, with threads and with real MPI ranks: every buffer of every rank ends as the calls'
 * definitions say. For real ranks, this program starts itself under mpirun, with many programs per start.
 *
 * HPLAN_LAW_CASES=N: N programs. */
#include "plan/check/check.h"
#include "sim/engine/sim.h"
#include "tests/support/exec/collective_case.h"
#include "tests/support/exec/comm_law.h"
#include "tests/support/exec/thread_comm.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/program_reference.h"
#include "tests/support/sim/made_up_machine.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exec/interp/exec_interp.h"

enum {
    OWN = 1 << HP_BACKEND_OWN,
    ALL = OWN | 1 << HP_BACKEND_MPI | 1 << HP_BACKEND_SHM,
    MAX_RANKS = 8,
    STEPS = 2,
    BATCH = 50,      /* programs per mpirun */
    STALLED_S = 600, /* without any task done */
    HUNG_S = 1200    /* seconds per program; longer means a call that does not return */
};

static int ranks_of(uint64_t seed) {
    return 1 + (int)(seed % MAX_RANKS);
}

/* --- a hang is a failure that names the program --- */

static char hung[128];

static void give_up(int signal) {
    (void)signal;
    const ssize_t written = write(2, hung, strlen(hung));
    _exit(written < 0 ? 2 : 1);
}

static void limit_program(uint64_t seed) {
    snprintf(hung, sizeof hung, "seed %llu: a call did not return\n", (unsigned long long)seed);
    signal(SIGALRM, give_up);
    alarm(HUNG_S);
}

/* --- a rank's memory --- */

/* Between the buffers, where nobody may write. */
static const unsigned char GUARD = 0x5b;

static const hp_role *role_of(const program_reference *f, int rank) {
    return &f->of->p->role[rank % f->of->p->n_role];
}

static void fill_rank(const program_reference *f, int rank, unsigned char *at) {
    const hp_role *r = role_of(f, rank);
    memset(at, GUARD, (size_t)r->arena_bytes);
    for (int b = 0; b < r->n_buffer; b++) {
        const hp_buffer *buffer = &r->buffer[b];
        const hp_dtype t = (hp_dtype)buffer->dtype;
        for (int64_t i = 0; program_reference_covers(r, b) && i < program_reference_elems(buffer); i++)
            collective_put(t, at + buffer->offset, i, program_reference_first(f->seed, rank, b, i, t));
    }
}

static hp_status check_buffer(const program_reference *f, int rank, int b, const unsigned char *at,
                              int64_t *known, hp_error *err) {
    const hp_buffer *buffer = &role_of(f, rank)->buffer[b];
    for (int64_t i = 0; i < program_reference_elems(buffer); i++) {
        const number want = f->at[rank][b][i];
        const double have = collective_get((hp_dtype)buffer->dtype, at + buffer->offset, i);
        if (isinf(want.bound)) continue;
        ++*known;
        if (!(fabs(have - want.value) <= want.bound))
            return hp_fail(err, HP_EINTERNAL,
                           "rank %d buffer %d (%s) element %lld: %.17g, not %.17g (within %.3g)", rank, b,
                           hp_dtype_names[buffer->dtype], (long long)i, have, want.value, want.bound);
    }
    return HP_OK;
}

/* Checks the gaps between the buffers, which are adjacent in memory. */
static hp_status check_gaps(const program_reference *f, int rank, const unsigned char *at, hp_error *err) {
    const hp_role *r = role_of(f, rank);
    int64_t from = 0;
    for (int b = 0; b < r->n_buffer; b++) {
        if (r->buffer[b].bytes == 0) continue;
        for (; from < r->buffer[b].offset; from++)
            if (at[from] != GUARD)
                return hp_fail(err, HP_EINTERNAL, "rank %d: written %lld bytes before buffer %d", rank,
                               (long long)(r->buffer[b].offset - from), b);
        from = r->buffer[b].offset + r->buffer[b].bytes;
    }
    return HP_OK;
}

static hp_status check_rank(const program_reference *f, int rank, const unsigned char *at, int64_t *known,
                            hp_error *err) {
    const hp_role *r = role_of(f, rank);
    for (int b = 0; b < r->n_buffer; b++)
        if (program_reference_covers(r, b)) HP_TRY(check_buffer(f, rank, b, at, known, err));
    return check_gaps(f, rank, at, err);
}

/* --- a rank --- */

typedef struct program_rank {
    const program_reference *reference;
    int rank;
    hp_comm *comm;
    const hp_memory *memory;
    unsigned char *arena;
    hp_device *device;
    hp_watch *watch;
    hp_clock clock;
    int64_t known;
    hp_error err;
    /* threads */
    thread_world *world;
    hp_status status;
    pthread_t thread;
} program_rank;

static hp_status run_steps(program_rank *me, hp_interp *in) {
    const hp_program *p = me->reference->of->p;
    for (int i = 0; i < STEPS; i++) {
        const hp_step step = {.step = i, .replica = me->rank / p->n_role};
        fill_rank(me->reference, me->rank, me->arena);
        HP_TRY(hp_interp_step(in, &step, i, STALLED_S, &me->err));
        HP_TRY(check_rank(me->reference, me->rank, me->arena, &me->known, &me->err));
    }
    return HP_OK;
}

static hp_status interpret(program_rank *me) {
    const collective_program *made = me->reference->of;
    const hp_interp_config config = {.program = made->p,
                                     .graph = made->g,
                                     .role = role_of(me->reference, me->rank),
                                     .replica = me->rank / made->p->n_role,
                                     .memory = me->memory,
                                     .arena = me->arena,
                                     .ops = &hp_device_null,
                                     .device = me->device,
                                     .comm = me->comm,
                                     .clock = &me->clock,
                                     .watch = me->watch,
                                     .yield = true,
                                     .n_steps = STEPS};
    hp_interp *in = NULL;
    HP_TRY(hp_interp_new(&config, &in, &me->err));
    const hp_status s = run_steps(me, in);
    hp_interp_free(in);
    return s;
}

/* Collective: over all ranks. */
static hp_status run_rank(program_rank *me) {
    const collective_program *made = me->reference->of;
    const hp_device_config config = {.program = made->p,
                                     .graph = made->g,
                                     .role = role_of(me->reference, me->rank),
                                     .arena = me->arena,
                                     .threads = 1};
    HP_TRY(me->comm->ops->join(me->comm, made->p, &me->err));
    HP_TRY(hp_device_null.open(&config, &me->device, &me->err));
    hp_status s = hp_watch_open(NULL, me->rank, me->comm->size, &me->watch, &me->err);
    if (s == HP_OK) s = interpret(me);
    if (me->watch) hp_watch_close(me->watch);
    hp_device_null.close(me->device);
    return s;
}

/* --- threads --- */

static void *thread_main(void *arg) {
    program_rank *me = arg;
    const int64_t bytes = role_of(me->reference, me->rank)->arena_bytes;
    hp_memory memory;
    HP_ASSERT(hp_memory_open(&hp_memory_host, NULL, &memory, NULL) == HP_OK);
    HP_ASSERT(memory.ops->alloc(&memory, bytes, (void **)&me->arena, NULL) == HP_OK);
    me->memory = &memory;
    me->comm = hp_comm_own(thread_comm_new(me->world, me->rank));
    me->status = run_rank(me);
    if (me->status != HP_OK) thread_world_fail(me->world);
    me->comm->ops->close(me->comm);
    memory.ops->free(&memory, me->arena, bytes);
    hp_memory_close(&memory);
    return NULL;
}

static int64_t run_threads(const program_reference *f) {
    const int n = hp_program_ranks(f->of->p);
    program_rank rank[MAX_RANKS];
    thread_world *world = thread_world_new(n);
    int64_t known = 0;
    for (int r = 0; r < n; r++) {
        rank[r] = (program_rank){.reference = f, .rank = r, .world = world};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, thread_main, &rank[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(rank[r].thread, NULL);
    thread_world_free(world);
    for (int r = 0; r < n; r++)
        if (rank[r].status != HP_OK && rank[r].status != HP_EDEAD)
            fail_msg("seed %llu: %s", (unsigned long long)f->seed, rank[r].err.text);
    for (int r = 0; r < n; r++) known += rank[r].known;
    return known;
}

static void threads_end_with_what_the_definitions_say(void **state) {
    (void)state;
    int64_t known = 0;
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        hp_arena *arena = hp_arena_new();
        hp_error err;
        limit_program(seed);
        const collective_program made = collective_program_draw(arena, seed, ranks_of(seed), OWN);
        if (hp_program_check(made.p, made.g, &err) != HP_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        const program_reference f = program_reference_make(arena, &made, seed);
        known += run_threads(&f);
        hp_arena_free(arena);
    }
    alarm(0);
    assert_true(known > (int64_t)law_cases(200) * 1000); /* not just anything */
}

/* --- real ranks: "programs FIRST N", every MAX_RANKS-th --- */

static hp_status run_program(hp_comm *comm, const comm_room *room, uint64_t seed, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    const collective_program made = collective_program_draw(arena, seed, comm->size, ALL);
    hp_status s = hp_program_check(made.p, made.g, err);
    if (s == HP_OK) {
        const program_reference f = program_reference_make(arena, &made, seed);
        program_rank me = {
            .reference = &f, .rank = comm->rank, .comm = comm, .memory = &room->memory, .arena = room->at};
        HP_ASSERT(role_of(&f, me.rank)->arena_bytes <= room->bytes);
        s = run_rank(&me);
        if (s != HP_OK) *err = me.err;
    }
    hp_arena_free(arena);
    return s;
}

static int ranks_main(const char *argument) {
    hp_comm *comm;
    hp_error err;
    char *end;
    const uint64_t first = strtoull(argument + strlen("programs "), &end, 10), n = strtoull(end, NULL, 10);
    comm_room room = comm_room_new(&hp_memory_shared);
    if (hp_comm_mpi_open(&comm, &err) != HP_OK) return 1;
    comm = hp_comm_own(comm);
    hp_comm **messages = hp_comm_own_inner(comm);
    hp_status s = hp_comm_peer(*messages, &room.memory, room.at, room.bytes, messages, &err);
    uint64_t seed = first;
    for (uint64_t i = 0; i < n && s == HP_OK; i++) {
        seed = first + MAX_RANKS * i;
        limit_program(seed);
        s = run_program(comm, &room, seed, &err);
    }
    if (s != HP_OK) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, err.text);
        comm->ops->abort(comm, 1);
    }
    comm->ops->close(comm); /* it reads the room */
    comm_room_free(&room);
    return 0;
}

static void ranks_end_with_what_the_definitions_say(void **state) {
    (void)state;
    const uint64_t all = law_cases(200);
    const bool any = law_all("programs of collectives on any number of ranks to eight, not on three and six");
    if (system("command -v mpirun >/dev/null") != 0) skip();
    for (int k = 0; k < MAX_RANKS; k++) {
        if (!any && k % 3 != 2) continue;
        const uint64_t of_size = (all + MAX_RANKS - 1 - (uint64_t)k) / MAX_RANKS;
        for (uint64_t done = 0; done < of_size; done += BATCH) {
            const uint64_t first = (uint64_t)k + MAX_RANKS * done,
                           n = of_size - done < BATCH ? of_size - done : BATCH;
            char argument[64];
            snprintf(argument, sizeof argument, "programs %llu %llu", (unsigned long long)first,
                     (unsigned long long)n);
            if (start_ranks(ranks_of(first), argument) != 0) fail_msg("'%s' failed", argument);
        }
    }
}

/* --- the simulator --- */

static double seconds(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)g;
    return 1e-6 * (1 + (task * 7 + rank % p->n_role * 3) % 5); /* arbitrary costs: the law is about the
                                                                * result */
}

static double share(void *self, const hp_program *p, const hp_graph *g, int rank, int task) {
    (void)self, (void)p, (void)g, (void)rank, (void)task;
    return 0;
}

static double message_seconds(void *self, const hp_program *p, const hp_task *t, int from, int to,
                              double bytes) {
    (void)self, (void)p, (void)t, (void)from, (void)to;
    return 1e-6 + bytes / 1e9;
}

/* Number of tasks that start while another of the rank is running. */
static int count_beside(const hp_span *span, int64_t n) {
    int beside = 0;
    int64_t end_ns = 0;
    for (int64_t i = 0; i < n; i++) { /* in order of start */
        beside += span[i].t0_ns < end_ns;
        end_ns = span[i].t1_ns > end_ns ? span[i].t1_ns : end_ns;
    }
    return beside;
}

/* Kinds of programs drawn so far. */
typedef struct variety {
    bool by[HP_BACKENDS][HP_COLLECTIVES][HP_ALGORITHMS], of[HP_COLLECTIVES][HP_DTYPES];
    bool parts[HP_COLLECTIVES], apart[HP_COLLECTIVES], reduction[HP_REDUCTIONS];
    int tasks, beside;
} variety;

static void note_task(variety *v, const hp_program *p, const hp_role *r, const hp_task *t) {
    const int what = hp_task_collective(t);
    v->tasks++;
    if (!hp_task_is_collective(t)) return;
    v->by[r->queue[t->queue].backend][what][t->algorithm] = true;
    v->of[what][t->dtype] = true;
    v->parts[what] |= hp_task_call(p, t).n > 0;
    v->apart[what] |= t->n_operand > 1;
    v->reduction[hp_task_call(p, t).reduction] = true;
}

static void note_program(variety *v, const hp_program *p) {
    for (int r = 0; r < p->n_role; r++)
        for (int t = 0; t < p->role[r].n_task; t++) note_task(v, p, &p->role[r], &p->role[r].task[t]);
}

/* Some number of members and nodes that tests have. */
static bool algorithm_exists(int what, int algorithm) {
    for (int n = 2; n <= MAX_RANKS; n++)
        for (int per_node = 1; per_node <= n; per_node++) {
            const hp_collective_case c = {(hp_collective)what, n, 0, per_node};
            if (hp_algorithm_does((hp_algorithm)algorithm, &c, true)) return true;
        }
    return false;
}

static void expect_backend(const variety *v, int backend, int what) {
    for (int a = 0; a < HP_ALGORITHMS; a++) {
        const bool library = a == HP_ALGORITHM_LIBRARY;
        if (library == hp_backend_steps(backend) || (!library && !algorithm_exists(what, a))) continue;
        if (!v->by[backend][what][a])
            fail_msg("no %s by %s of %s", hp_collective_infos[what].name, hp_algorithms[a]->name,
                     hp_backend_names[backend]);
    }
}

static void expect_all(const variety *v) {
    for (int what = 0; what < HP_COLLECTIVES; what++) {
        for (int b = 0; b < HP_BACKENDS; b++)
            if (ALL >> b & 1) expect_backend(v, b, what);
        for (int t = 0; t < HP_DTYPES; t++) assert_true(v->of[what][t]);
        assert_int_equal(v->parts[what], hp_collective_parts((hp_collective)what));
        assert_true(v->apart[what]);
    }
    for (int r = 0; r < (int)HP_REDUCTIONS; r++) assert_true(v->reduction[r]);
    assert_true(v->beside * 4 > v->tasks);
}

/* Every task of every rank ends. */
static int64_t simulate(const collective_program *made, uint64_t seed, const hp_machine *m, bool fold,
                        bool steps, int *beside) {
    hp_arena *arena = hp_arena_new();
    const hp_sim_costs costs = {seconds, share, NULL, message_seconds};
    const hp_sim_options o = {.want_spans = true, .straggler_rank = -1, .fold = fold, .steps = steps};
    hp_sim_result result;
    hp_error err;
    if (hp_sim_run(arena, made->p, made->g, m, &costs, &o, &result, &err) != HP_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    assert_int_equal(result.n_rank, hp_program_ranks(made->p));
    for (int r = 0; r < result.n_rank; r++)
        assert_int_equal(result.n_span[r], made->p->role[r % made->p->n_role].n_task);
    for (int r = 0; r < made->p->n_role && beside; r++)
        *beside += count_beside(result.span[r], result.n_span[r]);
    const int64_t makespan_ns = result.makespan_ns;
    hp_arena_free(arena);
    return makespan_ns;
}

static void proofs_hold_and_the_simulator_comes_to_the_end(void **state) {
    (void)state;
    variety v = {0};
    hp_machine gpus;
    hp_error err;
    const hp_machine cores = local_like(MAX_RANKS);
    assert_int_equal(hp_machine_load("thesis-a100", &gpus, &err), HP_OK);
    for (uint64_t seed = 1; seed <= law_cases(200); seed++) {
        hp_arena *arena = hp_arena_new();
        limit_program(seed);
        const collective_program made = collective_program_draw(arena, seed, ranks_of(seed), ALL);
        if (hp_program_check(made.p, made.g, &err) != HP_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        assert_int_equal(simulate(&made, seed, &cores, false, false, NULL),
                         simulate(&made, seed, &cores, true, false, NULL));
        assert_int_equal(simulate(&made, seed, &gpus, false, false, &v.beside),
                         simulate(&made, seed, &gpus, true, false, NULL));
        simulate(&made, seed, &gpus, false, true, NULL);
        note_program(&v, made.p);
        hp_arena_free(arena);
    }
    alarm(0);
    if (law_cases(200) >= 200) expect_all(&v);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proofs_hold_and_the_simulator_comes_to_the_end),
        cmocka_unit_test(threads_end_with_what_the_definitions_say),
        cmocka_unit_test(ranks_end_with_what_the_definitions_say),
    };
    if (argc > 1 && strncmp(argv[1], "programs ", 9) == 0) return ranks_main(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
