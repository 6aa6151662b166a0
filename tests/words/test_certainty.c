/* test_certainty.c - how hplan states its certainty: unknown facts stay unknown, and measurements of other
 * tasks do not apply to this one. */
#include "tests/support/words/words.h"
#include "traces/ledger.h"

#include "base/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A step of microseconds, on a machine without measurements. */
static void no_interval_is_nonsense(void **state) {
    words *w = *state;
    hplan(
        w, 0,
        "simulate --net gpt:1,1,1,1,2 --batch 1 --mode infer --machine local --strategy dp=1 --out tiny.db");
    out_says(w, "\\(not known\\)");
    out_says(w, "^number 1: how far off it may be is not known, 0%% of it measured$");
    hplan(w, 0, "simulate --net gpt:1,1,1,1,2 --batch 1 --mode infer --machine local --strategy dp=1 --json");
    assert_true(json_is_null(words_at(w, "candidates/0/step_low_s")));
    assert_true(json_is_null(words_at(w, "candidates/0/step_high_s")));
    hplan(w, 0, "why tiny.db 1");
    out_lacks(w, "^  interval +0");
    hplan(w, 0, "simulate --net resnet18 --image 64 --batch 4 --machine local --strategy dp=1 --json");
    assert_true(words_number(w, "candidates/0/step_low_s") > 0);
}

/* A text network's name says its size: the suggested calibration is taken. */
static void a_text_network_is_calibrated_by_its_name(void **state) {
    words *w = *state;
    char line[200];
    hplan(w, 0, "simulate --net gpt:1,16,2,8,32 --batch 2 --machine local --strategy dp=1");
    words_match(w->out, "^next: hplan (calibrate .*)$", line, sizeof line);
    assert_string_equal(line, "calibrate --net gpt:1,16,2,8,32 --batch 2 --gpus 1");
}

/* Its samples are sequences of ids. */
static void a_text_network_has_sequences(void **state) {
    words *w = *state;
    hplan(w, 0, "simulate --net gpt:1,16,2,8,32 --batch 2 --machine thesis-a100 --strategy dp=1");
    out_says(w, "^gpt:1,16,2,8,32, 8 tokens of 32 ids, ");
    out_says(w, " seq/s ");
    hplan(w, 0, "explain plan.db");
    out_says(w, "8 tokens of 32 ids");
    out_says(w, "1 replica x 1 micro-batch x 2; 1 rank on ");
    out_says(w, "GFLOP forward per sequence$");
    out_lacks(w, "pixels|per image");
    hplan(w, 0,
          "simulate --net gpt:1,16,2,8,32 --batch 4 --machine thesis-a100 --gpus 1,2 --strategy 'dp=*'");
    out_says(w, " seq/s ");
    hplan(w, 0, "simulate --net cnn --image 28 --batch 2 --machine thesis-a100 --strategy dp=1");
    out_says(w, "^cnn 28x28, 10 classes, ");
    out_says(w, " img/s ");
}

/* One fit, of small convolutions, does not cover a large network. */
static void what_was_measured_of_others_is_not_this(void **state) {
    words *w = *state;
    words_write(
        "small.cost", "%s",
        "hplan-cost 2\nmachine local\ndate 2026-01-02\n"
        "fit cpu bwd.conv f32 | measured 0.1 9 | launch:0 flops:7e11 bytes:0 bytes_least:1e4 bytes_most:1e5 "
        "intensity_least:1 intensity_most:2 fastest:1e10\n"
        "fit cpu fwd.conv f32 | measured 0.1 9 | launch:0 flops:0 bytes:1.74e10 bytes_least:1e4 "
        "bytes_most:1e5 intensity_least:1 intensity_most:2 fastest:1e10\n");
    hplan(w, 0,
          "simulate --net resnet18 --image 224 --batch 2 --machine local --strategy dp=1 --cost small.cost");
    out_says(w, "^number 1: 90%% of runs between .*, 0%% of it measured");
    out_says(w, "^next: hplan calibrate --net resnet18 --image 224 --batch 2 --gpus 1$");
    hplan(w, 0,
          "simulate --net resnet18 --image 224 --batch 2 --machine local --strategy dp=1 --cost small.cost "
          "--json");
    const double high_s = words_number(w, "candidates/0/step_high_s"),
                 low_s = words_number(w, "candidates/0/step_low_s");
    hplan(w, 0, "simulate --net resnet18 --image 224 --batch 2 --machine local --strategy dp=1 --json");
    const double empty_s = words_number(w, "candidates/0/step_s");
    assert_true(low_s < empty_s && empty_s < high_s);
    hplan(w, 0, "simulate --net resnet18 --image 224 --machine thesis-a100 --gpus 4 --strategy dp=4");
    out_lacks(w, "^next: hplan calibrate"); /* it is not here */
}

