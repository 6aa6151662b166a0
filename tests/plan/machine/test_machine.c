/* test_machine.c - machines: shipped ones, this one, their text there and back, and hostile files. */
#include "plan/base/rng.h"
#include "plan/machine/machine.h"
#include "plan/machine/shipped.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_round_trip(const hp_machine *m) {
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    hp_machine back;
    const char *text = hp_machine_text(a, m);
    if (hp_machine_parse(text, "text", &back, &err) != HP_OK) fail_msg("%s: %s", m->name, err.text);
    assert_string_equal(hp_machine_text(a, &back), text);
    assert_int_equal(back.device.memory_bytes, m->device.memory_bytes);
    assert_true(back.device.flops_per_s == m->device.flops_per_s);
    assert_true(back.inter.latency_s == m->inter.latency_s);
    assert_int_equal(back.share_cpu, m->share_cpu);
    hp_arena_free(a);
}

static void text_parses_back_to_the_same_text(void **state) {
    (void)state;
    for (int i = 0; i < hp_machines_shipped_count; i++) assert_round_trip(&hp_machines_shipped[i]);
    hp_machine m = hp_machines_shipped[0];
    m.device.flops_per_s = nextafter(1e13, 2e13); /* needs 17 digits */
    m.inter.latency_s = 1.0 / 3.0;
    assert_round_trip(&m);
    strcpy(m.source, "a \"quoted\" name, and Umlaute: \xc3\xa4");
    assert_round_trip(&m);
}

static void every_shipped_machine_loads_by_a_name_that_messages_list(void **state) {
    (void)state;
    char listed[512] = "";
    for (int i = 0; i < hp_machines_shipped_count; i++) {
        hp_machine m;
        assert_int_equal(hp_machine_load(hp_machines_shipped[i].name, &m, NULL), HP_OK);
        assert_string_equal(m.name, hp_machines_shipped[i].name);
        assert_true(strlen(m.source) > 0 && hp_machine_devices(&m) >= m.devices_per_node);
        if (i) strcat(listed, ", ");
        strcat(listed, m.name);
    }
    assert_string_equal(hp_machine_names(), listed);
    hp_machine thesis;
    assert_int_equal(hp_machine_load("thesis-a100", &thesis, NULL), HP_OK);
    assert_true(hp_machine_devices(&thesis) >= 128);
}

/* How much of it there is: test_here.c. */
static void local_is_one_node_of_cores(void **state) {
    (void)state;
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(hp_machine_load("local", &m, &err), HP_OK);
    assert_int_equal(m.nodes, 1);
    assert_int_equal(m.devices_per_node, m.cores_per_node);
    assert_true(m.share_cpu && m.device.is_cpu);
    assert_round_trip(&m);
}

/* The text of the first shipped machine with the first `old` replaced by `now`. */
static const char *edited(hp_arena *a, const char *old, const char *now) {
    const char *text = hp_machine_text(a, &hp_machines_shipped[0]);
    const char *at = strstr(text, old);
    if (!at) fail_msg("'%s' is not in %s", old, text);
    return hp_arena_printf(a, "%.*s%s%s", (int)(at - text), text, now, at + strlen(old));
}

typedef struct edit {
    const char *old, *now, *message; /* a part of the message expected */
} edit;

