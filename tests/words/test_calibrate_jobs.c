/* test_calibrate_jobs.c - the runs of `hplan calibrate` without a named network: jobs that can be made, for
 * every device. */
#include "cli/calibrate/calibrate_jobs.h"
#include "machines/device/device_kind.h"
#include "machines/machine.h"
#include "tests/support/words/words.h"

static void make_jobs(const hp_device_info *device, const char *machine, bool infer) {
    hp_error err = {HP_OK, ""};
    hp_machine m;
    hp_arena *arena = hp_arena_new();
    calibrate_jobs *jobs = calloc(1, sizeof *jobs);
    assert_non_null(jobs);
    jobs->device = device;
    jobs->most_images = 64;
    if (hp_machine_load(machine, &m, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_status s = infer ? calibrate_add_inference(arena, &m, NULL, 0, 0, jobs, &err)
                              : calibrate_add_nets(arena, &m, NULL, 0, 0, jobs, &err);
    if (s != HP_OK) fail_msg("%s on %s: %s", infer ? "inference" : "training", machine, err.text);
    assert_true(jobs->n > 0);
    free(jobs);
    hp_arena_free(arena);
}

static void networks_that_nobody_named_are_networks(void **state) {
    (void)state;
    for (int infer = 0; infer < 2; infer++) {
        make_jobs(&hp_devices[HP_DEVICE_CPU], "local", infer);
        make_jobs(&hp_devices[HP_DEVICE_CUDA], "dgx-h100", infer);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(networks_that_nobody_named_are_networks)};
    return cmocka_run_group_tests(tests, words_open, words_close);
}