/* Share of the step, by tasks of that name, without measurements; 0: it is not in the list. */
static double unmeasured(words *w, const char *list, const char *task) {
    json_t *tasks = words_at(w, "%s", list);
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *one = json_array_get(tasks, i);
        if (!task || strcmp(json_string_value(json_object_get(one, "task")), task) == 0)
            return json_number_value(json_object_get(one, "guess")) +
                   json_number_value(json_object_get(one, "datasheet"));
    }
    return 0;
}

/* Guessed costs are named with their share of the step; measured ones are not. The plan stores them too. */
static void what_nobody_measured_is_named(void **state) {
    words *w = *state;
    static const char simulate[] =
        "simulate --net resnet18 --image 64 --batch 4 --machine local --strategy dp=1";
    hplan(w, 0, "%s --out guess.db", simulate);
    out_says(w, "^number 1: 100%% of the step by guesses: .*(fwd|bwd) conv [0-9]+%%");
    hplan(w, 0, "explain guess.db");
    out_says(w, "^100%% of the step by guesses: .*(fwd|bwd) conv [0-9]+%%");
    hplan(w, 0, "%s --json", simulate);
    const double guessed = unmeasured(w, "candidates/0/unmeasured", "fwd conv");
    assert_true(guessed > 0);
    hplan(w, 0, "explain guess.db --json");
    near_to(unmeasured(w, "unmeasured", "fwd conv"), guessed, 1e-6);
    words_write(
        "conv.cost", "%s",
        "hplan-cost 2\nmachine local\ndate 2026-01-02\n"
        "fit cpu fwd.conv f32 | measured 0.1 9 | launch:0 flops:7e11 bytes:0 bytes_least:1 bytes_most:1e12 "
        "intensity_least:0.01 intensity_most:1e6 fastest:1e12\n");
    hplan(w, 0, "%s --cost conv.cost --json", simulate);
    double sum = words_number(w, "candidates/0/measured_share");
    assert_true(sum > 0.005); /* some of the convolutions are included */
    for (size_t i = 0; i < json_array_size(words_at(w, "candidates/0/unmeasured")); i++)
        sum += words_number(w, "candidates/0/unmeasured/%d/guess", (int)i);
    near_to(sum, 1, 0.01); /* on one rank, nothing is published for local machines, and nobody waits */
}

/* Writes runs of this machine, `inside` of 20 within their intervals. */
static void write_ledger_of(const char *net, const char *image, int inside) {
    char here[128], path[600];
    setenv("XDG_STATE_HOME", "state", 1);
    remove(hp_ledger_path(path, sizeof path));
    hp_host_processor(here, sizeof here);
    for (int i = 0; i < 20; i++) {
        const hp_ledger_entry e = {.started = "2026-01-02T03:04:05Z",
                                   .plan_hash = "x",
                                   .net = net,
                                   .image = image,
                                   .mode = "train",
                                   .batch = 4,
                                   .strategy = "dp=1",
                                   .ranks = 1,
                                   .steps = 5,
                                   .device = "cpu",
                                   .machine = "local",
                                   .host = "h",
                                   .processor = here,
                                   .cost = "c",
                                   .cost_hash = "h",
                                   .cost_processor = here,
                                   .predicted_s = 1,
                                   .low_s = 0.8,
                                   .high_s = 1.2,
                                   .quiet_s = 1,
                                   .measured_s = i < inside ? 1 : 5,
                                   .equal_speed_s = i < inside ? 1 : 5,
                                   .arith = 1,
                                   .l2 = 1,
                                   .dram = 1,
                                   .availability = 1,
                                   .version = "0"};
        assert_int_equal(hp_ledger_append(path, &e, NULL), HP_OK);
    }
}

/* Two of 20 outside is what 90 % means; seven are not. */
static void a_ledger_that_covers_little_is_not_ok(void **state) {
    words *w = *state;
    for (int inside = 0; inside <= 20; inside++) {
        write_ledger_of("resnet18", "64x64", inside);
        hplan(w, 0, "doctor");
        const bool ok = inside >= 14; /* P(at most 14 of 20 at 0.9) = 0.0113; for 13, 0.0024 */
        out_says(w, ok ? "^ ok +history" : "^ -- +history");
        if (!ok) out_says(w, "^ next: hplan calibrate --net resnet18 --image 64x64 --batch 4$");
    }
    write_ledger_of("gpt:1,16,2,8,32", "8x1", 0);
    hplan(w, 0, "doctor");
    out_says(w, "^ next: hplan calibrate --net gpt:1,16,2,8,32 --batch 4$");
}

