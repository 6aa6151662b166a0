/* test_search.c - a search misses nothing that fits, shows a row for each family and for plain data
 * parallelism with its reason, and states its certainty. Stopping a search: tests/cli/cli_search.sh. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ODD    "--machine odd.machine "
#define RESNET "--net resnet18 --image 224 "

/* A custom machine with odd numbers of devices. */
static int make_machine(void **state) {
    if (words_open(state)) return -1;
    words_write("odd.machine", "name=odd; nodes=4; node=3 x NVIDIA L40S\n");
    return 0;
}

/* Found as a candidate, not only named as a fix. */
static void what_alone_fits_is_found(void **state) {
    words *w = *state;
    hplan(w, 0, "simulate --net unet:64 --image 4096 --machine thesis-a100 --gpus 1 --prec bf16");
    out_says(w, "recompute=");
    out_says(w, "E-MEM: a rank needs"); /* plain data parallelism has its reason */
}

/* Plain data parallelism has a row, possible or not. */
static void is_sure_of(words *w, const char *net, int gpus) {
    hplan(w, 0, "simulate --net %s " ODD "--gpus %d --out odd.db", net, gpus);
    out_says(w, "^[~ ][ 0-9]+ dp=%d[, ]|^  - dp=%d ", gpus, gpus);
    /* kernels too small for their device take as long when halved, which bounds do not know */
    out_says(w, "none of those ruled out is faster than number 1|"
                "^[0-9]+ not simulated: at most 1?[0-9](\\.[0-9])?%% faster");
}

static void odd_counts_are_searched(void **state) {
    words *w = *state;
    static const int few[] = {1, 3, 5}, many[] = {1, 3, 7, 12};
    for (int i = 0; i < 3; i++) is_sure_of(w, "cnn --image 28", few[i]);
    out_says(w, "^  - "); /* a family without a candidate */
    out_says(w, "not in the space");
    if (!words_all("searches for densenet121 on up to 12 devices")) return;
    for (int i = 0; i < 4; i++) is_sure_of(w, "densenet121 --image 256", many[i]);
    out_says(w, "^  - ");
    out_says(w, "not in the space");
}

static void where_nothing_fits_no_plan_is_written(void **state) {
    words *w = *state;
    hplan(w, 3, "simulate " RESNET ODD "--gpus 3 --memory-limit 20M --out none.db");
    assert_int_not_equal(access("none.db", F_OK), 0);
    err_says(w, "no feasible plan|none of the strategies");
}

/* The rows have the numbers that `why` and `run --plan` use: --top shows those in between. */
static void top_shows_the_rows_between(words *w, const char *what) {
    static const char row[] = "^[~ ][ 0-9]{2} [a-z]+=";
    hplan(w, 0, "simulate %s --out six.db", what);
    const int shown = words_count(w->out, row);
    hplan(w, 0, "simulate %s --top 10 --out six.db", what);
    const int more = words_count(w->out, row);
    if (more <= shown || more < 10) fail_msg("--top 10 shows %d rows, without it %d", more, shown);
}

static void json_says_how_sure_it_is(words *w, const char *what) {
    hplan(w, 0, "simulate %s --json --out six.db", what);
    near_to(words_number(w, "open"), 0, 0);
    near_to(words_number(w, "gap"), 0, 0);
    assert_true(json_is_false(words_at(w, "stopped")));
    near_to(words_number(w, "simulated") + words_number(w, "cut_off"), words_number(w, "valid"), 0);
}

static void rows_are_numbered_and_counted(void **state) {
    words *w = *state;
    top_shows_the_rows_between(w, "--net cnn --image 28 --gpus 3 " ODD);
    json_says_how_sure_it_is(w, "--net cnn --image 28 --gpus 3 " ODD);
    if (!words_all("rows and figures of resnet18 on six devices")) return;
    top_shows_the_rows_between(w, RESNET ODD "--gpus 6");
    json_says_how_sure_it_is(w, RESNET ODD "--gpus 6");
}

/* Sorted by memory, nothing is called faster. */
static void is_sorted_by_memory(words *w, const char *net) {
    hplan(w, 0, "simulate --net %s --machine local --gpus 2 --sort memory --out memory.db", net);
    out_says(w, "is smaller than number 1");
    out_lacks(w, "faster than number");
}

/* ... marks are explained where they occur, and long intervals stay apart from their neighbours. */
static void what_is_said_of_a_table_is_true_of_it(void **state) {
    words *w = *state;
    is_sorted_by_memory(w, "cnn --image 28");
    if (words_all("resnet18 sorted by memory")) is_sorted_by_memory(w, "resnet18 --image 64");
    hplan(w, 0, "simulate --net unet:16 --image 64 " ODD "--gpus 1 --out one.db");
    out_lacks(w, "^~"); /* one row */
    out_lacks(w, "~not distinguishable");
    hplan(w, 0, "simulate --net cnn --image 28 " ODD "--mode infer --strategy dp=1 --batch 1 --out tiny.db");
    out_lacks(w, "[0-9]\\([0-9]");
}

/* `why` writes the interval as the table does. */
static void intervals_are_written_alike(words *w, const char *what) {
    char interval[64];
    hplan(w, 0, "simulate --net unet:64 --machine thesis-a100 %s --out slow.db", what);
    words_match(w->out, "\\(([0-9.]+-[0-9.]+)\\)", interval, sizeof interval);
    assert_true(*interval);
    hplan(w, 0, "why slow.db 1");
    out_says(w, "interval.* %s ms", interval);
}

static void why_writes_intervals_as_tables_do(void **state) {
    intervals_are_written_alike(*state, "--image 1024 --strategy dp=2,sp=2x1,micro=2 --batch 32");
    if (words_all("an interval of 32 devices")) {
        intervals_are_written_alike(*state, "--image 4096 --strategy dp=8,sp=2x2,micro=4 --batch 32");
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_alone_fits_is_found),
        cmocka_unit_test(odd_counts_are_searched),
        cmocka_unit_test(where_nothing_fits_no_plan_is_written),
        cmocka_unit_test(rows_are_numbered_and_counted),
        cmocka_unit_test(what_is_said_of_a_table_is_true_of_it),
        cmocka_unit_test(why_writes_intervals_as_tables_do),
    };
    return cmocka_run_group_tests(tests, make_machine, words_close);
}
