/* test_largest.c - `--image max` and `--batch max` equal what trying one size after another finds; so does
 * the search below them, also where rounder sizes divide better than their neighbours. */
#include "tests/support/words/words.h"
#include "cli/options/largest.h"

#include <stdlib.h>
#include <string.h>

/* --- the search --- */

/* Fits up to `all`; multiples of `round` up to `rounder`. */
typedef struct rule {
    int64_t all, round, rounder;
    int calls;
} rule;

static bool fits(const rule *r, int64_t n) {
    return n <= r->all || (n % r->round == 0 && n <= r->rounder);
}

static hp_status ask(void *self, int64_t n, bool *yes, hp_error *err) {
    (void)err;
    rule *r = self;
    r->calls++;
    *yes = fits(r, n);
    return HP_OK;
}

static void the_largest_is_found_in_few_questions(void **state) {
    (void)state;
    enum { MOST = 300 };
    for (int64_t all = 0; all <= MOST; all++)
        for (int64_t round = 1; round <= 64; round *= 2) {
            /* one rounder size above what all fit, at most */
            rule r = {all, round, all ? (all / round + 1) * round : 0, 0};
            hp_error err = {HP_OK, ""};
            int64_t n = -1, best = 0;
            for (int64_t k = 1; k <= MOST; k++)
                if (fits(&r, k)) best = k;
            assert_int_equal(largest_find(ask, &r, MOST, &n, &err), HP_OK);
            assert_int_equal(n, best);
            assert_true(r.calls <= 60); /* of 300; two climbs of 2 log2(300), two times six rounder ones */
        }
}

/* --- the command --- */

/* Multiples of the step, up to twice the answer: the largest one with a plan. */
static long one_by_one(words *w, const char *option, const char *rest, long step, long largest) {
    long best = 0;
    for (long size = step; size <= 2 * largest; size += step) {
        hplan(w, ANY_STATUS, "simulate %s %ld %s --out one.db", option, size, rest);
        assert_true(w->status == 0 || w->status == 3);
        if (w->status == 0) best = size;
    }
    return best;
}

static void max_is_what_one_by_one_finds(void **state) {
    static const struct {
        const char *option, *rest;
        long step;
    } rows[] = {
        {"--image", "--net cnn --gpus 2 --machine local --memory-limit 20M", 32},
        {"--image", "--net cnn --strategy sp=2x1,stages=1 --machine local --batch 1 --memory-limit 30M", 32},
        {"--image", "--net vit:1,28,2,14 --strategy dp=1 --machine local --memory-limit 3M", 14},
        {"--batch", "--net cnn --image 28 --strategy dp=2,micro=3 --machine local --memory-limit 8M", 6},
        {"--batch", "--net cnn --image 28 --mode infer --strategy dp=2 --machine local --memory-limit 4M",
         2}};
    words *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hplan(w, 0, "simulate %s max %s --json", rows[i].option, rows[i].rest);
        const long size = (long)words_number(w, "largest/size");
        assert_string_equal(words_text(w, "largest/option"), rows[i].option);
        near_to(words_number(w, "largest/step"), (double)rows[i].step, 0);
        near_to(words_number(w, "largest/next"), (double)(size + rows[i].step), 0);
        assert_non_null(strstr(words_text(w, "largest/why"), "E-MEM"));
        assert_true(words_length(w, "candidates") > 0);
        assert_true(size >= 2 * rows[i].step); /* a space worth the name */
        assert_int_equal(one_by_one(w, rows[i].option, rows[i].rest, rows[i].step, size), size);
    }
}

static void the_answer_is_said(void **state) {
    words *w = *state;
    hplan(w, 0, "simulate --net cnn --gpus 2 --image max --machine local --memory-limit 20M");
    out_says(w, "^largest --image: [0-9]+, in steps of 32 \\([0-9]+ sizes tried\\)$");
    out_says(w, "^--image [0-9]+ has no plan: .*E-MEM: .* has 20.0 MB");
    out_says(w, "^wrote plan.db");
    hplan(w, 0,
          "simulate --net cnn --image 28 --batch max --strategy dp=1 --machine thesis-a100 --memory-limit "
          "900000T");
    out_says(w, "^largest --batch: 1073741824,"); /* 2^30, where it ends */
    out_says(w, "^larger ones were not tried$");
    hplan(w, 0,
          "simulate --net cnn --image max --strategy dp=1 --machine thesis-a100 --memory-limit 900000T");
    out_says(
        w,
        "has no plan: layer fc1: [0-9]+ inputs, at most 2147483647"); /* what a number of the format holds */
}

static void wrong_questions_name_the_right_ones(void **state) {
    static const words_row rows[] = {
        {2, "simulate --net cnn --batch max --gpus 2", NULL, "fix: one --strategy.* dp=2,micro=1"},
        {2, "simulate --net cnn --batch max --image max --strategy dp=2", NULL, "one of them"},
        {2, "simulate --net cnn --image max --gpus 1,2", NULL, "one number of --gpus"},
        {2, "simulate --net cnn --image max,64 --gpus 2", NULL, "'max' is not a size"},
        {2, "simulate --net cnn --image maximum --gpus 2", NULL, "'maximum' is not a size"},
        {2, "simulate --net cnn --batch max --strategy dp=* --gpus 2", NULL, "without a star"},
        {2, "simulate --net cnn --batch max --batch-per-gpu 4 --strategy dp=2", NULL, "give one"},
        {2, "simulate --net gpt2 --image max --gpus 2", NULL, "leave out --image"},
        {2, "simulate --net resnet5O --image max --gpus 2", NULL, "did you mean 'resnet50'"},
        {3, "simulate --net cnn --image max --gpus 2 --memory-limit 100k", NULL,
         "even 32 has no plan: .*E-MEM"}};
    each_row(*state, rows);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_is_found_in_few_questions),
                                              cmocka_unit_test(max_is_what_one_by_one_finds),
                                              cmocka_unit_test(the_answer_is_said),
                                              cmocka_unit_test(wrong_questions_name_the_right_ones)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
