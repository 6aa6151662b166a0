/* test_gather.c - parameters spread over several ranks as slices: the true running statistics, and the whole
 * network in one file, for any roles, replicas, slices and homes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/data/weights/safetensors.h"
#include "exec/run/run_gather.h"
#include "tests/support/plan/data_files.h"
#include "tests/support/plan/random_groups.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/exec/ranks_weights.h"
#include "tests/support/exec/thread_comm.h"

enum { MAX_ROLES = 8 };

typedef struct fixture {
    hp_arena *memory;
    hp_graph *g;
    hp_program *p;
    const char *path;
    thread_world *world;
} fixture;

/* --- random homes --- */

/* A group of these roles: the last one made for the same roles, or a new one. */
static int group_of(hp_program *p, group_dice *d, const int *role, int n) {
    if (n * p->dp == 1) return -1;
    for (int g = p->n_group - 1; g > 0 && group_roll(d, 0, 2); g--) {
        int same = 0;
        while (same < n && p->group[g].n == n && p->member[p->group[g].first + same] == role[same]) same++;
        if (same == n) return g;
    }
    group_add(p, 1);
    for (int i = 0; i < n; i++) join_group(p, role[i]);
    return p->n_group - 1;
}

/* The roles hold rows of part `part` of `parts` of each of the layer's parameters. */
static void place_part(fixture *f, group_dice *d, const hp_layer *l, const int *role, int n, int part,
                       int parts) {
    const int group = group_of(f->p, d, role, n);
    for (int i = 0; i < l->n_param; i++) {
        const hp_param *q = &f->g->param[l->param[i]];
        const int64_t row = q->count / q->dim[0], first = hp_split_at(q->dim[0], parts, part) * row;
        const int home = group_roll(d, 0, n - 1);
        for (int k = 0; k < n; k++)
            f->p->role[role[k]].place[l->param[i]] =
                (hp_param_place){.here = HP_HERE,
                                 .group = group,
                                 .first = first,
                                 .count = hp_split_at(q->dim[0], parts, part + 1) * row - first};
        f->p->role[role[home]].place[l->param[i]].here |= HP_HOME | HP_START;
        for (int k = 0; k < n && !hp_param_trained(q); k++) /* more homes, as with mirrored stages */
            if (group_roll(d, 0, 2) == 0) f->p->role[role[k]].place[l->param[i]].here |= HP_HOME;
    }
}

static void place_layer(fixture *f, group_dice *d, const hp_layer *l) {
    if (l->n_param == 0) return;
    int some[MAX_ROLES], n = 0;
    const int must = group_roll(d, 0, f->p->n_role - 1);
    for (int r = 0; r < f->p->n_role; r++)
        if (r == must || group_roll(d, 0, 1)) some[n++] = r;
    const int rows = f->g->param[l->param[0]].dim[0], most = n < rows ? n : rows;
    const int parts = group_roll(d, 1, most < 3 ? most : 3);
    for (int part = 0; part < parts; part++) {
        int role[MAX_ROLES], k = 0;
        for (int i = part; i < n; i += parts) role[k++] = some[i];
        place_part(f, d, l, role, k, part, parts);
    }
}

static void lay_out(fixture *f, hp_role *r, group_dice *d) {
    const int64_t size = hp_dtype_bytes((hp_dtype)f->p->dtype);
    int64_t end[2] = {0};
    for (int i = 0; i < f->g->n_param; i++) {
        if (!r->place[i].here) continue;
        int64_t *at = &end[hp_param_trained(&f->g->param[i])];
        r->place[i].offset = *at + group_roll(d, 0, 2);
        *at = r->place[i].offset + r->place[i].count;
    }
    r->trained_elems = end[1];
    r->n_buffer = HP_BUF_FIXED;
    r->buffer = HP_NEW(f->memory, hp_buffer, HP_BUF_FIXED);
    r->buffer[HP_BUF_WEIGHTS].bytes = end[1] * size;
    r->buffer[HP_BUF_STATE] = (hp_buffer){.bytes = end[0] * size, .offset = (end[1] * size + 63) / 64 * 64};
    r->arena_bytes = r->buffer[HP_BUF_STATE].offset + end[0] * size;
}

