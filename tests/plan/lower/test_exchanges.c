/* test_exchanges.c - the sends of one exchange do not wait for each other: a tensor that several ranks read
 * whole is sent to each directly, and cut-out parts have separate memory until the last send. */
#include "plan/lower/lower.h"
#include "plan/strategy/sequence.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_net.h"
#include "tests/support/plan/token_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const hp_program *lowered(hp_arena *arena, dice *d, const hp_graph **g) {
    hp_strategy s = hp_strategy_default();
    s.tp = 1 << roll(d, 1, 3);
    s.micro = roll(d, 1, 2);
    s.recompute = coin(d) ? HP_RECOMPUTE_BOUNDARY : HP_RECOMPUTE_NONE;
    const int samples = s.micro * roll(d, 1, 2), width = s.tp * 8;
    const token_stack n = {.layers = 2,
                           .heads = s.tp,
                           .tokens = s.tp * roll(d, 1, 8),
                           .ids = 10,
                           .logits = 16,
                           .width = width,
                           .inner = 2 * width,
                           .causal = coin(d)};
    const hp_lower_options o = {.mode = HP_MODE_TRAIN, .dtype = HP_F32, .batch = samples, .place = true};
    hp_error err = {HP_OK, ""};
    hp_program *p = NULL;
    *g = hp_strategy_graph(arena, token_stack_build(arena, &n), &s);
    if (hp_lower(arena, *g, &s, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    return p;
}

static bool sends_within(const hp_role *r, int t) {
    const hp_queue *q = &r->queue[r->task[t].queue];
    return r->task[t].op == HP_TASK_SEND && (q->channel & HP_CHANNEL_WITHIN);
}

static bool same_exchange(const hp_role *r, int a, int b) {
    return r->task[a].message.position == r->task[b].message.position &&
           r->queue[r->task[a].queue].channel == r->queue[r->task[b].queue].channel;
}

/* Does `task` wait for `before`, directly or through others? */
static bool depends(const hp_role *r, int task, int before) {
    if (task <= before) return false;
    for (int i = r->dep_first[task]; i < r->dep_first[task + 1]; i++) {
        const int on = r->dep[i];
        if (on == before || depends(r, on, before)) return true;
    }
    return false;
}

/* The copy that made what a send sends; -1: it sends a tensor directly. */
static int maker(const hp_role *r, int send) {
    const int32_t buffer = r->operand[r->task[send].operand];
    for (int t = send - 1; t >= 0; t--)
        if (r->task[t].op == HP_TASK_COPY && r->operand[r->task[t].operand] == buffer) return t;
    return -1;
}

static int check_role(const hp_role *r, uint64_t seed) {
    int several = 0;
    for (int first = 0, n; first < r->n_task; first += n) { /* sends of one exchange are adjacent */
        for (n = 1; sends_within(r, first) && first + n < r->n_task && sends_within(r, first + n) &&
                    same_exchange(r, first, first + n);)
            n++;
        several += n > 1;
        for (int i = 0; i < n && sends_within(r, first); i++) {
            const int copy = maker(r, first + i);
            if (copy >= 0 && hp_box_equal(&r->buffer[r->operand[r->task[copy].operand]].box,
                                          &r->buffer[r->operand[r->task[copy].operand + 1]].box))
                fail_msg("seed %llu: task %d copies a whole tensor to send it", (unsigned long long)seed,
                         copy);
            for (int k = 0; k < i; k++)
                if (depends(r, first + i, first + k))
                    fail_msg("seed %llu: send %d waits for send %d of its exchange", (unsigned long long)seed,
                             first + i, first + k);
        }
    }
    return several;
}

static void sends_of_an_exchange_do_not_wait_for_each_other(void **state) {
    (void)state;
    int several = 0;
    for (uint64_t seed = 1; seed <= law_cases(20); seed++) {
        dice d = {seed, 8600};
        hp_arena *arena = hp_arena_new();
        const hp_graph *g = NULL;
        const hp_program *p = lowered(arena, &d, &g);
        for (int i = 0; i < p->n_role; i++) several += check_role(&p->role[i], seed);
        hp_arena_free(arena);
    }
    assert_true(several > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sends_of_an_exchange_do_not_wait_for_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
