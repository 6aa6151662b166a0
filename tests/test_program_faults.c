/* test_program_faults.c - programs with one seeded fault: every kind, in tiled, mirrored, replicated and
 * plain pipelines, is caught by code and rank; damage of any kind never makes the checker look out of bounds.
 */
#include "plan/program_check.h"
#include "tests/random_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A program to be damaged: the copy's arrays are its own. */
typedef struct victim {
    hp_arena *arena;
    const hp_graph *g;
    hp_program *p;
    hp_role *r; /* the role chosen */
    int role;
    dice d;
} victim;

static void *copied(hp_arena *arena, const void *from, size_t size) {
    return memcpy(hp_arena_alloc(arena, size + 1), from, size);
}

#define OWN(field, n) ((field) = copied(arena, (field), sizeof *(field) * (size_t)(n)))

static hp_program *copy_program(hp_arena *arena, const hp_graph *g, const hp_program *from) {
    hp_program *p = copied(arena, from, sizeof *from);
    OWN(p->role, p->n_role);
    OWN(p->group, p->n_group);
    OWN(p->member, p->n_member);
    for (int i = 0; i < p->n_role; i++) {
        hp_role *r = &p->role[i];
        OWN(r->slot, r->n_slot);
        OWN(r->task, r->n_task);
        OWN(r->operand, r->n_operand);
        OWN(r->dep_first, r->n_task + 1);
        OWN(r->dep, r->n_dep);
        OWN(r->buffer, r->n_buffer);
        OWN(r->queue, r->n_queue);
        OWN(r->place, g->n_param);
        OWN(r->pack_forward, g->n_layer);
        OWN(r->pack_backward, g->n_layer);
    }
    return p;
}

static hp_program *lower_text(hp_arena *arena, const hp_graph *g, const char *text) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    if (hp_strategy_parse(text, &s, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_lower_options o = {
        .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 16), .place = true};
    if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return p;
}

/* --- choosing --- */

typedef bool task_filter(const victim *v, const hp_task *t);

/* A random task of the role that the filter takes, from a random place on; NULL: none. */
static hp_task *pick(victim *v, task_filter *wanted) {
    const int n = v->r->n_task, from = roll(&v->d, 0, n - 1);
    for (int i = 0; i < n; i++) {
        hp_task *t = &v->r->task[(from + i) % n];
        if (wanted(v, t)) return t;
    }
    return NULL;
}

static bool is_transfer(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_SEND || t->op == HP_TASK_RECV;
}

static bool is_send(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_SEND;
}

static bool is_recv(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_RECV;
}

static bool is_forward(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_FWD && !(t->flags & HP_FLAG_RECOMPUTE);
}

static bool is_weights(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_BWDW;
}

static bool is_collective(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_ALLREDUCE;
}

static bool is_gradient_sum(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_ALLREDUCE && v->r->operand[t->operand] == HP_BUF_GRADS;
}

static bool is_zero(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_ZERO;
}

static bool is_copy(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_COPY;
}

static bool has_sums(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_FWD && t->n_operand == 3 + v->g->layer[t->layer].n_in;
}

/* The task becomes one that does nothing. */
static bool drop(hp_task *t) {
    if (t) *t = (hp_task){.op = HP_TASK_SGD, .layer = -1, .micro = -1, .tag = -1};
    return t != NULL;
}

/* --- faults: each returns false where the program has no place for it --- */

static bool exchanged_tags(victim *v) {
    hp_task *a = pick(v, is_transfer);
    for (hp_task *b = v->r->task; a && b < v->r->task + v->r->n_task; b++)
        if (b != a && b->queue == a->queue) {
            const int32_t tag = a->tag;
            a->tag = b->tag;
            b->tag = tag;
            return true;
        }
    return false;
}

static bool missing_transfer(victim *v) {
    return drop(pick(v, is_transfer));
}

static bool wrong_count(victim *v) {
    hp_task *t = pick(v, is_transfer);
    if (t) t->count -= 1 + roll(&v->d, 0, 3);
    return t != NULL;
}