static fixture set_up(uint64_t seed) {
    fixture f = {.memory = hp_arena_new()};
    group_dice d = {seed, 0};
    f.g = random_net(f.memory, seed, group_roll(&d, 1, 5));
    f.p = HP_NEW(f.memory, hp_program, 1);
    *f.p = (hp_program){.mode = seed % 5 == 0 ? HP_MODE_INFER : HP_MODE_TRAIN,
                        .dtype = group_roll(&d, HP_F32, HP_F64),
                        .dp = group_roll(&d, 1, 2),
                        .micro = 3,
                        .bn = group_roll(&d, HP_BN_SYNC, HP_BN_LOCAL),
                        .n_role = group_roll(&d, 1, MAX_ROLES)};
    f.p->group = HP_NEW(f.memory, hp_group, 3 * f.g->n_layer + 1);
    f.p->member = HP_NEW(f.memory, int32_t, (3 * f.g->n_layer + 1) * MAX_ROLES);
    f.p->role = HP_NEW(f.memory, hp_role, f.p->n_role);
    group_add(f.p, 1);
    for (int r = 0; r < f.p->n_role; r++) {
        join_group(f.p, r);
        f.p->role[r].place = HP_NEW(f.memory, hp_param_place, f.g->n_param);
    }
    for (int l = 0; l < f.g->n_layer; l++) /* groups in the layers' order, or the reverse */
        place_layer(&f, &d, &f.g->layer[seed % 2 ? l : f.g->n_layer - 1 - l]);
    for (int r = 0; r < f.p->n_role; r++) lay_out(&f, &f.p->role[r], &d);
    f.path = scratch_path("w.safetensors");
    f.world = thread_world_new(hp_program_ranks(f.p));
    return f;
}

/* --- an element's value on every rank, and its true value: integers, whose sums are exact --- */

static bool is_state(const fixture *f, int i) {
    return !hp_param_trained(&f->g->param[i]);
}

static double value(const fixture *f, int rank, int i, int64_t e) {
    if (is_state(f, i) && f->p->mode == HP_MODE_INFER) rank = 0; /* equal on all */
    return (double)((rank * 7919 + i * 104729 + e * 31) % 2003);
}

static int home_flags(const fixture *f, int rank, int i, int64_t e) {
    const hp_param_place *at = &f->p->role[rank % f->p->n_role].place[i];
    return at->here && e >= at->first && e < at->first + at->count ? at->here : 0;
}

static double truth(const fixture *f, int i, int64_t e) {
    const bool sums = is_state(f, i) && f->p->mode == HP_MODE_TRAIN;
    double sum = 0;
    for (int r = 0; r < hp_program_ranks(f->p); r++) {
        if (!(home_flags(f, r, i, e) & HP_HOME)) continue;
        if (!sums) return value(f, r, i, e);
        if (r < f->p->n_role || f->p->bn != HP_BN_ALL) sum += value(f, r, i, e);
    }
    return sum;
}

/* --- a rank --- */

typedef struct rank {
    fixture *f;
    int number;
    pthread_t thread;
    hp_job job;
    hp_exec_options options;
    hp_weights w;
    unsigned char *own;
    hp_status status;
    hp_error err;
} rank;

static double get(const rank *me, int i, int64_t e) { /* e: index in the slice */
    return ranks_param_get(&me->w, i, me->w.role->place[i].first + e);
}

static void put(const rank *me, int i, int64_t e, double v) {
    void *to = is_state(me->f, i) ? me->w.state : me->w.weights;
    ranks_put((hp_dtype)me->w.dtype, to, me->w.role->place[i].offset + e, v);
}

static void open_rank(rank *me, hp_comm *comm) {
    fixture *f = me->f;
    const hp_role *r = &f->p->role[me->number % f->p->n_role];
    unsigned char *arena = calloc(1, (size_t)r->arena_bytes + 64);
    HP_ASSERT(arena);
    me->own = malloc((size_t)r->buffer[HP_BUF_STATE].bytes + 1);
    HP_ASSERT(me->own);
    me->options = (hp_exec_options){.save = f->path};
    me->job = (hp_job){.options = &me->options,
                       .comm = comm,
                       .role = me->number % f->p->n_role,
                       .replica = me->number / f->p->n_role,
                       .device.arena = arena,
                       .device.ops = &hp_device_ref,
                       .device.memory = {.ops = &hp_memory_host},
                       .steps = 5,
                       .timing.patience = {.fixed_s = 600}};
    me->job.plan.graph = f->g;
    me->job.plan.program = f->p;
    me->job.plan.mode = f->p->mode;
    me->w = (hp_weights){.graph = f->g,
                         .role = r,
                         .dtype = f->p->dtype,
                         .mode = f->p->mode,
                         .replica = me->job.replica,
                         .weights = arena,
                         .state = arena + r->buffer[HP_BUF_STATE].offset};
}

