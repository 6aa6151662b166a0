/* test_nccl.c - exec/cuda/nccl/nccl.c over the stand-in for NCCL, on real ranks for which this
 * program starts itself under mpirun. Messages and sums of random groups, submitted ahead of time and
 * ordered only by events, arrive exactly. Ranks that die or hang end the job, with a reason. Two
 * ranks on one GPU are refused. */
#include "exec/cuda/nccl/nccl.h"
#include "base/clock.h"
#include "exec/cuda/runtime/cuda.h"
#include "tests/support/plan/random_groups.h"

#include <nccl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { GROUPS = 40, MAX_OPS = 24, ROOM = 4096, REFUSED = 9, TIMEOUT_S = 900 };
#define PATIENT_S "600" /* longer than anything here takes on a busy machine */

typedef struct flight {
    hp_comm_op op;
    int handle;
    double first; /* expected value of the first element; element i is larger by i times the number of
                   * participating ranks */
    int ranks;
    float *before, *after; /* page-locked */
    hp_event *given, *done, *back;
} flight;

typedef struct player {
    hp_comm *comm;
    const hp_memory *memory;
    const hp_program *p;
    group_dice dice; /* the same on all ranks */
    int n;
    flight flight[GROUPS * MAX_OPS];
} player;

/* --- operations --- */

static double value(int rank, int number) {
    return rank * 17 + number % 97;
}

/* Data comes from the compute stream, results leave by the copy stream: only streams wait. */
static hp_status give(player *me, hp_comm_op op, double mine, double first, int ranks, hp_error *err) {
    const hp_memory *m = me->memory;
    const hp_stream_ops *s = m->ops->streams;
    flight *f = &me->flight[me->n++];
    const int64_t bytes = 4 * op.count;
    void *at[2];
    *f = (flight){.op = op, .first = first, .ranks = ranks};
    HP_TRY(m->ops->alloc(m, bytes, &f->op.data, err));
    for (int i = 0; i < 2; i++) HP_TRY(s->host_new(m, bytes, &at[i], err));
    f->before = at[0];
    f->after = at[1];
    for (int64_t i = 0; i < op.count; i++) f->before[i] = (float)(mine + (double)(i % 50));
    hp_event **const events[] = {&f->given, &f->done, &f->back};
    for (int i = 0; i < 3; i++) HP_TRY(s->event_new(m, events[i], err));
    HP_TRY(s->copy(m, HP_STREAM_COMPUTE, f->op.data, f->before, bytes, &(hp_order){.done = f->given}, err));
    f->op.order = &(hp_order){.n = 1, .after = &f->given, .done = f->done};
    HP_TRY(me->comm->ops->start(me->comm, &f->op, &f->handle, err));
    f->op.order = NULL;
    return HP_OK;
}

static hp_status fetch(const player *me, const flight *f, hp_error *err) {
    return me->memory->ops->streams->copy(me->memory, HP_STREAM_COPY, f->after, f->op.data, 4 * f->op.count,
                                          &(hp_order){.n = 1, .after = &f->done, .done = f->back}, err);
}

static hp_comm_op operation(player *me, int kind) {
    return (hp_comm_op){.kind = kind,
                        .dtype = HP_F32,
                        .count = group_roll(&me->dice, 0, 3) ? group_roll(&me->dice, 1, 50) : ROOM,
                        .backend = HP_BACKEND_NCCL,
                        .device = true};
}

/* Some of all pairs, in both directions and in any order. */
static hp_status give_messages(player *me, hp_error *err) {
    const int n = group_roll(&me->dice, 1, 8);
    for (int i = 0; i < n; i++) {
        const int from = group_roll(&me->dice, 0, me->comm->size - 1);
        const int to = (from + group_roll(&me->dice, 1, me->comm->size - 1)) % me->comm->size;
        const int number = group_roll(&me->dice, 0, 1000);
        hp_comm_op op = operation(me, HP_COMM_SEND);
        if (me->comm->rank != from && me->comm->rank != to) continue;
        op.kind = me->comm->rank == from ? HP_COMM_SEND : HP_COMM_RECV;
        op.peer = me->comm->rank == from ? to : from;
        HP_TRY(give(me, op, op.kind == HP_COMM_SEND ? value(from, number) : -1, value(from, number), 1, err));
    }
    return HP_OK;
}

