/* test_typed.c - the command line is checked first: before the machine, before a job waits in a queue, and in
 * the plan's terms. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>

/* Makes a plan for a remote machine. */
static void make_plans(words *w) {
    hplan(w, 0, "simulate --net cnn --image 28 --gpus 2 --machine thesis-a100 --strategy dp=2 --out far.db");
    hplan(
        w, 0,
        "simulate --net cnn --image 28 --gpus 2 --machine thesis-a100 --prec bf16 --strategy dp=2,prec=bf16 "
        "--out bf16.db");
}

static void wrong_options_come_before_the_machine(void **state) {
    words *w = *state;
    static const words_row rows[] = {
        {2, "run far.db --lr abc", NULL, "--lr"},
        {2, "run far.db --steps many", NULL, "--steps"},
        {2, "run far.db --weight-decay 1e-4x", NULL, "--weight-decay"},
        {65, "run far.db --data no/such/folder", NULL, "--data no/such/folder: No such file"},
        {65, "run far.db --init none.safetensors", NULL, "--init none.safetensors: No such"},
        {65, "run far.db --input none.tif", NULL, "--input none.tif: No such"},
        {3, "run far.db --input slide:none.tif,level=1", NULL, "far.db is for thesis-a100"},
        {3, "run far.db --lr 0.1 --data synthetic", NULL, "far.db is for thesis-a100"},
        {3, "run far.db", NULL, "far.db is for thesis-a100"}};
    make_plans(w);
    each_row(w, rows);
}

/* In that case, --dry-run says what would be started, and why not here. */
static void a_dry_run_works_where_the_machine_is_not(void **state) {
    words *w = *state;
    hplan(w, ANY_STATUS, "run far.db --dry-run");
    err_says(w, "note: run would stop here: far.db is for thesis-a100");
    assert_true(w->status == 0 || w->status == 69); /* there may be no executor */
    if (w->status == 0) out_says(w, "hplan-exec");
}

static void a_job_is_not_written_for_wrong_options(void **state) {
    words *w = *state;
    hplan(w, 2, "sbatch far.db -t 1:00:00 -- --dta tiles/ --epochs 90");
    err_says(w, "dta");
    out_lacks(w, "SBATCH");
    hplan(w, 2, "sbatch far.db -t 1:00:00 -- --lr fast");
    err_line(w, "--lr");
    hplan(w, 2, "sbatch far.db -t 1:00:00 -- second.db");
    hplan(w, 0, "sbatch far.db -t 1:00:00 -- --data tiles/ --epochs 90 --lr 0.1");
    out_says(w, "'--data' 'tiles/' '--epochs' '90' '--lr' '0.1'");
}

/* The cores beside a GPU read the images. */
static void jobs_have_the_cores_beside_their_gpus(void **state) {
    words *w = *state;
    hplan(w, 0,
          "simulate --net cnn --image 28 --machine 'nodes=2; node=4 x a100-40; cores=64' --strategy dp=8 "
          "--out cores.db");
    hplan(w, 0, "sbatch cores.db");
    out_says(w, "^#SBATCH --cpus-per-task=16$");
    err_empty(w);
    hplan(w, 0, "sbatch cores.db --threads 20");
    out_says(w, "^#SBATCH --cpus-per-task=20$");
    hplan(w, 0,
          "simulate --net cnn --image 28 --machine 'nodes=2; node=4 x a100-40' --strategy dp=8 --out few.db");
    hplan(w, 0, "sbatch few.db");
    out_says(w, "^#SBATCH --cpus-per-task=1$");
    err_line(w, "note: one core for each GPU reads all of its images");
}

static void why_answers_in_the_plans_precision(void **state) {
    words *w = *state;
    hplan(w, 0, "why bf16.db dp=1 --json");
    assert_string_equal(words_text(w, "asked/prec"), "bf16");
    hplan(w, 0, "why bf16.db dp=1,prec=fp32 --json");
    assert_string_equal(words_text(w, "asked/prec"), "fp32");
    hplan(w, 0, "why far.db dp=1 --json");
    assert_string_equal(words_text(w, "asked/prec"), "fp32");
}

static void words_of_a_plot_have_an_order(void **state) {
    words *w = *state;
    hplan(w, 2, "plot far.db timeline");
    err_line(w, "the kind comes before the files: hplan plot timeline far.db");
    hplan(w, 2, "plot timelines far.db");
    err_line(w, "did you mean 'timeline'");
}

static void a_plan_that_is_replaced_is_said(void **state) {
    words *w = *state;
    remove("new.db");
    hplan(w, 0, "simulate --net cnn --image 28 --machine thesis-a100 --strategy dp=1 --out new.db");
    out_says(w, "^wrote new.db \\(number 1 selected\\)$");
    hplan(w, 0, "simulate --net cnn --image 28 --machine thesis-a100 --strategy dp=1 --out new.db");
    out_says(w, "^wrote new.db \\(number 1 selected; it replaces the one that was there\\)$");
}

/* The number refers to a row of the table. */
static void the_next_question_is_of_a_row(void **state) {
    words *w = *state;
    static const char *const nets[] = {"cnn --image 28", "resnet18 --image 64", "unet:4 --image 64"};
    int asked = 0;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        char number[16];
        hplan(w, 0, "simulate --net %s --gpus 4 --machine thesis-a100 --out shown.db", nets[i]);
        words_match(w->out, "^next: hplan why shown.db ([0-9]+)$", number, sizeof number);
        if (*number) out_says(w, "^~? +%s [a-z]", number);
        asked += *number != 0;
    }
    assert_true(asked > 0);
}

/* A NIC whose rate no known link has gets some link's latency, which is reported unless it is given. */
static void an_assumed_latency_is_said(void **state) {
    words *w = *state;
    hplan(w, 0, "machine check 'nodes=4; node=4 x a100-80, nvlink=300GB/s; nic=1 x 25Gb/s'");
    out_says(w, "latency of [a-z-]+, [0-9.]+ us, between nodes");
    hplan(w, 0, "machine check 'nodes=4; node=4 x a100-80, nvlink=300GB/s; nic=1 x 25Gb/s, latency=5us'");
    out_lacks(w, "latency of");
    hplan(w, 0, "machine check 'nodes=4; node=4 x a100-80, nvlink=300GB/s; nic=1 x 200Gb/s'");
    out_lacks(w, "latency of");
    hplan(w, 0, "machine check 'nodes=1; node=4 x a100-80, nvlink=300GB/s'");
    out_lacks(w, "between nodes");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_options_come_before_the_machine),
                                       cmocka_unit_test(a_dry_run_works_where_the_machine_is_not),
                                       cmocka_unit_test(a_job_is_not_written_for_wrong_options),
                                       cmocka_unit_test(jobs_have_the_cores_beside_their_gpus),
                                       cmocka_unit_test(why_answers_in_the_plans_precision),
                                       cmocka_unit_test(words_of_a_plot_have_an_order),
                                       cmocka_unit_test(a_plan_that_is_replaced_is_said),
                                       cmocka_unit_test(the_next_question_is_of_a_row),
                                       cmocka_unit_test(an_assumed_latency_is_said)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