static void fill(const rank *me) {
    for (int i = 0; i < me->f->g->n_param; i++) {
        const hp_param_place *at = &me->w.role->place[i];
        for (int64_t e = 0; e < at->count; e++) put(me, i, e, value(me->f, me->number, i, at->first + e));
    }
}

/* Checks that all statistics of this rank equal `want`(parameter, element). */
typedef double (*wanted)(const fixture *f, int i, int64_t e);

static hp_status statistics_are(rank *me, const char *what, wanted want) {
    for (int i = 0; i < me->f->g->n_param; i++) {
        const hp_param_place *at = &me->w.role->place[i];
        for (int64_t e = 0; e < at->count && is_state(me->f, i); e++)
            if (get(me, i, e) != want(me->f, i, at->first + e))
                return hp_fail(&me->err, HP_EINTERNAL, "%s: rank %d: %s[%lld] is %g, not %g", what,
                               me->number, me->f->g->param[i].name, (long long)(at->first + e), get(me, i, e),
                               want(me->f, i, at->first + e));
    }
    return HP_OK;
}

static double initial(const fixture *f, int i, int64_t e) {
    (void)e;
    return f->g->param[i].kind == HP_PARAM_BN_VAR ? 1 : 0;
}

static hp_status sums_are(rank *me, const char *what, wanted want) {
    hp_status s = hp_job_state_sum(&me->job, me->own, &me->err);
    if (s == HP_OK) s = statistics_are(me, what, want);
    if (s == HP_OK) s = hp_job_state_restore(&me->job, me->own, &me->err);
    return s;
}

static hp_status restored(rank *me) {
    for (int i = 0; i < me->f->g->n_param; i++)
        for (int64_t e = 0; e < me->w.role->place[i].count; e++)
            if (get(me, i, e) != value(me->f, me->number, i, me->w.role->place[i].first + e))
                return hp_fail(&me->err, HP_EINTERNAL, "rank %d: %s has changed", me->number,
                               me->f->g->param[i].name);
    return HP_OK;
}

static hp_status law(rank *me) {
    bool speaker;
    HP_TRY(me->job.comm->ops->join(me->job.comm, me->f->p, &me->err));
    fill(me);
    HP_TRY(sums_are(me, "trained", truth));
    HP_TRY(hp_job_save(&me->job, &me->err));
    HP_TRY(restored(me));
    HP_TRY(hp_comm_agree(me->job.comm, HP_OK, &speaker, &me->err)); /* the file exists now */
    HP_TRY(hp_weights_load(me->f->path, &me->w, &me->err));
    HP_TRY(sums_are(me, "read", truth));
    hp_weights_init(&me->w, 1);
    return sums_are(me, "drawn", initial);
}

static void *rank_main(void *arg) {
    rank *me = arg;
    open_rank(me, thread_comm_new(me->f->world, me->number));
    me->status = law(me);
    if (me->status != HP_OK) thread_world_fail(me->f->world);
    me->job.comm->ops->close(me->job.comm);
    free(me->job.device.arena);
    free(me->own);
    return NULL;
}

static void run(fixture *f) {
    const int n = hp_program_ranks(f->p);
    rank *all = calloc((size_t)n, sizeof *all);
    for (int r = 0; r < n; r++) {
        all[r].f = f;
        all[r].number = r;
        assert_int_equal(pthread_create(&all[r].thread, NULL, rank_main, &all[r]), 0);
    }
    for (int r = 0; r < n; r++) pthread_join(all[r].thread, NULL);
    for (int r = 0; r < n; r++)
        if (all[r].status != HP_OK && all[r].status != HP_EDEAD) fail_msg("%s", all[r].err.text);
    for (int r = 0; r < n; r++) assert_int_equal(all[r].status, HP_OK);
    free(all);
}

/* --- laws --- */

static double stored(const hp_st_tensor *t, int64_t e) {
    double v;
    float single;
    if (t->dtype == HP_ST_F64) return memcpy(&v, t->data + e * 8, 8), v;
    return memcpy(&single, t->data + e * 4, 4), (double)single;
}

static void file_holds_the_truth(const fixture *f) {
    hp_safetensors *st;
    hp_error err;
    if (hp_safetensors_open(f->path, &st, &err) != HP_OK) fail_msg("%s", err.text);
    for (int i = 0; i < f->g->n_param; i++) {
        const hp_st_tensor *t = hp_safetensors_find(st, f->g->param[i].name);
        assert_non_null(t);
        for (int64_t e = 0; e < t->count; e++) assert_true(stored(t, e) == truth(f, i, e));
    }
    const int64_t replicas = f->p->bn == HP_BN_ALL ? 1 : f->p->dp;
    const int64_t updates = f->p->mode == HP_MODE_TRAIN ? 5 * f->p->micro * replicas : 0;
    for (int i = 0; i < hp_safetensors_count(st); i++) {
        const hp_st_tensor *t = hp_safetensors_tensor(st, i);
        int64_t counted;
        if (!strstr(t->name, "num_batches_tracked")) continue;
        memcpy(&counted, t->data, sizeof counted);
        assert_int_equal(counted, updates);
    }
    hp_safetensors_close(st);
}