static bool wrong_type(victim *v) {
    hp_task *t = pick(v, is_transfer);
    if (t) t->dtype = (uint8_t)(t->dtype == HP_F32 ? HP_I32 : HP_F32);
    return t != NULL;
}

static bool wrong_peer(victim *v) {
    hp_task *t = pick(v, is_transfer);
    if (!t || v->p->n_role < 3) return false;
    hp_queue *q = &v->r->queue[t->queue];
    do q->peer = (q->peer + 1) % v->p->n_role;
    while (q->peer == v->role);
    return true;
}

static bool wrong_channel(victim *v) {
    hp_task *t = pick(v, is_transfer);
    if (t) v->r->queue[t->queue].channel += 4096;
    return t != NULL;
}

static bool wrong_group(victim *v) {
    hp_task *t = pick(v, is_collective);
    if (!t || v->p->n_group < 2) return false;
    hp_queue *q = &v->r->queue[t->queue];
    q->peer = (q->peer + roll(&v->d, 1, v->p->n_group - 1)) % v->p->n_group;
    return true;
}

/* One member leaves a group, the last is another rank, or one is in it twice. */
static bool wrong_member(victim *v) {
    hp_group *g = &v->p->group[roll(&v->d, 0, v->p->n_group - 1)];
    int32_t *last = &v->p->member[g->first + g->n - 1];
    const int kind = roll(&v->d, 0, 2);
    if (kind == 0 && g->n > 1)
        g->n--;
    else if (kind == 1 && *last < v->p->n_role - 1)
        ++*last;
    else if (g->n > 1)
        *last = last[-1];
    else
        return false;
    return true;
}

/* Two messages of the same size carry each other's content. */
static bool swapped_messages(victim *v) {
    hp_task *a = pick(v, is_send);
    for (hp_task *b = v->r->task; a && b < v->r->task + v->r->n_task; b++) {
        int32_t *x = &v->r->operand[a->operand], *y = &v->r->operand[b->operand];
        if (b == a || b->op != HP_TASK_SEND || b->count != a->count || *x == *y) continue;
        const int32_t id = *x;
        *x = *y;
        *y = id;
        return true;
    }
    return false;
}

/* The box of a task's tensor lies one further along some axis. */
static bool shifted_box(victim *v) {
    const hp_task *t = pick(v, is_forward);
    hp_box *box = &v->r->buffer[v->r->operand[t->operand + 2 * roll(&v->d, 0, 1)]].box;
    const int axis = roll(&v->d, HP_AXIS_N, HP_AXIS_W), by = coin(&v->d) ? 1 : -1;
    if (v->r->operand[t->operand] < 0 || hp_box_empty(box)) return false;
    box->lo[axis] += by;
    box->hi[axis] += by;
    return true;
}

/* A message's box is as large, but of another shape. */
static bool bent_box(victim *v) {
    const hp_task *t = pick(v, is_transfer);
    hp_box *b = t ? &v->r->buffer[v->r->operand[t->operand]].box : NULL;
    if (!b || hp_box_len(b, HP_AXIS_H) == hp_box_len(b, HP_AXIS_W)) return false;
    const int32_t h = hp_box_len(b, HP_AXIS_H);
    b->hi[HP_AXIS_H] = b->lo[HP_AXIS_H] + hp_box_len(b, HP_AXIS_W);
    b->hi[HP_AXIS_W] = b->lo[HP_AXIS_W] + h;
    return true;
}

static bool missing_zero(victim *v) {
    return drop(pick(v, is_zero));
}

static bool missing_copy(victim *v) {
    return drop(pick(v, is_copy));
}

static bool missing_forward(victim *v) {
    return drop(pick(v, is_forward));
}

