/* test_rates.c - learning rates against the closed forms of torch.optim.lr_scheduler (1.13:
 * _get_closed_form_lr), and refused words on the command line. */
#include "exec/train/rates.h"
#include "networks/graph/optimizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TOTAL = 100, WARMUP = 10 };
static const double LR = 0.3, LEAST = 0.01;

static hp_lr_schedule schedule(const hp_lr_words *w) {
    hp_lr_schedule s;
    hp_error err;
    if (hp_lr_parse(w, LR, &s, &err) != HP_OK) fail_msg("%s", err.text);
    return s;
}

static void close_to(double have, double want) {
    if (!(fabs(have - want) <= 1e-15)) fail_msg("%.17g, not %.17g", have, want);
}

/* LinearLR(start_factor=1/W, end_factor=1, total_iters=W-1): base (f + (1 - f) min(t, T) / T). */
static void the_warm_up_is_linear_lr(void **state) {
    (void)state;
    const hp_lr_schedule s = schedule(&(hp_lr_words){.warmup = "10"});
    for (int t = 0; t < TOTAL; t++) {
        const double f = 1.0 / WARMUP, done = (t < WARMUP - 1 ? t : WARMUP - 1) / (WARMUP - 1.0);
        close_to(hp_lr_at(&s, t, TOTAL), LR * (f + (1 - f) * done));
    }
}

/* CosineAnnealingLR(T_max, eta_min): eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2. */
static void cosine_is_cosine_annealing_lr(void **state) {
    (void)state;
    const hp_lr_schedule s = schedule(&(hp_lr_words){.schedule = "cosine", .warmup = "10", .min_lr = "0.01"});
    for (int t = WARMUP; t < TOTAL; t++)
        close_to(hp_lr_at(&s, t, TOTAL),
                 LEAST + (LR - LEAST) * (1 + cos(acos(-1) * (t - WARMUP) / (TOTAL - WARMUP))) / 2);
    close_to(hp_lr_at(&s, TOTAL, TOTAL), LEAST);
    close_to(hp_lr_at(&s, 2 * TOTAL, TOTAL), LEAST);
}

/* LinearLR(start_factor=1, end_factor=min/base, total_iters). */
static void linear_is_linear_lr(void **state) {
    (void)state;
    const hp_lr_schedule s = schedule(&(hp_lr_words){.schedule = "linear", .min_lr = "0.01"});
    for (int t = 0; t <= TOTAL; t++)
        close_to(hp_lr_at(&s, t, TOTAL), LR * (1 + (LEAST / LR - 1) * t / TOTAL));
}

/* MultiStepLR(milestones, gamma): base gamma^(milestones not after t). */
static void step_is_multi_step_lr(void **state) {
    (void)state;
    const hp_lr_schedule s =
        schedule(&(hp_lr_words){.schedule = "step", .lr_steps = "30,80", .lr_gamma = "0.25"});
    for (int t = 0; t < TOTAL; t++) close_to(hp_lr_at(&s, t, TOTAL), LR * pow(0.25, (t >= 30) + (t >= 80)));
}

/* A rate depends only on the step: a run resumed at step t has the same rate. */
static void equal_schedules_have_equal_texts(void **state) {
    (void)state;
    char a[HP_LR_TEXT], b[HP_LR_TEXT];
    const hp_lr_schedule x = schedule(&(hp_lr_words){.schedule = "cosine", .warmup = "10"}),
                         y = schedule(&(hp_lr_words){.schedule = "cosine", .warmup = "11"});
    assert_string_equal(hp_lr_text(&x, 100, a), hp_lr_text(&x, 100, b));
    assert_string_not_equal(hp_lr_text(&x, 100, a), hp_lr_text(&y, 100, b));
    assert_string_not_equal(hp_lr_text(&x, 100, a), hp_lr_text(&x, 101, b));
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const struct {
        hp_rate_words words;
        int32_t optimizer, clips;
        const char *says;
    } CASES[] = {{{.schedule = {.schedule = "cosin"}}, HP_SGD, 0, "constant, cosine, step, linear"},
                 {{.schedule = {.schedule = "step"}}, HP_SGD, 0, "at which steps"},
                 {{.schedule = {.lr_steps = "3"}}, HP_SGD, 0, "of --lr-schedule step"},
                 {{.schedule = {.schedule = "step", .lr_steps = "5,3"}}, HP_SGD, 0, "after the one before"},
                 {{.schedule = {.min_lr = "0.1"}}, HP_SGD, 0, "falls to none"},
                 {{.schedule = {.schedule = "cosine", .min_lr = "7"}}, HP_SGD, 0, "above --lr"},
                 {{.schedule = {.warmup = "-1"}}, HP_SGD, 0, "--warmup"},
                 {{.betas = "0.9,0.95"}, HP_SGD, 0, "of adamw"},
                 {{.betas = "0.9"}, HP_ADAMW, 0, "two numbers"},
                 {{.betas = "0.9,1"}, HP_ADAMW, 0, "below 1"},
                 {{.momentum = "0.9"}, HP_ADAMW, 0, "of sgd"},
                 {{.eps = "-1"}, HP_ADAMW, 0, "--adam-eps"},
                 {{.clip_norm = "1"}, HP_ADAMW, 0, "no norm"},
                 {{.clip_norm = "0"}, HP_ADAMW, 1, "nothing would train"},
                 {{.lr = "x"}, HP_ADAMW, 1, "--lr"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const hp_graph g = {.optimizer = CASES[i].optimizer, .clips = CASES[i].clips};
        hp_rates r;
        hp_error err = {HP_OK, ""};
        assert_int_equal(hp_rates_parse(&CASES[i].words, &g, &r, &err), HP_EUSAGE);
        if (!strstr(err.text, CASES[i].says)) fail_msg("'%s' does not say '%s'", err.text, CASES[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_warm_up_is_linear_lr),
        cmocka_unit_test(cosine_is_cosine_annealing_lr),
        cmocka_unit_test(linear_is_linear_lr),
        cmocka_unit_test(step_is_multi_step_lr),
        cmocka_unit_test(equal_schedules_have_equal_texts),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