static void statistics_are_the_sum_of_their_homes_and_files_hold_the_whole(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        fixture f = set_up(seed);
        run(&f);
        file_holds_the_truth(&f);
        thread_world_free(f.world);
        hp_arena_free(f.memory);
    }
}

/* --- ranks_weights.h, on which the laws of whole runs rely --- */

typedef struct crew { /* every rank, in one thread */
    int n;
    rank rank[2 * MAX_ROLES];
    hp_weights w[2 * MAX_ROLES];
} crew;

static crew *hire(fixture *f, hp_comm *comm, const double *whole) {
    crew *c = HP_NEW(f->memory, crew, 1);
    for (c->n = 0; c->n < hp_program_ranks(f->p); c->n++) {
        rank *me = &c->rank[c->n];
        me->f = f;
        me->number = c->n;
        open_rank(me, comm);
        hp_weights_init(&me->w, 1);
        ranks_param_fill(&me->w, whole);
        c->w[c->n] = me->w;
    }
    return c;
}

static void dismiss(crew *c) {
    for (int r = 0; r < c->n; r++) {
        free(c->rank[r].job.device.arena);
        free(c->rank[r].own);
    }
}

/* Changes a copy of parameter 0 on the last rank, if it has one. */
static void a_changed_copy_is_found(const fixture *f, crew *c, double *back) {
    hp_error err;
    const hp_param_place *at = &c->w[c->n - 1].role->place[0];
    if (!at->here || (c->n == f->p->n_role && (at->here & HP_HOME))) return;
    put(&c->rank[c->n - 1], 0, at->count - 1, -1);
    assert_int_equal(ranks_param_whole(f->p, f->g, c->w, back, &err), HP_EINTERNAL);
    assert_non_null(strstr(err.text, f->g->param[0].name));
}

static void parameters_given_to_ranks_come_back_unless_one_changes_its_own(void **state) {
    (void)state;
    hp_error err;
    hp_comm *comm;
    assert_int_equal(hp_comm_self_open(&comm, &err), HP_OK);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        fixture f = set_up(seed);
        const int64_t elems = ranks_param_elems(f.g);
        double *whole = HP_NEW(f.memory, double, elems), *back = HP_NEW(f.memory, double, elems);
        for (int64_t e = 0; e < elems; e++) whole[e] = (double)(e * 31 % 1009);
        crew *c = hire(&f, comm, whole);
        assert_int_equal(ranks_param_whole(f.p, f.g, c->w, back, &err), HP_OK);
        assert_memory_equal(whole, back, (size_t)elems * sizeof *whole);
        a_changed_copy_is_found(&f, c, back);
        dismiss(c);
        thread_world_free(f.world);
        hp_arena_free(f.memory);
    }
    comm->ops->close(comm);
}

/* --- a broken plan --- */

static void a_parameter_without_a_home_is_not_saved(void **state) {
    (void)state;
    uint64_t seed = 1;
    fixture f;
    for (;; seed++) { /* the first seed with one rank */
        f = set_up(seed);
        if (hp_program_ranks(f.p) == 1 && f.g->n_param > 2) break;
        thread_world_free(f.world);
        hp_arena_free(f.memory);
    }
    f.p->role[0].place[2].here = HP_HERE;
    rank me = {.f = &f};
    hp_comm *comm;
    assert_int_equal(hp_comm_self_open(&comm, &me.err), HP_OK);
    open_rank(&me, comm);
    assert_int_equal(hp_job_save(&me.job, &me.err), HP_EPLAN);
    assert_non_null(strstr(me.err.text, f.g->param[2].name));
    comm->ops->close(comm);
    free(me.job.device.arena);
    free(me.own);
    thread_world_free(f.world);
    hp_arena_free(f.memory);
}

int main(void) {
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(statistics_are_the_sum_of_their_homes_and_files_hold_the_whole),
        IN_SCRATCH(a_parameter_without_a_home_is_not_saved),
        IN_SCRATCH(parameters_given_to_ranks_come_back_unless_one_changes_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
