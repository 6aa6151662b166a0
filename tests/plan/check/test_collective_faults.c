/* test_collective_faults.c - programs of collectives with one seeded fault. If one member's call differs from
 * the others', the error names both; a call that is impossible for any member is rejected in place. */
#include "plan/check/check.h"
#include "tests/support/plan/collective_program.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/seed_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    PROGRAMS = 2000,
    TIMES = 4, /* attempts per fault and program */
    EACH = 33, /* fewest programs in which each kind of fault occurs */
    ALL = 1 << HP_BACKEND_OWN | 1 << HP_BACKEND_MPI | 1 << HP_BACKEND_SHM
};

/* A program, a group of several roles in it, one of these, and a call that it makes there. */
typedef struct broken {
    hp_arena *arena;
    group_dice d;
    hp_program *p;
    hp_role *r;
    hp_task *t;
    int role;
    const made_call *call;
    int group; /* group of the call */
} broken;

/* --- about the call --- */

static const hp_collective_info *info_of(const broken *x) {
    return &hp_collective_infos[hp_task_collective(x->t)];
}

static int size_of(const broken *x) {
    return hp_group_size(x->p, x->group);
}

static bool has_source(const hp_task *t) {
    return t->n_operand > 1;
}

/* Elements after the call's, were its data in that buffer. */
static int64_t room_left(const broken *x, int32_t buffer) {
    const hp_buffer *b = &x->r->buffer[buffer];
    return b->bytes / hp_dtype_bytes((hp_dtype)b->dtype) - x->t->collective.first - x->t->collective.elems;
}

static const int64_t *parts_of(const broken *x) {
    return hp_task_data(x->p, x->t).part;
}

/* Changes something in a copy of the others' call. */
static bool call_in_another_way(const broken *x, hp_call call, const int64_t *part) {
    x->t->collective.call = made_call_add(x->arena, x->p, call, part);
    return true;
}

static int64_t *copied_parts(const broken *x, const hp_call *call) {
    int64_t *part = HP_NEW(x->arena, int64_t, call->n + 1);
    for (int i = 0; i < call->n; i++) part[i] = x->p->part[call->first + i];
    return part;
}

/* --- one member calls in another way: each returns false where the call has no place for it --- */

static bool alike(const hp_program *p, const hp_task *a, const hp_task *b) {
    const hp_call x = hp_task_call(p, a), y = hp_task_call(p, b);
    return a->op == b->op && a->dtype == b->dtype && a->collective.elems == b->collective.elems &&
           a->algorithm == b->algorithm && x.reduction == y.reduction && x.root == y.root && x.n == y.n &&
           (x.n == 0 || x.first == y.first) && x.per_node == y.per_node && a->n_operand == b->n_operand;
}

static bool other_order(broken *x) {
    hp_task *end = x->r->task + x->r->n_task, *next = x->t + 1;
    while (next < end && next->queue != x->t->queue) next++;
    if (next == end || alike(x->p, x->t, next)) return false;
    const hp_task t = *x->t;
    *x->t = *next;
    *next = t;
    return true;
}

/* Another operation with compatible arguments. */
static bool other_operation(broken *x) {
    const uint8_t old = x->t->op;
    const int first = group_roll(&x->d, 0, HP_COLLECTIVES - 1);
    for (int i = 0; i < HP_COLLECTIVES && !parts_of(x) && !has_source(x->t); i++) {
        x->t->op = (uint8_t)hp_task_of_collective((hp_collective)((first + i) % HP_COLLECTIVES));
        const bool even = x->t->op != HP_TASK_ALL_TO_ALL || x->t->collective.elems % size_of(x) == 0;
        if (x->t->op != old && even && made_algorithm_fits(x->p, x->r, x->t, x->t->algorithm)) return true;
    }
    x->t->op = old;
    return false;
}

static bool other_count(broken *x) {
    const bool exchange = x->t->op == HP_TASK_ALL_TO_ALL;
    const int64_t step = exchange && !parts_of(x) ? size_of(x) : 1;
    const bool more = room_left(x, x->r->operand[x->t->operand]) >= step && !has_source(x->t),
               less = x->t->collective.elems >= step && !parts_of(x);
    x->t->collective.elems += more ? step : less ? -step : 0;
    return more || less;
}

