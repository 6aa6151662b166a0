/* test_devices.c - the table of devices: each name leads to its row and nothing else does; every row can be
 * planned for; what rules reject on one device, they allow on the device that the fix names. */
#include "base/arena.h"
#include "networks/graph/precision.h"
#include "networks/nets/nets.h"
#include "plan/strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_name_leads_to_its_row_alone(void **state) {
    (void)state;
    for (int i = 0; i < HP_DEVICES; i++) {
        const hp_device_info *found = NULL;
        hp_error err = {.code = HP_OK, .text = ""};
        assert_int_equal(hp_devices[i].kind, i);
        assert_int_equal(hp_device_find(hp_devices[i].name, &found, &err), HP_OK);
        assert_ptr_equal(found, &hp_devices[i]);
    }
}

static void an_unknown_name_is_refused_with_those_there_are(void **state) {
    (void)state;
    static const char *const names[] = {"", "abacus", "CPU", "cpu ", "cp", "cuda0", "onednn"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const hp_device_info *found = &hp_devices[0];
        hp_error err = {.code = HP_OK, .text = ""};
        assert_int_equal(hp_device_find(names[k], &found, &err), HP_EUSAGE);
        assert_null(found);
        for (int i = 0; i < HP_DEVICES; i++) assert_non_null(strstr(err.text, hp_devices[i].name));
    }
}

/* Each name occurs once in the list, between bars. */
static void lists_of_names_are_the_table(void **state) {
    (void)state;
    char copy[200], *save = NULL;
    int n = 0;
    snprintf(copy, sizeof copy, "%s", HP_DEVICE_NAMES);
    for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save), n++)
        assert_string_equal(word, hp_devices[n].name);
    assert_int_equal(n, HP_DEVICES);
    snprintf(copy, sizeof copy, "%s", HP_DEVICE_NAMES_ON_HOST);
    n = 0;
    for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save), n++) {
        while (n < HP_DEVICES && hp_device_on_gpu(&hp_devices[n])) n++;
        assert_string_equal(word, hp_devices[n].name);
    }
}

/* It has its own back end, and MPI, which several ranks of a device need. */
static void every_device_has_its_own_back_end_and_mpi(void **state) {
    (void)state;
    for (const hp_device_info *d = hp_devices; d < hp_devices + HP_DEVICES; d++) {
        assert_true(hp_device_has_backend(d, d->own_backend));
        assert_true(hp_device_has_backend(d, HP_BACKEND_MPI));
        for (int clients = 1; clients <= 2; clients++)
            for (int t = 0; t < HP_TRAFFICS; t++)
                assert_true(
                    hp_device_has_backend(d, hp_comm_backend(HP_COMM_AUTO, (hp_traffic)t, d, clients)));
        assert_true(hp_device_of_machine(d->machine) != NULL);
        assert_int_equal(hp_device_of_machine(d->machine)->place, d->place);
    }
    assert_null(hp_device_of_machine("thesis-a100"));
}

/* GPUs if the machine has them, otherwise the host; the local machine has its own device. */
static void the_device_follows_the_machine(void **state) {
    (void)state;
    for (const hp_device_info *d = hp_devices; d < hp_devices + HP_DEVICES; d++)
        assert_string_equal(hp_device_by_default(d->machine, !hp_device_on_gpu(d))->machine, d->machine);
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        assert_int_equal(hp_device_on_gpu(hp_device_by_default("thesis-a100", !on_gpu)), on_gpu);
        assert_int_equal(hp_device_on_gpu(hp_device_by_default("local", !on_gpu)), on_gpu);
    }
}

static const hp_device_info *device_of_fix(const char *fix) {
    char name[40];
    const hp_device_info *d = NULL;
    if (sscanf(fix, "--device %39[^,]", name) == 1) assert_int_equal(hp_device_find(name, &d, NULL), HP_OK);
    return d;
}