static void hostile_text_is_refused_with_the_field_named(void **state) {
    (void)state;
    static const edit edits[] = {
        {"\"nodes\": 512,", "", "\"nodes\" is missing"},
        {"\"nodes\": 512", "\"nodes\": -1", "\"nodes\" must be a whole number from 1"},
        {"\"nodes\": 512", "\"nodes\": 0", "\"nodes\" must be"},
        {"\"nodes\": 512", "\"nodes\": 1.5", "\"nodes\" must be a whole number"},
        {"\"nodes\": 512", "\"nodes\": 99999999999", "\"nodes\" must be"},
        {"\"nodes\": 512", "\"nodes\": \"512\"", "\"nodes\" must be"},
        {"\"nodes\": 512", "\"nodes\": null", "\"nodes\" must be"},
        {"\"nodes\": 512", "\"nodes\": NaN", "not JSON"},
        {"\"nodes\": 512", "\"nodes\": 1e999", "not JSON"},
        {"\"nodes\": 512", "\"nodes\": 512, \"nodes\": 513", "duplicate"},
        {"\"nodes\": 512", "\"nodes\": 512, \"nodse\": 513", "no field \"nodse\" (nodes)"},
        {"\"launch_s\"", "\"lunch_s\"", "no field \"device.lunch_s\" (launch_s)"},
        {"\"intra\": {", "\"intre\": {}, \"intra\": {", "no field \"intre\" (intra)"},
        {"\"memory_bytes\": 4", "\"memory\": 4, \"memory_bytes\": 4",
         "no field \"device.memory\" (memory_bytes)"},
        {"\"nodes\": 512", "\"nodes\": 512, \"altitude_m\": 513",
         "no field \"altitude_m\" (name, source, nodes, devices_per_node, "},
        {"\"share_cpu\": false", "\"share_cpu\": 0", "\"share_cpu\" must be true or false"},
        {"\"memory_bytes\": 4", "\"memory_bytes\": -4", "\"device.memory_bytes\" must be"},
        {"\"memory_bytes\": 4", "\"memory_bytes\": 9e17, \"old\": 4", "\"device.memory_bytes\" must be"},
        {"\"latency_s\": ", "\"latency_s\": -", "\"intra.latency_s\" must be a number from 0 to 1"},
        {"\"name\": \"thesis-a100\"", "\"name\": \"\"", "\"name\" must be a string"},
        {"\"name\": \"thesis-a100\"", "\"name\": \"a b\"", "\"name\" must be a string"},
        {"\"name\": \"thesis-a100\"", "\"name\": \"\\u001b[2J\"", "\"name\" must be a string"},
        {"\"name\": \"a100-40\"", "\"name\": \"\"", "\"device.name\" must be"},
        {"\"name\": \"a100-40\"", "\"name\": \"a\\u001b[2J\"", "\"device.name\" must be"},
        {"\"name\": \"a100-40\",", "", "\"device.name\" is missing"},
        {"\"source\": \"", "\"source\": \"\\u001b]0;x\\u0007", "\"source\" must be"},
        {"\"intra\": {", "\"intra\": 3, \"old\": {", "\"intra\" must be an object or a name"},
        {"\"intra\": {", "\"intra\": \"string and sealing wax\", \"old\": {", "\"intra.name\" must be"},
        {"\"intra\": {", "\"intra\": \"fax\", \"old\": {", "\"intra.bytes_per_s\" is missing"},
        {"{", "[", "not JSON"},
        {"}", "", "not JSON"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        hp_arena *a = hp_arena_new();
        hp_error err = {0};
        hp_machine m = {.nodes = 77};
        assert_int_equal(hp_machine_parse(edited(a, edits[i].old, edits[i].now), "x.json", &m, &err),
                         HP_EDATA);
        if (!strstr(err.text, edits[i].message) || !strstr(err.text, "x.json"))
            fail_msg("edit %zu: expected '%s' in '%s'", i, edits[i].message, err.text);
        assert_int_equal(m.nodes, 77); /* untouched */
        hp_arena_free(a);
    }
}

static void all_that_is_wrong_is_said_at_once(void **state) {
    (void)state;
    static const char *const expected[] = {"\"nodes\" must be",          "\"devices_per_node\" is missing",
                                           "\"device.name\" is missing", "\"device.memory_bytes\" must be",
                                           "\"share_cpu\" must be",      "no field \"devices\""};
    hp_error err = {0};
    hp_machine m;
    const char *text = "{\"nodes\": 0, \"devices\": 4, \"share_cpu\": 1, \"device\": {\"memory_bytes\": -1}}";
    assert_int_equal(hp_machine_parse(text, "x.json", &m, &err), HP_EDATA);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(err.text, expected[i])) fail_msg("no '%s' in '%s'", expected[i], err.text);
}