/* Nobody waits for a message that is read. */
static bool missing_wait(victim *v) {
    const hp_task *t = pick(v, is_recv);
    hp_role *r = v->r;
    int kept = 0;
    if (!t) return false;
    for (int i = 0; i < r->n_task; i++) {
        const int from = r->dep_first[i];
        r->dep_first[i] = kept;
        for (int k = from; k < r->dep_first[i + 1]; k++)
            if (r->dep[k] != (int)(t - r->task)) r->dep[kept++] = r->dep[k];
    }
    r->dep_first[r->n_task] = r->n_dep = kept;
    return true;
}

static bool flipped_add(victim *v) {
    hp_task *t = pick(v, is_weights);
    if (t) t->flags ^= HP_FLAG_ADD;
    return t != NULL;
}

/* A layer reads another tensor. */
static bool wrong_operand(victim *v) {
    const hp_task *t = pick(v, is_forward);
    int32_t *x = &v->r->operand[t->operand + 2];
    for (int i = 0; i < v->r->n_buffer && *x >= 0; i++) {
        const int b = (*x + 1 + i) % v->r->n_buffer;
        if (v->r->buffer[b].kind != HP_BUF_TENSOR || v->r->buffer[b].what == v->r->buffer[*x].what) continue;
        *x = b;
        return true;
    }
    return false;
}

/* A layer reads its tensor of another micro-batch. */
static bool wrong_micro(victim *v) {
    const hp_task *t = pick(v, is_forward);
    int32_t *x = &v->r->operand[t->operand + 2];
    for (int b = HP_BUF_FIXED; b < v->r->n_buffer && *x >= 0; b++) {
        const hp_buffer *other = &v->r->buffer[b], *own = &v->r->buffer[*x];
        if (other->kind != own->kind || other->what != own->what || other->micro == own->micro) continue;
        *x = b;
        return true;
    }
    return false;
}

/* All ranks forget the same sum of gradients. */
static bool missing_sum(victim *v) {
    const hp_task *t = pick(v, is_gradient_sum);
    if (!t) return false;
    const int group = v->r->queue[t->queue].peer, tag = t->tag;
    for (int i = 0; i < v->p->n_role; i++)
        for (int k = 0; k < v->p->role[i].n_task; k++) {
            hp_task *o = &v->p->role[i].task[k];
            if (o->op == HP_TASK_ALLREDUCE && o->tag == tag && v->p->role[i].queue[o->queue].peer == group)
                drop(o);
        }
    return true;
}

static bool wrong_pixels(victim *v) {
    hp_task *t = pick(v, has_sums);
    if (t) t->count++;
    return t != NULL;
}

/* Two operands of one task lie at the same place. */
static bool shared_memory(victim *v) {
    const hp_task *t = pick(v, is_forward);
    hp_buffer *y = &v->r->buffer[v->r->operand[t->operand]];
    const int32_t x = v->r->operand[t->operand + 2];
    if (x < 0 || v->r->buffer[x].offset == y->offset || v->r->buffer[x].bytes == 0) return false;
    if (v->r->buffer[x].offset + y->bytes > v->r->arena_bytes) return false;
    y->offset = v->r->buffer[x].offset;
    return true;
}

static bool moved_parameter(victim *v) {
    hp_param_place *at = &v->r->place[roll(&v->d, 0, v->g->n_param - 1)];
    const int kind = roll(&v->d, 0, 3);
    if (!at->here) return false;
    if (kind == 0) at->offset += 16;
    if (kind == 1) at->count /= 2;
    if (kind == 2) at->group = at->group < 0 ? v->p->n_group : -1;
    if (kind == 3) at->here = 0;
    return true;
}

static bool little_scratch(victim *v) {
    v->r->buffer[HP_BUF_SCRATCH].bytes /= 4;
    return true;
}

static bool later_dependency(victim *v) {
    const int t = roll(&v->d, 0, v->r->n_task - 2);
    if (v->r->dep_first[t] == v->r->dep_first[t + 1]) return false;
    v->r->dep[v->r->dep_first[t]] = roll(&v->d, t, v->r->n_task - 1);
    return true;
}

