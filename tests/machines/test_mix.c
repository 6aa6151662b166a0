/* test_mix.c - machines whose devices differ: which device is which, text in both directions, and rejected
 * input. */
#include "machines/machine.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static hp_machine parsed(const char *text) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_parse(text, "text", &m, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    return m;
}

/* Read back from its text, it is the same, device by device. */
static void assert_round_trip(const hp_machine *m) {
    hp_arena *a = hp_arena_new();
    const char *text = hp_machine_text(a, m);
    const hp_machine back = parsed(text);
    assert_string_equal(hp_machine_text(a, &back), text);
    assert_int_equal(hp_machine_classes(&back), hp_machine_classes(m));
    for (int d = 0; d < hp_machine_devices(m); d++) {
        const hp_device_class *x = hp_machine_class(m, hp_machine_class_at(m, d)),
                              *y = hp_machine_class(&back, hp_machine_class_at(&back, d));
        assert_string_equal(x->name, y->name);
        assert_true(x->memory_bytes == y->memory_bytes && x->flops_per_s == y->flops_per_s &&
                    x->bytes_per_s == y->bytes_per_s);
        assert_true(hp_machine_speed_at(m, d) == hp_machine_speed_at(&back, d));
    }
    hp_arena_free(a);
}

/* want: a letter per device, the first of its class's name; digits: its speed in tenths, 'f' for full. */
static void assert_devices(const char *text, const char *want, const char *speeds) {
    const hp_machine m = parsed(text);
    assert_int_equal(hp_machine_devices(&m), strlen(want));
    for (int d = 0; want[d]; d++) {
        const double speed = speeds[d] == 'f' ? 1 : 0.1 * (speeds[d] - '0');
        if (hp_machine_class(&m, hp_machine_class_at(&m, d))->name[0] != want[d])
            fail_msg("%s: device %d is a %s", text, d,
                     hp_machine_class(&m, hp_machine_class_at(&m, d))->name);
        if (hp_machine_speed_at(&m, d) < speed - 1e-12 || hp_machine_speed_at(&m, d) > speed + 1e-12)
            fail_msg("%s: device %d at %g", text, d, hp_machine_speed_at(&m, d));
    }
    assert_round_trip(&m);
}

static void every_device_is_of_its_class(void **state) {
    (void)state;
    assert_devices("nodes=2; node=2 x a100-80 + 1 x v100-16", "aavaav", "ffffff");
    assert_devices("nodes=1 + 2; node=2 x a100-80 | 1 x v100-16 + 1 x h100", "aavhvh", "ffffff");
    assert_devices("nodes=2; node=1 x h100 + 1 x a100-40 + 1 x h100", "hahhah", "ffffff");
    assert_devices("nodes=2 + 1; node=2 x t4 | 2 x T4; slow=1:50%, 2.1:70%, 2:90%", "tttttt", "ff5597");
    assert_devices("nodes=1; node=1 x fast + 1 x tiny; cpu; device=fast, memory=8GB, fp32=80GFLOP/s, "
                   "bandwidth=9GB/s; device=tiny, memory=8GB, fp32=20GFLOP/s, bandwidth=9GB/s",
                   "ft", "ff");
}

/* The statement about a single device takes precedence, wherever it is. */
static void a_device_goes_before_its_node(void **state) {
    (void)state;
    assert_devices("nodes=2; node=2 x t4; slow=1:50%, 1.0:80%", "tttt", "ff85");
    assert_devices("nodes=2; node=2 x t4; slow=1.0:80%, 1:50%", "tttt", "ff85");
}

static void each_class_has_its_data_sheet_and_its_clause(void **state) {
    (void)state;
    const hp_machine m = parsed("nodes=1; node=2 x a100-80 + 2 x v100-16; device=v100-16, memory=12GB"),
                     a = parsed("nodes=1; node=4 x a100-80"), v = parsed("nodes=1; node=4 x v100-16, nvlink");
    assert_true(hp_machine_class(&m, 0)->memory_bytes == a.device.memory_bytes);
    assert_true(hp_machine_class(&m, 0)->flops_per_s == a.device.flops_per_s);
    assert_true(hp_machine_class(&m, 1)->memory_bytes == 12000000000);
    assert_true(hp_machine_class(&m, 1)->flops_per_s == v.device.flops_per_s);
    assert_true(hp_machine_class(&m, 1)->bytes_per_s == v.device.bytes_per_s);
    const hp_machine one = hp_machine_of_class(&m, 1);
    assert_false(hp_machine_mixed(&one));
    assert_true(one.device.memory_bytes == 12000000000);
}

/* Machines of one class keep their text, so hashes of plans do not change. */
static void alike_devices_leave_no_trace(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_machine plain = parsed("name=x; nodes=3; node=4 x a100-80"),
                     twice = parsed("name=x; nodes=1 + 2; node=2 x a100-80 + 2 x A100-80 | 4 x a100-80");
    assert_false(hp_machine_mixed(&twice));
    assert_string_equal(hp_machine_text(a, &plain), hp_machine_text(a, &twice));
    assert_null(strstr(hp_machine_text(a, &plain), "slow"));
    hp_arena_free(a);
}