static hp_machine parsed(const char *text) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_parse(text, "x.json", &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

#define NODES "{\"nodes\": 8, \"devices_per_node\": 3, "

/* The name is enough: everything else is the data sheet's, and the links that were assumed are said. */
static void a_name_and_two_counts_are_a_machine(void **state) {
    (void)state;
    const hp_machine m = parsed(NODES "\"device\": \"NVIDIA A100-SXM4-80GB\"}"),
                     object = parsed(NODES "\"device\": {\"name\": \"a100-80\"}}");
    assert_string_equal(m.device.name, "a100-80");
    assert_memory_equal(&m.device, &object.device, sizeof m.device);
    assert_true(m.nodes == 8 && m.devices_per_node == 3 && !m.share_cpu && !m.device.is_cpu);
    assert_true(m.device.bf16_flops_per_s == 312e12 &&
                m.device.bytes_per_s == 2039e9); // NOLINT: as published
    assert_true(m.intra.bytes_per_s > m.inter.bytes_per_s && m.inter.bytes_per_s > 0);
    assert_non_null(strstr(m.assumed, m.intra.name));
    assert_non_null(strstr(m.assumed, m.inter.name));
    assert_null(strstr(m.assumed, "device"));
    assert_round_trip(&m);
}

/* What is given wins over the data sheet, and is not said to be assumed. */
static void what_is_given_wins(void **state) {
    (void)state;
    const hp_machine m =
        parsed(NODES "\"nics_per_node\": 4, \"device\": {\"name\": \"H100 PCIe\", \"bytes_per_s\": 1e12,"
                     "\"bf16_flops_per_s\": 0}, \"intra\": {\"bytes_per_s\": 1e10},"
                     "\"inter\": {\"name\": \"carrier-pigeon\", \"bytes_per_s\": 1}}");
    const hp_machine sheet = parsed(NODES "\"device\": \"h100-pcie\"}");
    assert_true(m.device.bytes_per_s == 1e12 && m.device.bf16_flops_per_s == 0); // NOLINT: as given
    assert_true(m.device.fp16_flops_per_s == sheet.device.fp16_flops_per_s);     // NOLINT: as published
    assert_true(m.intra.bytes_per_s == 1e10 && m.inter.bytes_per_s == 1);        // NOLINT: as given
    assert_string_equal(m.inter.name, "carrier-pigeon");
    assert_string_equal(m.assumed, "");
}

/* A link by its name alone has the rate that links of that name have. */
static void links_may_be_named(void **state) {
    (void)state;
    const hp_machine m =
        parsed(NODES "\"device\": \"Tesla V100-PCIE-32GB\", \"intra\": \"nvswitch\", \"inter\": \"ib-ndr\"}");
    assert_true(m.intra.bytes_per_s == hp_link_class_find("nvswitch")->bytes_per_s); // NOLINT: the same
    assert_true(m.inter.bytes_per_s == hp_link_class_find("ib-ndr")->bytes_per_s);   // NOLINT: the same
    /* the devices' own links, where they are meant */
    const hp_machine v100 = parsed(NODES "\"device\": \"v100-16\", \"intra\": \"nvlink\"}");
    hp_machine lassen;
    assert_int_equal(hp_machine_load("lassen", &lassen, NULL), HP_OK);
    assert_true(v100.intra.bytes_per_s == lassen.intra.bytes_per_s); // NOLINT: the same
}

/* An unknown device is a device like one that is known, which is said; its other rates follow what is given. */
static void an_unknown_device_is_said_with_the_one_assumed(void **state) {
    (void)state;
    const hp_machine m = parsed(NODES "\"device\": {\"name\": \"Abacus 9000\", \"flops_per_s\": 39e12}}");
    assert_string_equal(m.device.name, "abacus-9000");
    assert_non_null(strstr(m.assumed, "\"Abacus 9000\" is unknown"));
    const hp_gpu_model *like = hp_gpu_model_nearest(&(hp_device_class){.flops_per_s = 39e12});
    assert_non_null(strstr(m.assumed, like->device.name));
    assert_true(fabs(m.device.bf16_flops_per_s / m.device.flops_per_s * like->device.flops_per_s /
                         like->device.bf16_flops_per_s -
                     1) < 1e-9);
    assert_round_trip(&m);
    /* nobody's data sheet has a CPU's memory */
    hp_error err = {0};
    hp_machine cpu;
    assert_int_equal(hp_machine_parse(NODES "\"device\": \"cpu\"}", "x.json", &cpu, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "\"device.memory_bytes\" is missing"));
}

/* 131,072 nodes of 8 are a machine as any other. */
static void machines_may_be_large(void **state) {
    (void)state;
    const hp_machine m = parsed("{\"nodes\": 131072, \"devices_per_node\": 8, \"device\": \"h200\"}");
    assert_int_equal(hp_machine_devices(&m), 1 << 20);
    assert_int_equal(hp_machine_parse("{\"nodes\": 1000001, \"devices_per_node\": 8, \"device\": \"h200\"}",
                                      "x.json", &(hp_machine){0}, NULL),
                     HP_EDATA);
}

static void groups_must_be_objects(void **state) {
    (void)state;
    static const char *const texts[] = {"", "3", "[]", "{}", "nul", "{\"device\": 3}", "{\"\": {}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hp_error err = {0};
        hp_machine m;
        assert_int_equal(hp_machine_parse(texts[i], "x.json", &m, &err), HP_EDATA);
        assert_non_null(strstr(err.text, "x.json"));
    }
}

/* Whatever bytes are changed: a machine that is read is written and read again as the same, all else is refused with
 * one line. */
static void damaged_text_is_a_machine_or_refused(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const char *const texts[] = {
        hp_machine_text(a, &hp_machines_shipped[0]),
        "{\"nodes\": 8, \"devices_per_node\": 4, \"device\": \"A100\", \"intra\": \"pcie\"}"};
    int read = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        char *text = hp_arena_strdup(a, texts[k % 2]);
        const size_t n = strlen(text);
        const int changes = 1 + (int)(3 * hp_rng_uniform(k, 0, 0));
        for (uint64_t c = 1; c <= (uint64_t)changes; c++) {
            const size_t from = (size_t)((double)n * hp_rng_uniform(k, c, 0)),
                         to = (size_t)((double)n * hp_rng_uniform(k, c, 1));
            text[to] = hp_rng_uniform(k, c, 2) < 0.7 ? text[from] : (char)(1 + 255 * hp_rng_uniform(k, c, 3));
        }
        hp_error err = {0};
        hp_machine m;
        const hp_status status = hp_machine_parse(text, "x.json", &m, &err);
        if (status == HP_OK) {
            read++;
            assert_round_trip(&m);
        } else {
            assert_int_equal(status, HP_EDATA);
            assert_null(strchr(err.text, '\n'));
            assert_true(*err.text);
        }
    }
    assert_in_range(read, 100, 3900); /* both happen */
    hp_arena_free(a);
}