static bool other_root(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    if (!hp_collective_rooted(hp_task_collective(x->t)) || has_source(x->t)) return false;
    call.root = (call.root + group_roll(&x->d, 1, size_of(x) - 1)) % size_of(x);
    return call_in_another_way(x, call, parts_of(x));
}

static bool other_group(broken *x) {
    const int first = group_roll(&x->d, 0, x->r->n_queue - 1), old = x->t->queue;
    for (int i = 0; i < x->r->n_queue; i++) {
        const int q = (first + i) % x->r->n_queue;
        if (q == old || x->r->queue[q].kind != HP_QUEUE_COLL || parts_of(x) || has_source(x->t)) continue;
        x->t->queue = (int16_t)q;
        const hp_collective_case c = hp_task_case(x->p, x->r, x->t);
        const bool even = x->t->op != HP_TASK_ALL_TO_ALL || x->t->collective.elems % c.size == 0;
        if (c.root < c.size && even && made_algorithm_fits(x->p, x->r, x->t, x->t->algorithm)) return true;
    }
    x->t->queue = (int16_t)old;
    return false;
}

static bool other_type(broken *x) {
    for (int b = HP_BUF_FIXED; b < x->r->n_buffer && !has_source(x->t); b++) {
        if (x->r->buffer[b].dtype == x->t->dtype || room_left(x, b) < 0) continue;
        x->t->dtype = x->r->buffer[b].dtype;
        x->r->operand[x->t->operand] = b;
        return true;
    }
    return false;
}

static bool other_reduction(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    if (!info_of(x)->adds) return false;
    call.reduction = (call.reduction + group_roll(&x->d, 1, HP_REDUCTIONS - 1)) % (int)HP_REDUCTIONS;
    return call_in_another_way(x, call, parts_of(x));
}

static bool other_algorithm(broken *x) {
    const int first = group_roll(&x->d, 0, HP_ALGORITHMS - 1);
    for (int i = 0; i < HP_ALGORITHMS; i++) {
        const int a = (first + i) % HP_ALGORITHMS;
        if (a == x->t->algorithm || !made_algorithm_fits(x->p, x->r, x->t, a)) continue;
        x->t->algorithm = (uint8_t)a;
        return true;
    }
    return false;
}

static bool other_nodes(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    const int old = hp_task_case(x->p, x->r, x->t).per_node, now = group_roll(&x->d, 1, size_of(x));
    call.per_node = now;
    if (now == old) return false;
    call_in_another_way(x, call, parts_of(x));
    return made_algorithm_fits(x->p, x->r, x->t, x->t->algorithm);
}

static bool other_part(broken *x) {
    const hp_call call = hp_task_call(x->p, x->t);
    int64_t *part = copied_parts(x, &call);
    for (int i = 0, first = call.n ? group_roll(&x->d, 0, call.n - 1) : 0; i < call.n; i++) {
        if (part[(first + i) % call.n] == 0) continue;
        part[(first + i) % call.n]--;
        return call_in_another_way(x, call, part);
    }
    return false;
}

/* Explicit parts of equal size are not implicit equal parts. */
static bool no_parts(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    if (!call.n || (x->t->op == HP_TASK_ALL_TO_ALL && x->t->collective.elems % size_of(x)) ||
        has_source(x->t))
        return false;
    call.n = 0;
    return call_in_another_way(x, call, NULL);
}

static bool no_source(broken *x) {
    if (!has_source(x->t) || info_of(x)->begins == HP_BLOCKS_ROOT) return false;
    x->t->n_operand = 1;
    return true;
}

static bool other_flags(broken *x) {
    x->t->flags ^= HP_FLAG_EVAL;
    return true;
}

