/* test_code_faults.c - programs with compressed messages and one seeded fault: sums over codes of gradients
 * are legal exactly as the lowering makes them. */
#include "plan/check/check.h"
#include "plan/codec/codecs.h"
#include "plan/lower/lower.h"
#include "plan/program/factors.h"
#include "tests/support/plan/collective_program.h"
#include "tests/support/plan/seed_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const strategies[] = {
    "dp=2,stages=2,micro=2,compress=allreduce:bf16+stage:fp16",
    "dp=3,fuse=4k,compress=allreduce:int8",
    "sp=2x2,micro=2,fuse=64k,compress=halo:int8+allreduce:fp16",
    "stages=2,sp=2x1,sched=gems,dp=2,fuse=16k,compress=halo:bf16+stage:int8+allreduce:int8",
    "dp=2,fuse=16k,compress=allreduce:powersgd:2",
    "dp=2,stages=2,micro=2,fuse=4M,compress=allreduce:powersgd:1+stage:bf16",
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

/* --- which tasks --- */

static int32_t *operand(const victim *v, const hp_task *t, int i) {
    return &v->r->operand[t->operand + i];
}

static hp_buffer *buffer_of(const victim *v, const hp_task *t, int i) {
    return &v->r->buffer[*operand(v, t, i)];
}

static bool is_encode(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_ENCODE;
}

static bool is_decode(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_DECODE;
}

static bool of_gradients(const victim *v, const hp_task *t) {
    return (t->op == HP_TASK_ENCODE || t->op == HP_TASK_DECODE) &&
           buffer_of(v, t, t->op == HP_TASK_DECODE)->what < 0;
}

static bool decodes_gradients(const victim *v, const hp_task *t) {
    return t->op == HP_TASK_DECODE && of_gradients(v, t);
}

static bool keeps_residual(const victim *v, const hp_task *t) {
    return is_encode(v, t) && t->n_operand > 2;
}

static bool sums_codes(const victim *v, const hp_task *t) {
    return hp_task_is_collective(t) && hp_buffer_is_code(buffer_of(v, t, 0));
}

static bool copies(const victim *v, const hp_task *t) {
    (void)v;
    return t->op == HP_TASK_COPY || t->op == HP_TASK_ACCUM;
}

/* Another task of the same kind with a different operand `i`. */
static const hp_task *another(const victim *v, task_filter *wanted, const hp_task *than, int i) {
    for (const hp_task *t = v->r->task; than && t < v->r->task + v->r->n_task; t++)
        if (wanted(v, t) && *operand(v, t, i) != *operand(v, than, i)) return t;
    return NULL;
}

static bool swap(int32_t *a, int32_t *b) {
    const int32_t was = *a;
    *a = *b;
    *b = was;
    return true;
}

/* --- faults: each returns false where the program has no place for it --- */

static bool missing_encode(victim *v) {
    return drop(v->r, pick_task(v, is_encode));
}

static bool missing_decode(victim *v) {
    return drop(v->r, pick_task(v, is_decode));
}

static bool missing_code_sum(victim *v) {
    return drop(v->r, pick_task(v, sums_codes));
}

/* All ranks forget all sums of codes. */
static bool missing_code_sums(victim *v) {
    bool any = false;
    for (int i = 0; i < v->p->n_role; i++) {
        v->r = &v->p->role[i];
        for (int t = v->r->n_task - 1; t >= 0; t--)
            if (sums_codes(v, &v->r->task[t])) any |= drop(v->r, &v->r->task[t]);
    }
    return any;
}

static bool other_range(victim *v) {
    hp_task *t = pick_task(v, of_gradients);
    if (t) t->code.first += 16;
    return t != NULL;
}

static bool fewer_values(victim *v) {
    hp_task *t = pick_task(v, is_encode);
    if (t) t->code.values--;
    return t != NULL;
}

static bool other_codec(victim *v) {
    const hp_task *t = pick_task(v, is_encode);
    if (!t) return false;
    hp_codec *c = &buffer_of(v, t, 0)->codec;
    *c = *c == HP_CODEC_BF16 ? HP_CODEC_FP16 : HP_CODEC_BF16;
    return true;
}

static bool no_codec(victim *v) {
    const hp_task *t = pick_task(v, is_decode);
    if (t) buffer_of(v, t, 1)->codec = (hp_codec)(coin(&v->d) ? 0 : 0xff03);
    return t != NULL;
}

static bool codec_of_values(victim *v) {
    const hp_task *t = pick_task(v, is_encode);
    if (t) buffer_of(v, t, 1)->codec = HP_CODEC_BF16;
    return t != NULL;
}

static bool swapped_codes(victim *v) {
    const hp_task *a = pick_task(v, decodes_gradients), *b = a ? another(v, decodes_gradients, a, 1) : NULL;
    return a && b && swap(operand(v, a, 1), operand(v, b, 1));
}

static bool swapped_residuals(victim *v) {
    const hp_task *a = pick_task(v, keeps_residual), *b = a ? another(v, keeps_residual, a, 2) : NULL;
    if (!a || !b) return false;
    *operand(v, a, 2) = *operand(v, b, 2); /* two codes share a residual */
    return true;
}

static bool no_residual(victim *v) {
    hp_task *t = pick_task(v, keeps_residual);
    if (t) t->n_operand--;
    return t != NULL;
}

static bool copied_code(victim *v) {
    const hp_task *t = pick_task(v, copies), *e = pick_task(v, is_encode);
    if (!t || !e) return false;
    *operand(v, t, 1) = *operand(v, e, 0);
    return true;
}