static const struct fault {
    const char *name;
    bool (*inject)(victim *v);
} faults[] = {
    {"exchanged tags", exchanged_tags},
    {"missing transfer", missing_transfer},
    {"wrong count", wrong_count},
    {"wrong type", wrong_type},
    {"wrong peer", wrong_peer},
    {"wrong channel", wrong_channel},
    {"wrong group", wrong_group},
    {"wrong member", wrong_member},
    {"swapped messages", swapped_messages},
    {"shifted box", shifted_box},
    {"bent box", bent_box},
    {"missing zero", missing_zero},
    {"missing copy", missing_copy},
    {"missing forward", missing_forward},
    {"missing wait", missing_wait},
    {"flipped add", flipped_add},
    {"wrong operand", wrong_operand},
    {"wrong micro-batch", wrong_micro},
    {"missing sum", missing_sum},
    {"wrong pixels", wrong_pixels},
    {"shared memory", shared_memory},
    {"moved parameter", moved_parameter},
    {"little scratch", little_scratch},
    {"later dependency", later_dependency},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static const char *const strategies[] = {
    "dp=2,stages=3,micro=4,sched=1f1b",
    "stages=4,micro=8,sched=gpipe",
    "dp=2,stages=2,chunks=2,micro=4",
    "dp=4,stages=2,micro=2,sched=1f1b",
    "sp=2x2,micro=2",
    "sp=2x2:1x2,stages=3,dp=2",
    "stages=3,sched=gems,gems=4",
    "sp=2x1,stages=2,sched=gems,dp=2",
    "cp=2,micro=2",
    "sp=3x1,stages=2,ldp=2,halo=2",
    "sp=2x2,stages=2,tail=shared,bn=all,dp=2",
    "sp=5x1,fuse=4k",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

/* --- laws --- */

/* Is the fault seen, and does the message say what and where? */
static void expect_caught(const victim *v, const char *fault, const char *strategy, int seed) {
    hp_error err = {HP_OK, ""};
    if (hp_program_check(v->p, v->g, &err) != HP_EPLAN)
        fail_msg("%s in rank %d of %s, seed %d, was not caught", fault, v->role, strategy, seed);
    if (strncmp(err.text, "E-", 2) != 0 ||
        (!strstr(err.text, "rank") && !strstr(err.text, "group") && !strstr(err.text, "parameter")))
        fail_msg("no code or place: %s", err.text);
}

static void seeded_faults_are_all_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_graph *g = NULL;
    int caught[FAULTS] = {0}, total = 0;
    assert_int_equal(hp_net_build(arena, "resnet18", 70, 64, 10, &g, &err), HP_OK);
    for (int i = 0; i < STRATEGIES; i++) {
        const hp_program *p = lower_text(arena, g, strategies[i]);
        if (hp_program_check(p, g, &err) != HP_OK) fail_msg("%s: %s", strategies[i], err.text);
        for (int seed = 0; seed < 4 * FAULTS; seed++) {
            const int f = seed % FAULTS;
            victim v = {.arena = hp_arena_new(), .g = g, .d = {(uint64_t)(i * 1000 + seed), 5000}};
            v.p = copy_program(v.arena, g, p);
            v.role = roll(&v.d, 0, p->n_role - 1);
            v.r = &v.p->role[v.role];
            if (faults[f].inject(&v)) {
                expect_caught(&v, faults[f].name, strategies[i], seed);
                caught[f]++;
                total++;
            }
            hp_arena_free(v.arena);
        }
    }
    for (int f = 0; f < FAULTS; f++)
        if (caught[f] < 3) fail_msg("only %d faults of kind %s", caught[f], faults[f].name);
    assert_true(total >= 600);
    hp_arena_free(arena);
}

/* Every dependency but those between a task and what it reads is gone: memory is taken over too early. */
static void unsafe_reuse_of_memory_is_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err;
    hp_graph *g = NULL;
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (int i = 0; i < STRATEGIES; i++) {
        hp_program *p = copy_program(arena, g, lower_text(arena, g, strategies[i]));
        hp_role *r = &p->role[0];
        memset(r->dep_first, 0, sizeof(int32_t) * (size_t)(r->n_task + 1));
        r->n_dep = 0;
        assert_int_equal(hp_check_memory(p, g, &err), HP_EPLAN);
        assert_non_null(strstr(err.text, "E-RACE"));
    }
    hp_arena_free(arena);
}