/* A sum of gradients is not a sum of other data. */
static bool other_data(broken *x) {
    int32_t *buffer = &x->r->operand[x->t->operand];
    const int64_t room = room_left(x, HP_BUF_GRADS);
    if (*buffer == HP_BUF_GRADS || x->t->dtype != HP_F32 || room < 0) return false;
    *buffer = HP_BUF_GRADS;
    return true;
}

static bool call_left_out(broken *x) {
    return x->r->n_task > 1 && drop(x->r, x->t);
}

static bool call_added(broken *x) {
    hp_role *r = x->r;
    hp_task *task = HP_NEW(x->arena, hp_task, r->n_task + 1);
    int32_t *dep_first = HP_NEW(x->arena, int32_t, r->n_task + 2);
    memcpy(task, r->task, sizeof *task * (size_t)r->n_task);
    memcpy(dep_first, r->dep_first, sizeof *dep_first * (size_t)(r->n_task + 1));
    task[r->n_task] = *x->t;
    dep_first[++r->n_task] = r->n_dep;
    r->task = task;
    r->dep_first = dep_first;
    return true;
}

/* --- no member could call so --- */

static bool root_outside(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    call.root = size_of(x);
    return call_in_another_way(x, call, parts_of(x));
}

static bool part_missing(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    const int64_t *part = parts_of(x);
    if (!call.n) return false;
    call.n--;
    return call_in_another_way(x, call, part);
}

static bool part_of(broken *x, int64_t elems) {
    const hp_call call = hp_task_call(x->p, x->t);
    int64_t *part = copied_parts(x, &call);
    if (!call.n) return false;
    part[group_roll(&x->d, 0, call.n - 1)] = elems;
    return call_in_another_way(x, call, part);
}

static bool part_too_large(broken *x) {
    return part_of(x, x->t->collective.elems + 1);
}

static bool part_below_zero(broken *x) {
    return part_of(x, -1);
}

static bool part_outside(broken *x) {
    if (!parts_of(x)) return false;
    x->p->n_part = x->p->call[x->t->collective.call - 1].first + x->p->call[x->t->collective.call - 1].n - 1;
    return true;
}

static bool unknown_reduction(broken *x) {
    hp_call call = hp_task_call(x->p, x->t);
    call.reduction = HP_REDUCTIONS;
    return call_in_another_way(x, call, parts_of(x));
}

static bool too_many_parts(broken *x) {
    x->p->n_part = INT32_MAX;
    return true;
}

static bool no_call(broken *x) {
    x->t->collective.call = x->p->n_call + 1;
    return true;
}

static bool uneven_exchange(broken *x) {
    if (x->t->op != HP_TASK_ALL_TO_ALL || parts_of(x) || x->t->collective.elems == 0) return false;
    x->t->collective.elems--;
    return true;
}

static bool wrong_algorithm(broken *x) {
    const int first = group_roll(&x->d, 0, HP_ALGORITHMS);
    for (int i = 0; i <= HP_ALGORITHMS; i++) {
        const int a = (first + i) % (HP_ALGORITHMS + 1);
        if (a < HP_ALGORITHMS && made_algorithm_fits(x->p, x->r, x->t, a)) continue;
        x->t->algorithm = (uint8_t)a;
        return true;
    }
    return false;
}

static bool algorithm_of_a_message(broken *x) {
    hp_task *t = x->r->task;
    while (t < x->r->task + x->r->n_task && hp_task_is_collective(t)) t++;
    if (t == x->r->task + x->r->n_task) return false;
    t->algorithm = HP_ALGORITHM_RING;
    return true;
}

static bool data_as_source(broken *x) {
    if (!has_source(x->t)) return false;
    x->r->operand[x->t->operand + 1] = x->r->operand[x->t->operand];
    return true;
}

static bool gradients_as_source(broken *x) {
    if (!has_source(x->t)) return false;
    x->r->operand[x->t->operand + 1] = HP_BUF_GRADS;
    return true;
}

static bool source_of_another_type(broken *x) {
    for (int b = HP_BUF_FIXED; b < x->r->n_buffer && has_source(x->t); b++) {
        if (x->r->buffer[b].dtype == x->t->dtype) continue;
        x->r->operand[x->t->operand + 1] = b;
        return true;
    }
    return false;
}