/* For an 8-bit network, all layers that stay real are listed, in text and JSON. */
static void layers_that_stay_real_are_named(void **state) {
    words *w = *state;
    hplan(w, 0,
          "simulate --net vit-b16 --image 32 --mode infer --strategy prec=int8 --machine local --batch 1 "
          "--json");
    const int n = words_length(w, "real_layers");
    assert_true(n > 24); /* a norm and attention in each of twelve layers at least */
    char *last = strdup(words_text(w, "real_layers/%d", n - 1));
    hplan(w, 0,
          "simulate --net vit-b16 --image 32 --mode infer --strategy prec=int8 --machine local --batch 1");
    out_says(w, "^int8: %d of [0-9]+ layers stay real: ", n);
    assert_non_null(strstr(w->out, last));
    for (int i = 0; i < 12; i++) out_says(w, "encoder_layer_%d.ln_2", i);
    out_lacks(w, "^ .{80}.*ln_"); /* lines of 80 columns */
    free(last);
    hplan(w, 0,
          "simulate --net resnet18 --image 64 --mode infer --strategy prec=int8 --machine local --batch 1 "
          "--float-layers conv1,layer2.0.conv1");
    out_says(w, "stay real: conv1, .*layer2.0.conv1");
    hplan(w, 0,
          "simulate --net resnet18 --image 64 --mode infer --strategy dp=1 --machine local --batch 1 --json");
    assert_true(json_is_null(words_at(w, "real_layers")));
}

/* ZeRO's blocks may take more than its parts save. */
static void zero_that_saves_nothing_says_so(void **state) {
    words *w = *state;
    static const char *const nets[] = {"cnn", "resnet18", "mobilenetv2"};
    int said = 0, asked = 0;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        hplan(w, 0, "simulate --net %s --image 64 --machine thesis-a100 --strategy dp=2,stages=2 --json",
              nets[i]);
        const double without = words_number(w, "candidates/0/memory_bytes");
        for (int zero = 1; zero <= 3; zero++, asked++) {
            hplan(
                w, 0,
                "simulate --net %s --image 64 --machine thesis-a100 --strategy dp=2,stages=2,zero=%d --json",
                nets[i], zero);
            const bool more = words_number(w, "candidates/0/memory_bytes") >= without,
                       says = strstr(w->out, "saves no memory here") != NULL;
            assert_int_equal(says, more);
            said += says;
        }
    }
    assert_true(said > 0 && said < asked);
    hplan(w, 0, "simulate --net cnn --image 64 --machine thesis-a100 --strategy dp=2,stages=2,zero=3");
    out_says(w, "^note: zero=3 saves no memory here");
}

/* Threads that would not compute. Without an executor, the dry run ends after that. */
static void threads_that_do_nothing_say_so(void **state) {
    words *w = *state;
    hplan(w, 0,
          "simulate --net cnn --image 28 --batch 2 --mode infer --machine local --strategy dp=1 --out i.db");
    hplan(w, ANY_STATUS, "run i.db --threads 2 --dry-run");
    err_says(w, "--threads 2: in inference a rank computes with one thread.*--strategy dp=2");
    hplan(w, ANY_STATUS, "run i.db --dry-run");
    err_lacks(w, "--threads");
    hplan(w, 0, "simulate --net cnn --image 28 --batch 2 --machine local --strategy dp=1 --out t.db");
    hplan(w, ANY_STATUS, "run t.db --threads 2 --dry-run");
    err_lacks(w, "--threads");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_interval_is_nonsense),
                                       cmocka_unit_test(what_was_measured_of_others_is_not_this),
                                       cmocka_unit_test(a_text_network_is_calibrated_by_its_name),
                                       cmocka_unit_test(a_text_network_has_sequences),
                                       cmocka_unit_test(what_nobody_measured_is_named),
                                       cmocka_unit_test(a_ledger_that_covers_little_is_not_ok),
                                       cmocka_unit_test(threads_that_do_nothing_say_so),
                                       cmocka_unit_test(layers_that_stay_real_are_named),
                                       cmocka_unit_test(zero_that_saves_nothing_says_so)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