static void text_cut_anywhere_is_refused(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    char *text = hp_machine_text(a, &hp_machines_shipped[0]);
    hp_machine m;
    for (size_t n = strlen(text) - 2; n-- > 0;) {
        text[n] = '\0';
        assert_int_equal(hp_machine_parse(text, "x.json", &m, NULL), HP_EDATA);
    }
    hp_arena_free(a);
}

/* A file of `size` bytes from `text`; the name is returned in `path`. */
static void write_file(char path[32], const char *text, size_t size) {
    strcpy(path, "/tmp/hplan-machine-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), (ssize_t)size);
    close(fd);
}

static void a_machine_loads_from_its_file(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    char path[32];
    const char *text = edited(a, "\"nodes\": 512", "\"nodes\": 3");
    write_file(path, text, strlen(text));
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(hp_machine_load(path, &m, &err), HP_OK);
    assert_int_equal(m.nodes, 3);
    unlink(path);
    hp_arena_free(a);
}

static void files_that_are_no_machine_are_refused(void **state) {
    (void)state;
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(hp_machine_load("no-such-machine", &m, &err), HP_EUSAGE);
    assert_non_null(strstr(err.text, "thesis-a100"));
    assert_int_equal(hp_machine_load("./no-such-file.json", &m, &err), HP_EDATA);
    assert_int_equal(hp_machine_load("/", &m, &err), HP_EDATA);
    assert_int_equal(hp_machine_load("/dev/zero", &m, &err), HP_EDATA);
    char path[32];
    write_file(path, "{\"nodes\": 1}\0{", 14);
    assert_int_equal(hp_machine_load(path, &m, &err), HP_EDATA);
    unlink(path);
}

/* A known GPU has its data sheet's rates under its class's name, another its own name as far as tables take
 * it, and the driver's rates. */
static void gpus_of_this_node_become_a_machine(void **state) {
    (void)state;
    hp_machine m, back;
    hp_error err;
    hp_arena *arena = hp_arena_new();
    const hp_gpu known = {.name = "NVIDIA H200", .count = 8, .memory_bytes = INT64_C(150000000000)},
                 other = {.name = "NVIDIA Abacus (rev. 2)",
                          .count = 1,
                          .memory_bytes = 48,
                          .flops_per_s = 9e13,
                          .bytes_per_s = 8e11};
    assert_int_equal(hp_machine_of_gpus(&hp_devices[HP_DEVICE_CUDA], &known, &m, &err), HP_OK);
    assert_string_equal(m.device.name, "h200");
    assert_true(m.device.flops_per_s == 67e12 && m.device.bytes_per_s == 4.8e12); // NOLINT: as published
    assert_true(m.device.memory_bytes == known.memory_bytes && m.devices_per_node == 8);
    assert_false(m.share_cpu || m.device.is_cpu);
    assert_int_equal(hp_machine_of_gpus(&hp_devices[HP_DEVICE_CUDA], &other, &m, &err), HP_OK);
    assert_string_equal(m.device.name, "nvidia-abacus-rev-2");
    assert_true(m.device.flops_per_s == 9e13 && m.device.bytes_per_s == 8e11); // NOLINT
    assert_string_equal(m.intra.name, "same-gpu");
    assert_int_equal(hp_machine_parse(hp_machine_text(arena, &m), "text", &back, &err), HP_OK);
    assert_string_equal(hp_machine_text(arena, &back), hp_machine_text(arena, &m));
    assert_string_equal(m.name, hp_devices[HP_DEVICE_CUDA].machine);
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_parses_back_to_the_same_text),
        cmocka_unit_test(every_shipped_machine_loads_by_a_name_that_messages_list),
        cmocka_unit_test(local_is_one_node_of_cores),
        cmocka_unit_test(hostile_text_is_refused_with_the_field_named),
        cmocka_unit_test(all_that_is_wrong_is_said_at_once),
        cmocka_unit_test(a_name_and_two_counts_are_a_machine),
        cmocka_unit_test(what_is_given_wins),
        cmocka_unit_test(links_may_be_named),
        cmocka_unit_test(an_unknown_device_is_said_with_the_one_assumed),
        cmocka_unit_test(machines_may_be_large),
        cmocka_unit_test(groups_must_be_objects),
        cmocka_unit_test(damaged_text_is_a_machine_or_refused),
        cmocka_unit_test(text_cut_anywhere_is_refused),
        cmocka_unit_test(a_machine_loads_from_its_file),
        cmocka_unit_test(files_that_are_no_machine_are_refused),
        cmocka_unit_test(gpus_of_this_node_become_a_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