/* The source lacks one element of the contribution. */
static bool little_source(broken *x) {
    if (!has_source(x->t) || x->t->collective.elems == 0 || info_of(x)->begins != HP_BLOCKS_ALL) return false;
    x->r->buffer[x->r->operand[x->t->operand + 1]].bytes =
        (x->t->collective.elems - 1) * hp_dtype_bytes((hp_dtype)x->t->dtype);
    return true;
}

/* The same if members contribute parts: sized for the largest of its replicas' parts. */
static bool little_part_of_source(broken *x) {
    const int64_t *part = parts_of(x);
    const bool own = info_of(x)->begins == HP_BLOCKS_OWN, each = info_of(x)->begins == HP_BLOCKS_EACH;
    int64_t most = 0;
    if (!has_source(x->t) || !part || !(own || each)) return false;
    for (int m = 0; m < size_of(x); m++) {
        int64_t n = own ? part[m] : 0;
        for (int i = 0; each && i < size_of(x); i++) n += part[m * size_of(x) + i];
        if (hp_group_rank(x->p, x->group, 0, m) % x->p->n_role == x->role && n > most) most = n;
    }
    if (most == 0) return false;
    x->r->buffer[x->r->operand[x->t->operand + 1]].bytes = (most - 1) * hp_dtype_bytes((hp_dtype)x->t->dtype);
    return true;
}

/* --- laws --- */

typedef struct collective_fault {
    const char *name;
    bool (*inject)(broken *x);
    const char *codes; /* codes that may report it */
} collective_fault;

#define ANY "E-ORDER E-TYPE E-COUNT E-ROOT E-MATCH"
static const collective_fault one_differs[] = {
    {"order", other_order, "E-ORDER E-TYPE E-COUNT E-ROOT"},
    {"operation", other_operation, "E-ORDER"},
    {"count", other_count, "E-COUNT"},
    {"root", other_root, "E-ROOT"},
    {"group", other_group, ANY},
    {"type", other_type, "E-TYPE"},
    {"reduction", other_reduction, "E-ORDER"},
    {"algorithm", other_algorithm, "E-ORDER"},
    {"nodes", other_nodes, "E-ORDER"},
    {"part", other_part, "E-COUNT"},
    {"no parts", no_parts, "E-COUNT"},
    {"no source", no_source, "E-ORDER"},
    {"flags", other_flags, "E-ORDER"},
    {"data", other_data, "E-ORDER"},
    {"left out", call_left_out, ANY},
    {"added", call_added, "E-MATCH"},
};

static const collective_fault nobody_could[] = {
    {"root outside", root_outside, "E-ROOT"},
    {"part missing", part_missing, "E-COUNT"},
    {"part too large", part_too_large, "E-COUNT"},
    {"part below zero", part_below_zero, "E-COUNT"},
    {"part outside", part_outside, "E-RANGE"},
    {"unknown reduction", unknown_reduction, "E-RANGE"},
    {"too many parts", too_many_parts, "E-RANGE"},
    {"no call", no_call, "E-RANGE"},
    {"uneven exchange", uneven_exchange, "E-COUNT"},
    {"wrong algorithm", wrong_algorithm, "E-RANGE"},
    {"algorithm of a message", algorithm_of_a_message, "E-RANGE"},
    {"data as source", data_as_source, "E-BOX E-OVERLAP"},
    {"gradients as source", gradients_as_source, "E-OVERLAP"},
    {"source of another type", source_of_another_type, "E-TYPE"},
    {"little source", little_source, "E-COUNT"},
    {"little part of source", little_part_of_source, "E-COUNT"},
};

static bool names_rank(const char *text, int role) {
    char name[32];
    const int n = snprintf(name, sizeof name, "rank %d", role);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if (at[n] < '0' || at[n] > '9') return true;
    return false;
}

/* Does the text name a rank other than `but`? -1: any. */
static bool names_another(const broken *x, const char *text, int but) {
    for (int r = 0; r < x->p->n_role; r++)
        if (r != but && names_rank(text, r)) return true;
    return false;
}