static void changes_mean_what_they_name(void **state) {
    (void)state;
    static const struct {
        const char *from, *change, *to;
    } cases[] = {
        {"nodes=4; node=2 x a100-80", "slow=1:50%", "nodes=4; node=2 x a100-80; slow=1:50%"},
        {"nodes=4; node=2 x a100-80; slow=1:50%", "slow=2.1:70%, 3:10%",
         "nodes=4; node=2 x a100-80; slow=2.1:70%, 3:10%"},
        {"nodes=4; node=2 x a100-80; slow=1:50%", "slow=", "nodes=4; node=2 x a100-80"},
        {"nodes=4; node=1 x a100-80 + 1 x v100-16", "v100.memory=12G",
         "nodes=4; node=1 x a100-80 + 1 x v100-16; device=v100-16, memory=12GB"},
        {"nodes=4; node=1 x a100-80 + 1 x v100-16", "a100.memory=40G",
         "nodes=4; node=1 x a100-80 + 1 x v100-16; device=a100-80, memory=40GB"},
        {"nodes=4; node=1 x a100-80 + 1 x v100-16", "nodes=8", "nodes=8; node=1 x a100-80 + 1 x v100-16"},
        {"nodes=4; node=1 x a100-80 + 1 x v100-16", "node=2 x a100-80", "nodes=4; node=2 x a100-80"},
        {"nodes=4; node=2 x a100-80", "node=1 x a100-80 + 1 x v100-16",
         "nodes=4; node=1 x a100-80 + 1 x v100-16"}};
    hp_arena *a = hp_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_machine m = parsed(cases[i].from), want = parsed(cases[i].to);
        hp_error err = {0};
        if (hp_machine_set(&m, cases[i].change, &err) != HP_OK) fail_msg("%s: %s", cases[i].change, err.text);
        strcpy(m.name, "x");
        strcpy(want.name, "x");
        const char *text = hp_machine_text(a, &m);
        if (strcmp(text, hp_machine_text(a, &want)) != 0) fail_msg("%s gives %s", cases[i].change, text);
    }
    hp_arena_free(a);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {{"nodes=6; node=4 x a100-40 | 2 x h100 + 3 x l4", "4 and 5"},
               {"nodes=6; node=4 x a100-40 | 4 x h100", "how many of each"},
               {"nodes=6 + 1; node=4 x a100-40", "2 numbers"},
               {"nodes=6 + 1 + 1; node=4 x a100-40 | 4 x h100", "3 numbers"},
               {"nodes=6 + 0; node=4 x a100-40 | 4 x h100", "from 1"},
               {"nodes=2; node=4 x a100-40 + x h100", "K x DEVICE"},
               {"nodes=2; node=4 x a100-40 +", "K x DEVICE"},
               {"nodes=2; node=4 x a100-40 + 0 x h100", "from 1"},
               {"nodes=2; node=1.5 x a100-40 + 1 x h100", "whole number"},
               {"nodes=2; node=1 x a + 1 x b + 1 x c + 1 x d + 1 x e", "at most 4"},
               {"nodes=2; node=2 x a100-80; slow=2:50%", "2 nodes"},
               {"nodes=2; node=2 x a100-80; slow=0.2:50%", "2 devices"},
               {"nodes=2; node=2 x a100-80; slow=-1:50%", "slow place"},
               {"nodes=2; node=2 x a100-80; slow=0:120%", "1% to 100%"},
               {"nodes=2; node=2 x a100-80; slow=0:0%", "1% to 100%"},
               {"nodes=2; node=2 x a100-80; slow=0:nan%", "1% to 100%"},
               {"nodes=2; node=2 x a100-80; slow=0:50", "slow place"},
               {"nodes=2; node=2 x a100-80; slow=0:50% 1:60%", "slow place"},
               {"nodes=2; node=2 x a100-80; slow=0:50%; slow=1:50%", "twice"},
               {"nodes=2; node=1 x a100-80 + 1 x v100-16; device=h100, memory=1GB", "devices are called"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hp_error err = {0};
        hp_machine m;
        if (hp_machine_parse(bad[i].text, "x", &m, &err) != HP_EDATA) fail_msg("%s is accepted", bad[i].text);
        if (!strstr(err.text, bad[i].says)) fail_msg("%s: %s", bad[i].text, err.text);
    }
}

/* Whatever bytes are changed: what can be read is written and read again as the same. */
static void damaged_text_is_a_machine_or_refused(void **state) {
    (void)state;
    static const char first[] =
        "nodes=6 + 2; node=4 x a100-40 | 2 x h100 + 2 x l4; device=l4, memory=9GB; slow=3:70%, 5.0:80%";
    int read = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        char text[sizeof first];
        memcpy(text, first, sizeof first);
        for (uint64_t c = 0; c <= k % 3; c++) {
            const size_t from = (size_t)((double)(sizeof first - 1) * hp_rng_uniform(k, c, 0)),
                         to = (size_t)((double)(sizeof first - 1) * hp_rng_uniform(k, c, 1));
            text[to] =
                hp_rng_uniform(k, c, 2) < 0.8 ? first[from] : (char)(int)(1 + 255 * hp_rng_uniform(k, c, 3));
        }
        hp_machine m;
        hp_error err = {0};
        if (hp_machine_parse(text, "x", &m, &err) == HP_OK && hp_machine_devices(&m) < 4096) {
            assert_round_trip(&m);
            read++;
        }
    }
    assert_true(read > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_is_of_its_class),
        cmocka_unit_test(a_device_goes_before_its_node),
        cmocka_unit_test(each_class_has_its_data_sheet_and_its_clause),
        cmocka_unit_test(alike_devices_leave_no_trace),
        cmocka_unit_test(changes_mean_what_they_name),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(damaged_text_is_a_machine_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