static hp_status give_sum(player *me, hp_error *err) {
    const int group = group_roll(&me->dice, 0, me->p->n_group - 1), number = group_roll(&me->dice, 0, 1000);
    const int role = me->comm->rank % me->p->n_role, replica = me->comm->rank / me->p->n_role;
    const int size = hp_group_size(me->p, group);
    hp_comm_op op = operation(me, HP_COMM_COLLECTIVE);
    double sum = 0;
    op.group = group;
    for (int k = 0; k < size; k++) sum += value(hp_group_rank(me->p, group, replica, k), number);
    if (!hp_group_has_role(me->p, group, role)) return HP_OK;
    return give(me, op, value(me->comm->rank, number), sum, size, err);
}

static hp_status give_all(player *me, hp_error *err) {
    for (int g = 0; g < GROUPS; g++) {
        const int first = me->n;
        HP_TRY(group_roll(&me->dice, 0, 1) ? give_messages(me, err) : give_sum(me, err));
        HP_TRY(me->comm->ops->end(me->comm, err));
        for (int i = first; i < me->n; i++) HP_TRY(fetch(me, &me->flight[i], err));
    }
    return HP_OK;
}

/* --- results --- */

static hp_status wait_for(const player *me, const flight *f, double limit_s, hp_error *err) {
    bool done = false;
    const double begin_s = hp_now_s();
    while (!done) {
        HP_TRY(me->comm->ops->test(me->comm, f->handle, &done, err));
        if (hp_now_s() - begin_s > limit_s)
            return hp_fail(err, HP_ESTALL, "rank %d: stalled", me->comm->rank);
        sched_yield();
    }
    for (done = false; !done;) HP_TRY(me->memory->ops->streams->query(me->memory, f->back, &done, err));
    return HP_OK;
}

static hp_status check(const player *me, const flight *f, hp_error *err) {
    for (int64_t i = 0; i < f->op.count; i++) {
        const double want = f->first + (double)(i % 50) * f->ranks;
        if ((double)f->after[i] != want)
            return hp_fail(err, HP_EINTERNAL, "rank %d: kind %d, element %d of %d: %g, not %g",
                           me->comm->rank, f->op.kind, (int)i, (int)f->op.count, (double)f->after[i], want);
    }
    return HP_OK;
}

static void release(const hp_memory *m, flight *f) {
    m->ops->free(m, f->op.data, 4 * f->op.count);
    m->ops->streams->host_free(m, f->before);
    m->ops->streams->host_free(m, f->after);
    m->ops->streams->event_free(m, f->given);
    m->ops->streams->event_free(m, f->done);
    m->ops->streams->event_free(m, f->back);
}

/* nccl/nccl.c makes communicators for groups that have a queue. */
static void add_queues(hp_arena *arena, hp_program *p) {
    p->role = HP_NEW(arena, hp_role, p->n_role);
    for (int r = 0; r < p->n_role; r++) {
        p->role[r].queue = HP_NEW(arena, hp_queue, p->n_group);
        for (int g = 0; g < p->n_group; g++)
            if (hp_group_has_role(p, g, r))
                p->role[r].queue[p->role[r].n_queue++] =
                    (hp_queue){.kind = HP_QUEUE_COLL, .peer = g, .backend = HP_BACKEND_NCCL};
    }
}

static hp_status law(hp_comm *comm, const hp_memory *memory, uint64_t seed, double limit_s, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    player *me = HP_NEW(arena, player, 1);
    *me = (player){.comm = comm, .memory = memory, .dice = {seed, 0}};
    hp_program *p = random_groups(arena, &me->dice, comm->size, group_roll(&me->dice, 0, 5));
    add_queues(arena, p);
    me->p = p;
    HP_TRY(comm->ops->join(comm, p, err));
    HP_TRY(give_all(me, err));
    for (int i = 0; i < me->n; i++) HP_TRY(wait_for(me, &me->flight[i], limit_s, err));
    for (int i = 0; i < me->n; i++) {
        HP_TRY(check(me, &me->flight[i], err));
        release(me->memory, &me->flight[i]);
    }
    double all[64] = {0}; /* with MPI in parallel */
    HP_TRY(hp_comm_share(comm, comm->rank, all, "the others", err));
    hp_arena_free(arena);
    return HP_OK;
}

/* --- ranks --- */

static int ranks_main(double limit_s) {
    hp_comm *comm, *inner;
    hp_memory memory;
    hp_error err;
    if (hp_comm_mpi_open(&inner, &err) != HP_OK) return 1;
    inner = hp_comm_own(inner);
    if (hp_memory_open(&hp_memory_cuda, NULL, &memory, &err) != HP_OK ||
        hp_comm_nccl(inner, &memory, &comm, &err) != HP_OK) {
        fprintf(stderr, "%s\n", err.text);
        inner->ops->close(inner);
        return REFUSED;
    }
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const hp_status s = law(comm, &memory, seed * 100 + (uint64_t)comm->size, limit_s, &err);
        if (s == HP_OK) continue;
        fprintf(stderr, "%s\n", err.text);
        comm->ops->abort(comm, (int)s);
    }
    comm->ops->close(comm);
    return 0;
}