/* The error begins with one of the codes and names the ranks. If no rank could make the call, it names one
 * rank, or the call that tasks share. */
static void expect_refused(const broken *x, const hp_graph *g, const collective_fault *f, bool between,
                           uint64_t seed) {
    hp_error err = {HP_OK, ""};
    char code[32];
    if (hp_program_check(x->p, g, &err) != HP_EPLAN)
        fail_msg("%s, rank %d, seed %llu: not refused", f->name, x->role, (unsigned long long)seed);
    snprintf(code, sizeof code, "%.*s", (int)strcspn(err.text, ":"), err.text);
    const bool names = between ? names_rank(err.text, x->role) && names_another(x, err.text, x->role)
                               : names_another(x, err.text, -1) || strstr(err.text, "call");
    if (!strstr(f->codes, code) || !names)
        fail_msg("%s, rank %d, seed %llu: %s", f->name, x->role, (unsigned long long)seed, err.text);
}

/* Picks a call of a group of several roles, and one of these; false if there is none. */
static bool pick_call(broken *x, const collective_program *made) {
    const int first = group_roll(&x->d, 0, made->n_call - 1);
    for (int i = 0; i < made->n_call; i++) {
        const made_call *c = &made->call[(first + i) % made->n_call];
        if (c->group < 0 || x->p->group[c->group].n < 2) continue;
        const hp_group *group = &x->p->group[c->group];
        x->call = c;
        x->group = c->group;
        x->role = x->p->member[group->first + group_roll(&x->d, 0, group->n - 1)];
        x->r = &x->p->role[x->role];
        x->t = &x->r->task[c->task[x->role]];
        return true;
    }
    return false;
}

/* Makes all members call alike. */
static void spread(const broken *x) {
    for (int r = 0; r < x->p->n_role; r++) {
        hp_task *t = x->call->task[r] < 0 ? NULL : &x->p->role[r].task[x->call->task[r]];
        if (!t) continue;
        t->collective.call = x->t->collective.call;
        t->collective.elems = x->t->collective.elems;
        t->algorithm = x->t->algorithm;
    }
}

static bool refused(const collective_program *made, const collective_fault *f, bool between, uint64_t seed) {
    broken x = {.arena = hp_arena_new(), .d = {seed, 7000}};
    x.p = copy_program(x.arena, made->g, made->p);
    const bool found = pick_call(&x, made) && f->inject(&x);
    if (found && !between) spread(&x);
    if (found) expect_refused(&x, made->g, f, between, seed);
    hp_arena_free(x.arena);
    return found;
}

static void faults_are_refused(const collective_fault *fault, int n, bool between) {
    int seen[sizeof one_differs / sizeof *one_differs + sizeof nobody_could / sizeof *nobody_could] = {0};
    const uint64_t programs = law_some(PROGRAMS);
    for (uint64_t seed = 1; seed <= programs; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_error err;
        const collective_program made = collective_program_draw(arena, seed, 2 + (int)(seed % 7), ALL);
        if (hp_program_check(made.p, made.g, &err) != HP_OK) fail_msg("%s", err.text);
        for (int f = 0; f < n; f++)
            for (uint64_t k = 0; k < TIMES; k++)
                seen[f] += refused(&made, &fault[f], between, seed * TIMES + k);
        hp_arena_free(arena);
    }
    for (int f = 0; f < n; f++)
        if (seen[f] < (int)programs / EACH) fail_msg("only %d faults of kind '%s'", seen[f], fault[f].name);
}

static void what_one_member_calls_in_another_way_is_refused(void **state) {
    (void)state;
    faults_are_refused(one_differs, sizeof one_differs / sizeof *one_differs, true);
}

static void what_no_member_could_call_is_refused(void **state) {
    (void)state;
    faults_are_refused(nobody_could, sizeof nobody_could / sizeof *nobody_could, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_member_calls_in_another_way_is_refused),
        cmocka_unit_test(what_no_member_could_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