static void the_device_that_a_fix_names_computes_in_the_precision(void **state) {
    (void)state;
    for (const hp_device_info *d = hp_devices; d < hp_devices + HP_DEVICES; d++)
        for (int32_t prec = 0; prec < HP_PRECS; prec++)
            for (int infer = 0; infer < 2; infer++) {
                hp_reject why = {.code = HP_FEASIBLE};
                const bool allowed = hp_prec_allowed(prec, infer, d, &why);
                assert_int_equal(allowed, hp_device_computes(d, prec, infer));
                assert_int_equal(why.code, allowed ? HP_FEASIBLE : HP_REJECT_PREC);
                const hp_device_info *other = allowed ? NULL : device_of_fix(why.fix);
                if (other) assert_true(hp_prec_allowed(prec, infer, other, NULL));
            }
}

/* Does the device support a GPT with `heads` heads of `channels` channels in total? */
static bool takes_heads(const hp_device_info *d, int channels, int heads, hp_reject *why) {
    hp_arena *a = hp_arena_new();
    hp_graph *g = NULL;
    hp_error err;
    char net[48];
    snprintf(net, sizeof net, "gpt:1,%d,%d,8,16", channels, heads);
    assert_int_equal(hp_net_build(a, net, 1, 8, 16, &g, &err), HP_OK);
    const bool has = hp_device_has_layers(d, g, why);
    hp_arena_free(a);
    return has;
}

/* Finds the fewest heads that are narrow enough, and another device that supports these. */
static void heads_wider_than_a_device_s_are_refused_with_what_mends_them(void **state) {
    static const int channels[] = {256, 257 * 2, 1024, 1536, 2310};
    (void)state;
    assert_true(takes_heads(NULL, 4096, 1, NULL));
    for (const hp_device_info *d = hp_devices; d < hp_devices + HP_DEVICES; d++)
        for (int k = 0; k < 5; k++)
            for (int heads = 1; heads <= 2; heads++) {
                hp_reject why = {.code = HP_FEASIBLE};
                const bool fits = d->head_channels == 0 || channels[k] / heads <= d->head_channels;
                const hp_device_info *other = NULL;
                char name[40];
                int enough = 0;
                assert_int_equal(takes_heads(d, channels[k], heads, &why), fits);
                assert_int_equal(why.code, fits ? HP_FEASIBLE : HP_REJECT_LAYER);
                if (fits) continue;
                assert_int_equal(sscanf(why.fix, "%d heads, or --device %39s", &enough, name), 2);
                assert_int_equal(hp_device_find(name, &other, NULL), HP_OK);
                assert_true(takes_heads(other, channels[k], heads, NULL));
                for (int n = heads; n <= enough; n++)
                    if (channels[k] % n == 0)
                        assert_int_equal(takes_heads(d, channels[k], n, NULL), n == enough);
            }
}

/* Codes and texts are each other's inverse. */
static void every_reject_has_a_text_of_its_own(void **state) {
    (void)state;
    for (int code = HP_FEASIBLE + 1; code < HP_REJECTS; code++) {
        assert_int_equal(strncmp(hp_reject_text((hp_reject_code)code), "E-", 2), 0);
        assert_int_equal(hp_reject_find(hp_reject_text((hp_reject_code)code)), code);
    }
    assert_int_equal(hp_reject_find("E-NONE"), HP_REJECTS);
    assert_int_equal(hp_reject_find(""), HP_REJECTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_leads_to_its_row_alone),
        cmocka_unit_test(an_unknown_name_is_refused_with_those_there_are),
        cmocka_unit_test(lists_of_names_are_the_table),
        cmocka_unit_test(the_device_follows_the_machine),
        cmocka_unit_test(every_device_has_its_own_back_end_and_mpi),
        cmocka_unit_test(the_device_that_a_fix_names_computes_in_the_precision),
        cmocka_unit_test(heads_wider_than_a_device_s_are_refused_with_what_mends_them),
        cmocka_unit_test(every_reject_has_a_text_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