/* Returns the exit status; the ranks' output goes to `out`. */
static int start_ranks(int n, const char *environment, const char *limit_s, char *out, size_t room) {
    char self[1024], command[2048];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    snprintf(command, sizeof command,
             "%s timeout -k 5 %d mpirun -n %d --oversubscribe --bind-to none --mca btl self,vader --mca "
             "mpi_yield_when_idle 1 '%s' ranks %s 2>&1",
             environment, TIMEOUT_S, n, self, limit_s);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    const size_t got = fread(out, 1, room - 1, f);
    out[got] = '\0';
    while (fgetc(f) != EOF) {
    }
    return WEXITSTATUS(pclose(f));
}

static int prepare(void **state) {
    (void)state;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* MPI's own */
    return 0;
}

static bool no_launcher(void) {
    return system("command -v mpirun >/dev/null") != 0;
}

static void groups_move_together_and_sums_are_exact(void **state) {
    char out[8192];
    (void)state;
    if (no_launcher()) skip();
    for (int seed = 0; seed < 3; seed++) {
        char environment[64];
        snprintf(environment, sizeof environment, "HPLAN_STANDIN_SEED=%d", seed);
        if (start_ranks(2 + seed, environment, PATIENT_S, out, sizeof out) != 0) fail_msg("%s", out);
    }
}

static void a_dead_rank_ends_the_job(void **state) {
    char out[8192];
    (void)state;
    if (no_launcher()) skip();
    assert_int_not_equal(start_ranks(4, "HPLAN_STANDIN_FAIL=nccl:5@1", PATIENT_S, out, sizeof out), 0);
    if (!strstr(out, "remote process exited")) fail_msg("%s", out);
}

static void a_rank_that_hangs_is_aborted(void **state) {
    char out[8192];
    (void)state;
    if (no_launcher()) skip();
    const double begin_s = hp_now_s();
    assert_int_not_equal(start_ranks(4, "HPLAN_STANDIN_FAIL=hang:5@2", "3", out, sizeof out), 0);
    assert_true(hp_now_s() - begin_s < TIMEOUT_S); /* it ends by itself */
    if (!strstr(out, "stalled")) fail_msg("%s", out);
}

static void a_call_that_fails_is_named(void **state) {
    char out[8192];
    (void)state;
    if (no_launcher()) skip();
    assert_int_not_equal(start_ranks(2, "HPLAN_STANDIN_FAIL=ncclGroupEnd:9", PATIENT_S, out, sizeof out), 0);
    if (!strstr(out, "ncclGroupEnd: unhandled system error")) fail_msg("%s", out);
}

static void two_ranks_on_one_gpu_are_refused(void **state) {
    char out[8192];
    (void)state;
    if (no_launcher()) skip();
    assert_int_equal(start_ranks(3, "HPLAN_STANDIN_GPUS=2", PATIENT_S, out, sizeof out), REFUSED);
    if (!strstr(out, "ranks 0 and 2 have the same GPU")) fail_msg("%s", out);
}

/* NCCL refuses them too, without the earlier check: both ranks are this process. */
static void nccl_refuses_them_too(void **state) {
    ncclComm_t comm[2];
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    (void)state;
    config.blocking = 0;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int r = 0; r < 2; r++)
        assert_int_equal(ncclCommInitRankConfig(&comm[r], 2, id, r, &config), ncclInProgress);
    for (int r = 0; r < 2; r++) {
        ncclResult_t now = ncclInProgress;
        while (now == ncclInProgress) assert_int_equal(ncclCommGetAsyncError(comm[r], &now), ncclSuccess);
        assert_int_equal(now, ncclInvalidUsage);
        assert_non_null(strstr(ncclGetLastError(comm[r]), "Duplicate GPU"));
        assert_int_equal(ncclCommAbort(comm[r]), ncclSuccess);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_move_together_and_sums_are_exact),
        cmocka_unit_test(a_dead_rank_ends_the_job),
        cmocka_unit_test(a_rank_that_hangs_is_aborted),
        cmocka_unit_test(a_call_that_fails_is_named),
        cmocka_unit_test(two_ranks_on_one_gpu_are_refused),
        cmocka_unit_test(nccl_refuses_them_too),
    };
    if (argc > 2 && strcmp(argv[1], "ranks") == 0) return ranks_main(atof(argv[2]));
    return cmocka_run_group_tests(tests, prepare, NULL);
}