static bool decoded_twice(victim *v) {
    const hp_task *t = pick_task(v, decodes_gradients);
    const hp_task *e = t ? another(v, decodes_gradients, t, 1) : NULL;
    if (!t || !e) return false;
    v->r->task[e - v->r->task].code.first = t->code.first;
    v->r->task[e - v->r->task].code.values = t->code.values;
    *operand(v, e, 1) = *operand(v, t, 1);
    return true;
}

static bool factors(const victim *v, const hp_task *t) {
    (void)v;
    return hp_task_factors(t);
}

static bool reads_factors(const victim *v, const hp_task *t) {
    return factors(v, t) && t->op != HP_TASK_PROJECT;
}

static bool missing_factors(victim *v) {
    return drop(v->r, pick_task(v, coin(&v->d) ? factors : reads_factors));
}

static bool other_matrices(victim *v) {
    hp_task *t = pick_task(v, factors);
    if (t && coin(&v->d))
        t->code.first += 16;
    else if (t)
        t->code.values -= 16;
    return t != NULL;
}

static bool other_rank(victim *v) {
    const hp_task *t = pick_task(v, factors);
    if (t) buffer_of(v, t, t->op == HP_TASK_EXPAND)->codec += 1 << 8;
    return t != NULL;
}

/* P in place of Q, or another bucket's. */
static bool other_factors(victim *v) {
    const hp_task *t = pick_task(v, reads_factors);
    if (!t) return false;
    const hp_task *other = another(v, factors, t, 1);
    if (t->op == HP_TASK_FACTOR || !other || coin(&v->d)) return swap(operand(v, t, 0), operand(v, t, 1));
    *operand(v, t, 1) = *operand(v, other, 1);
    return true;
}

static bool other_kept(victim *v) {
    const hp_task *t = pick_task(v, factors);
    if (!t) return false;
    int32_t *kept = operand(v, t, t->n_operand - 1);
    for (int b = HP_BUF_FIXED; b < v->r->n_buffer; b++)
        if (v->r->buffer[b].kind == HP_BUF_CARRY && b != *kept) {
            *kept = b;
            return true;
        }
    return false;
}

static bool largest_code(victim *v) {
    const int32_t call = made_call_add(v->arena, v->p, (hp_call){.reduction = HP_REDUCE_MAX}, NULL);
    bool any = false;
    for (int i = 0; i < v->p->n_role; i++) {
        v->r = &v->p->role[i];
        for (int t = 0; t < v->r->n_task; t++)
            if (sums_codes(v, &v->r->task[t]) && v->r->task[t].op == HP_TASK_ALLREDUCE) {
                v->r->task[t].collective.call = call;
                any = true;
            }
    }
    return any;
}

static const struct fault code_faults[] = {
    {"missing encode", missing_encode},
    {"missing decode", missing_decode},
    {"missing sum of codes", missing_code_sum},
    {"missing sums of codes", missing_code_sums},
    {"other range", other_range},
    {"fewer values", fewer_values},
    {"other codec", other_codec},
    {"no codec", no_codec},
    {"codec of values", codec_of_values},
    {"swapped codes", swapped_codes},
    {"one residual of two codes", swapped_residuals},
    {"no residual", no_residual},
    {"copied code", copied_code},
    {"decoded twice", decoded_twice},
    {"largest code", largest_code},
    {"missing factors", missing_factors},
    {"other matrices", other_matrices},
    {"other rank", other_rank},
    {"other factors", other_factors},
    {"other kept", other_kept},
};
enum { CODE_FAULTS = sizeof code_faults / sizeof *code_faults };

/* --- the law --- */

static void faults_in_codes_are_caught(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_error err = {HP_OK, ""};
    hp_graph *g = NULL;
    int caught[CODE_FAULTS] = {0};
    assert_int_equal(hp_net_build(arena, "resnet18", 64, 64, 10, &g, &err), HP_OK);
    for (int i = 0; i < STRATEGIES; i++) {
        hp_strategy s;
        hp_program *p = NULL;
        assert_int_equal(hp_strategy_parse(strategies[i], &s, &err), HP_OK);
        const hp_lower_options o = {
            .mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = hp_strategy_batch(&s, 12), .place = true};
        if (hp_lower(arena, g, &s, &o, &p, &err) != HP_OK || hp_program_check(p, g, &err) != HP_OK)
            fail_msg("%s: %s", strategies[i], err.text);
        for (int seed = 0; seed < 4 * CODE_FAULTS; seed++) {
            const int f = seed % CODE_FAULTS;
            victim v = {.arena = hp_arena_new(), .g = g, .d = {(uint64_t)(i * 1000 + seed), 5100}};
            v.p = copy_program(v.arena, g, p);
            v.role = roll(&v.d, 0, p->n_role - 1);
            v.r = &v.p->role[v.role];
            if (code_faults[f].inject(&v)) {
                if (hp_program_check(v.p, g, &err) != HP_EPLAN)
                    fail_msg("%s in rank %d of %s, seed %d, was not caught", code_faults[f].name, v.role,
                             strategies[i], seed);
                caught[f]++;
            }
            hp_arena_free(v.arena);
        }
    }
    for (int f = 0; f < CODE_FAULTS; f++)
        if (caught[f] < 3) fail_msg("only %d faults of kind %s", caught[f], code_faults[f].name);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(faults_in_codes_are_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