/* --- damage of any kind --- */

/* A random word of a random array of the program, except for the numbers that say how long the arrays are. */
static int32_t *random_word(victim *v) {
    hp_role *r = v->r;
    const struct {
        void *at;
        size_t bytes;
    } part[] = {
        {r->task, sizeof *r->task * (size_t)r->n_task},
        {r->task, sizeof *r->task * (size_t)r->n_task},
        {r->buffer, sizeof *r->buffer * (size_t)r->n_buffer},
        {r->buffer, sizeof *r->buffer * (size_t)r->n_buffer},
        {r->operand, sizeof *r->operand * (size_t)r->n_operand},
        {r->dep_first, sizeof *r->dep_first * (size_t)(r->n_task + 1)},
        {r->dep, sizeof *r->dep * (size_t)r->n_dep},
        {r->queue, sizeof *r->queue * (size_t)r->n_queue},
        {r->place, sizeof *r->place * (size_t)v->g->n_param},
        {r->pack_forward, sizeof *r->pack_forward * (size_t)v->g->n_layer},
        {r->slot, sizeof *r->slot * (size_t)r->n_slot},
        {v->p->group, sizeof *v->p->group * (size_t)v->p->n_group},
        {v->p->member, sizeof *v->p->member * (size_t)v->p->n_member},
        {v->p, offsetof(hp_program, n_role)},
        {&r->trained_elems, 3 * sizeof(int64_t)},
    };
    const int k = roll(&v->d, 0, (int)(sizeof part / sizeof *part) - 1);
    if (part[k].bytes < sizeof(int32_t)) return NULL;
    return (int32_t *)part[k].at + roll(&v->d, 0, (int)(part[k].bytes / sizeof(int32_t)) - 1);
}

static int32_t random_value(dice *d, int32_t old) {
    static const int32_t extreme[] = {0, -1, 1, INT32_MAX, INT32_MIN, 1 << 20, 255, 65536};
    switch (roll(d, 0, 3)) {
    case 0:
        return extreme[roll(d, 0, 7)];
    case 1:
        return old + (coin(d) ? 1 : -1) * (old < 1000 && old > -1000);
    case 2:
        return old ^ (int32_t)(1u << roll(d, 0, 31));
    default:
        return (int32_t)(uint32_t)hp_rng_below(d->seed, 78, d->n++, UINT64_C(1) << 32);
    }
}

/* Whatever stands in a file, the checker answers; under the sanitizers, without touching what it may not. */
static void damage_of_any_kind_is_survived(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    int refused = 0;
    for (int seed = 0; seed < 1500; seed++) {
        victim v = {.arena = hp_arena_new(), .d = {(uint64_t)seed, 6000}};
        v.g = random_net(v.arena, (uint64_t)(seed % 30), 4);
        const hp_strategy s = random_strategy_of(&v.d, v.g, 4, 16, DRAW_ALL);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 4), .place = true};
        hp_program *whole = NULL;
        assert_int_equal(hp_lower(v.arena, v.g, &s, &o, &whole, &err), HP_OK);
        for (int k = 0; k < 8; k++) {
            v.p = copy_program(v.arena, v.g, whole);
            v.r = &v.p->role[roll(&v.d, 0, whole->n_role - 1)];
            for (int n = roll(&v.d, 1, 3); n > 0; n--) {
                int32_t *word = random_word(&v);
                if (word) *word = random_value(&v.d, *word);
            }
            refused += hp_program_check(v.p, v.g, &err) != HP_OK;
        }
        hp_arena_free(v.arena);
    }
    assert_true(refused > 6000);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeded_faults_are_all_caught),
        cmocka_unit_test(unsafe_reuse_of_memory_is_caught),
        cmocka_unit_test(damage_of_any_kind_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
