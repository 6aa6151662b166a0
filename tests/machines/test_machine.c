/* test_machine.c - machines: shipped ones, this one, their text there and back, and hostile files. */
#include "base/rng.h"
#include "machines/machine.h"
#include "machines/shipped.h"

#include <math.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Every field, independently of the text. */
static void assert_same(const hp_machine *a, const hp_machine *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->source, b->source);
    assert_true(a->nodes == b->nodes && a->devices_per_node == b->devices_per_node);
    assert_true(a->cores_per_node == b->cores_per_node && a->nics_per_node == b->nics_per_node);
    assert_true(a->nic_use == b->nic_use && a->leaf == b->leaf && a->sharp == b->sharp);
    assert_true(a->any_size == b->any_size);
    assert_string_equal(a->mpi, b->mpi);
    assert_true(hp_machine_taper(a) == hp_machine_taper(b) && a->share_cpu == b->share_cpu);
    assert_string_equal(a->device.name, b->device.name);
    assert_string_equal(a->device.like, b->device.like);
    assert_true(a->device.is_cpu == b->device.is_cpu && a->device.memory_bytes == b->device.memory_bytes);
    assert_memory_equal(&a->device.flops_per_s, &b->device.flops_per_s,
                        sizeof a->device - offsetof(hp_device_class, flops_per_s));
    assert_string_equal(a->intra.name, b->intra.name);
    assert_true(a->intra.latency_s == b->intra.latency_s && a->intra.bytes_per_s == b->intra.bytes_per_s);
    assert_string_equal(a->inter.name, b->inter.name);
    assert_true(a->inter.latency_s == b->inter.latency_s && a->inter.bytes_per_s == b->inter.bytes_per_s);
}

static void assert_round_trip(const hp_machine *m) {
    hp_arena *a = hp_arena_new();
    hp_error err = {0};
    hp_machine back;
    const char *text = hp_machine_text(a, m);
    if (hp_machine_parse(text, "text", &back, &err) != HP_OK) fail_msg("%s: %s", text, err.text);
    assert_same(m, &back);
    assert_string_equal(hp_machine_text(a, &back), text);
    assert_string_equal(back.assumed, "");
    hp_arena_free(a);
}

static hp_machine parsed(const char *text) {
    hp_machine m;
    hp_error err = {0};
    if (hp_machine_parse(text, "x.machine", &m, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

static hp_machine shipped(const char *name) {
    hp_machine m;
    assert_int_equal(hp_machine_load(name, &m, NULL), HP_OK);
    return m;
}

/* Whole numbers, short ones as people write them, and ones that need 17 digits. */
static double random_rate(uint64_t seed, uint64_t i, double most) {
    const double v = most * hp_rng_uniform(seed, i, 1) + 1;
    return seed % 3 == 0 ? v : seed % 3 == 1 ? floor(v) : 1e9 * ceil(v / 1e9);
}

static hp_machine random_machine(uint64_t s) {
    static const char *const links[] = {"nvlink", "pcie", "ib-hdr", "fax", "A_b.c-1"};
    hp_machine m = {.nodes = 1 + (int)(1e6 * hp_rng_uniform(s, 1, 0) * 0.999999),
                    .devices_per_node = 1 + (int)(1023 * hp_rng_uniform(s, 2, 0)),
                    .cores_per_node = 1 + (int)(1e4 * hp_rng_uniform(s, 3, 0)),
                    .nics_per_node = 1 + (int)(15 * hp_rng_uniform(s, 4, 0)),
                    .nic_use = (int32_t)(s % HP_NIC_USES),
                    .leaf = 1 + (int)(s % 48),
                    .taper = s % 2 ? 1 + 3 * hp_rng_uniform(s, 5, 0) : (double)(1 + s % 5),
                    .sharp = s % 3 == 0,
                    .any_size = s % 2 == 0,
                    .share_cpu = s % 7 == 0};
    snprintf(m.mpi, sizeof m.mpi, "%s", s % 4 == 0 ? "openmpi" : s % 4 == 1 ? "mvapich2-gdr" : "");
    snprintf(m.name, sizeof m.name, "m-%d", (int)s);
    snprintf(m.source, sizeof m.source, "%s", s % 2 ? "a \"quoted\" \\ text, with ; and # and \xc3\xa4" : "");
    m.device = (hp_device_class){.is_cpu = s % 5 == 0, .memory_bytes = (int64_t)random_rate(s, 6, 1e12)};
    snprintf(m.device.name, sizeof m.device.name, "%s", s % 5 == 0 ? "cpu" : s % 2 ? "h100" : "abacus-9");
    snprintf(m.device.like, sizeof m.device.like, "%s", s % 3 ? "a100-40" : "");
    m.device.flops_per_s = random_rate(s, 7, 1e14);
    m.device.tf32_flops_per_s = s % 4 ? random_rate(s, 8, 1e15) : 0;
    m.device.bf16_flops_per_s = random_rate(s, 9, 1e15);
    m.device.fp16_flops_per_s = random_rate(s, 10, 1e15);
    m.device.int8_ops_per_s = random_rate(s, 11, 1e15);
    m.device.bytes_per_s = random_rate(s, 12, 1e13);
    m.device.launch_s = s % 3 ? 1e-6 * (double)(s % 9) : hp_rng_uniform(s, 13, 0);
    snprintf(m.intra.name, sizeof m.intra.name, "%s", links[s % 5]);
    snprintf(m.inter.name, sizeof m.inter.name, "%s", links[(s / 5) % 5]);
    m.intra.bytes_per_s = random_rate(s, 14, 1e12);
    m.inter.bytes_per_s = random_rate(s, 15, 1e11);
    m.intra.latency_s = 1e-6 * (double)(s % 11);
    m.inter.latency_s = hp_rng_uniform(s, 16, 0);
    return m;
}

static void text_parses_back_to_the_same_machine(void **state) {
    (void)state;
    for (int i = 0; hp_machine_shipped_name(i); i++) {
        const hp_machine m = shipped(hp_machine_shipped_name(i));
        assert_round_trip(&m);
    }
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const hp_machine m = random_machine(seed);
        assert_round_trip(&m);
    }
}

/* Devices and peaks as published by sites and vendors. 38.7 PFLOP/s in float64, half of float32's, is for
 * Frontera's first 8008 nodes (TACC, TOP500). */
static void shipped_machines_have_their_published_totals(void **state) {
    (void)state;
    static const struct {
        const char *name, *device;
        int nodes, devices;
        double node_bytes_per_s; /* range of its NICs' total in one direction: their line rate */
    } published[] = {{"lassen", "v100-16", 795, 3180, 25e9},
                     {"summit", "v100-16", 4608, 27648, 25e9},
                     {"pitzer", "v100-16-pcie", 74, 148, 12.5e9},
                     {"frontera", "cpu", 8368, 468608, 12.5e9},
                     {"thetagpu", "a100-40", 24, 192, 200e9},
                     {"perlmutter", "a100-40", 1536, 6144, 100e9},
                     {"dgx-a100", "a100-80", 140, 1120, 200e9},
                     {"dgx-h100", "h100", 127, 1016, 400e9},
                     {"dgx-h200", "h200", 128, 1024, 400e9},
                     {"thesis-a100", "a100-40", 512, 1024, 25e9},
                     {"p40x8", "p40", 1, 8, 1.25e9}};
    char listed[512] = "";
    int n = 0;
    for (; hp_machine_shipped_name(n); n++) {
        const char *name = hp_machine_shipped_name(n);
        const hp_machine m = shipped(name);
        assert_string_equal(m.name, name);
        assert_true(*m.source && !*m.assumed);
        snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s%s", n ? ", " : "", name);
    }
    assert_string_equal(hp_machine_names(), listed);
    assert_int_equal(n, sizeof published / sizeof *published);
    for (int i = 0; i < n; i++) {
        const hp_machine m = shipped(published[i].name);
        const double nics = m.nics_per_node * m.inter.bytes_per_s;
        assert_string_equal(m.device.name, published[i].device);
        assert_true(m.nodes == published[i].nodes && hp_machine_devices(&m) == published[i].devices);
        assert_true(nics <= published[i].node_bytes_per_s && nics > 0.9 * published[i].node_bytes_per_s);
    }
    const hp_machine frontera = shipped("frontera");
    assert_true(fabs(8008 * 56 * frontera.device.flops_per_s / 2 / 38.7e15 - 1) < 0.01);
    assert_true(hp_machine_taper(&frontera) == 22.0 / 18);
}

/* How much of it there is: test_here.c. */
static void local_is_one_node_of_cores(void **state) {
    (void)state;
    const hp_machine m = shipped("local");
    assert_int_equal(m.nodes, 1);
    assert_int_equal(m.devices_per_node, m.cores_per_node);
    assert_true(m.share_cpu && m.device.is_cpu);
    assert_round_trip(&m);
}

#define NODES "nodes=8; node=3 x "

static void every_mistake_is_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *message; /* part of the expected message */
    } wrong[] = {
        {"", "nodes=N is missing"},
        {"node=4 x h200", "x.machine: nodes=N is missing: nodes=1 where there is one; for example nodes=8"},
        {NODES "h200, memory=141GB",
         "memory is said of a device, in a clause of its own: device=NAME, memory"},
        {"nodes=4", "node=K x DEVICE is missing"},
        {"nodes=1; node=1 x h200; device=h200, like=CPU", "like=CPU: the device is a GPU"},
        {NODES "h200; nodes=9", "nodes is said twice"},
        {"nodes=-1; node=3 x h200", "'nodes=-1': nodes must be a whole number from 1 to 1000000"},
        {"nodes=0; node=3 x h200", "nodes must be"},
        {"nodes=1.5; node=3 x h200", "nodes must be a whole number"},
        {"nodes=99999999999; node=3 x h200", "nodes must be"},
        {"nodes=1000001; node=3 x h200", "nodes must be"},
        {"nodes=many; node=3 x h200", "nodes must be a whole number, not 'many'"},
        {"nodes=nan; node=3 x h200", "nodes must be"},
        {"nodes; node=3 x h200", "it is written nodes=N"},
        {"nodse=4; node=3 x h200", "'nodse=4': there is no such clause (node"},
        {NODES "h200; altitude=3", "no such clause (name, source, nodes"},
        {"nodes=4; node=h200", "a node is K x DEVICE"},
        {"nodes=4; node=0 x h200", "node must be a whole number from 1"},
        {NODES "h200, nvlink=fast", "rate must be a rate such as 300GB/s or 200Gb/s, not 'fast'"},
        {NODES "h200, nvlink=300", "rate must be a rate such as"},
        {NODES "h200, latancy=3us", "no 'latancy' here (latency)"},
        {NODES "h200, latency=2s", "latency must be a number from 0 to 1s"},
        {NODES "h200, latency=-2us", "latency must be"},
        {NODES "h200, fax", "'fax' is neither a rate"},
        {NODES "h200; nic=2 x fast", "'fast' is neither a rate"},
        {NODES "h200; nic=2 x ib-hrd", "(ib-hdr)"},
        {NODES "h200; nic=200Gb/s", "NICs are K x RATE"},
        {NODES "some very long name nvidia h100 and mig",
         "cut to some-very-long-name-nvidia-h100 it is that of h100"},
        {NODES "h200; nic=0 x 200Gb/s", "nic must be a whole number from 1"},
        {NODES "h200; fat-tree 1:2", "a taper is A:B"},
        {NODES "h200; fat-tree 2", "a taper is A:B"},
        {NODES "h200; fat-tree 2:0", "a taper is A:B"},
        {NODES "h200; fat-tree 2:1, leaf=1.5", "leaf must be a whole number"},
        {NODES "h200; mpi=openmp", "mpi=openmp: known are mvapich2-gdr and openmpi"},
        {NODES "h200; fat-tree 2:1, leaves=3", "(leaf)"},
        {NODES "h200; nic=1 x ib-hdr, rials", "'rials'"},
        {NODES "h200; share-cpu=3", "share-cpu is yes or no"},
        {NODES "h200; device=h200, memry=3GB", "no 'memry' here (memory)"},
        {NODES "h200; device=h200, memory=-4GB", "memory must be"},
        {NODES "h200; device=h200, memory=1e9TB", "memory must be"},
        {NODES "h200; device=h100", "the node's devices are called h200"},
        {NODES "h200; name=a b", "a name has 1 to 63"},
        {NODES "h200; name=", "a name has 1 to 63"},
        {NODES "h200; source=\"open", "a quote is not closed"},
        {NODES "h200; name=\x1b[2J", "no control characters"},
        {NODES "cpu", "device=cpu, memory=... is missing"},
        {"{\"nodes\": 8, \"devices_per_node\": 4}", "not written in JSON but as nodes=8; node=4 x a100-80"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hp_error err = {0};
        hp_machine m = {.nodes = 77};
        assert_int_equal(hp_machine_parse(wrong[i].text, "x.machine", &m, &err), HP_EDATA);
        if (!strstr(err.text, wrong[i].message) || !strstr(err.text, "x.machine"))
            fail_msg("%s: expected '%s' in '%s'", wrong[i].text, wrong[i].message, err.text);
        assert_int_equal(m.nodes, 77); /* untouched */
    }
}

static void all_that_is_wrong_is_said_at_once(void **state) {
    (void)state;
    static const char *const expected[] = {"'nodes=0': nodes must be",
                                           "no such clause (node)",
                                           "'fast' is neither",
                                           "a taper is A:B",
                                           "cores must be",
                                           "no 'memry'",
                                           "node=K x DEVICE is missing"};
    hp_error err = {0};
    hp_machine m;
    const char *text =
        "nodes=0; nod=4 x h200\nnic=2 x fast\nfat-tree 1:2; cores=none\ndevice=h200, memry=3GB";
    assert_int_equal(hp_machine_parse(text, "x.machine", &m, &err), HP_EDATA);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(err.text, expected[i])) fail_msg("no '%s' in '%s'", expected[i], err.text);
}

/* The name suffices: everything else comes from the data sheet, and assumed links are reported. */
static void a_name_and_two_counts_are_a_machine(void **state) {
    (void)state;
    const hp_machine m = parsed(NODES "NVIDIA A100-SXM4-80GB");
    assert_string_equal(m.device.name, "a100-80");
    assert_true(m.nodes == 8 && m.devices_per_node == 3 && !m.share_cpu && !m.device.is_cpu);
    assert_true(m.device.bf16_flops_per_s == 312e12 &&
                m.device.bytes_per_s == 2039e9); // NOLINT: as published
    assert_true(m.intra.bytes_per_s > m.inter.bytes_per_s && m.inter.bytes_per_s > 0);
    assert_non_null(strstr(m.assumed, m.intra.name));
    assert_non_null(strstr(m.assumed, m.inter.name));
    assert_null(strstr(m.assumed, "device"));
}

/* Given values override the data sheet, in any unit, and are not reported as assumed. */
static void what_is_given_wins(void **state) {
    (void)state;
    const hp_machine m = parsed(NODES "H100 PCIe, pcie5=10GB/s; nic=4 x 8b/s, carrier-pigeon; fat-tree 3:2\n"
                                      "device=H100 PCIe, bandwidth=1TB/s, bf16=0, memory=80GiB, launch=7us");
    const hp_machine sheet = parsed(NODES "h100-pcie");
    assert_true(m.device.bytes_per_s == 1e12 && m.device.bf16_flops_per_s == 0); // NOLINT: as given
    assert_true(m.device.memory_bytes == INT64_C(80) << 30 && m.device.launch_s == 7e-6);
    assert_true(m.device.fp16_flops_per_s == sheet.device.fp16_flops_per_s); // NOLINT: as published
    assert_true(m.intra.bytes_per_s == 1e10 && m.inter.bytes_per_s == 1);    // NOLINT: as given
    assert_true(m.nics_per_node == 4 && hp_machine_taper(&m) == 1.5);
    assert_string_equal(m.inter.name, "carrier-pigeon");
    assert_string_equal(m.assumed, "");
}

/* A link given by its name has the usual rate of such links; a rate alone means the link with about that
 * rate. */
static void links_may_be_named(void **state) {
    (void)state;
    const hp_machine m = parsed(NODES "Tesla V100-PCIE-32GB, nvswitch; nic=1 x ib-ndr");
    assert_true(m.intra.bytes_per_s == hp_link_class_find("nvswitch")->bytes_per_s); // NOLINT: the same
    assert_true(m.inter.bytes_per_s == hp_link_class_find("ib-ndr")->bytes_per_s);   // NOLINT: the same
    const hp_machine v100 = parsed(NODES "v100-16, nvlink"), lassen = shipped("lassen");
    assert_true(v100.intra.bytes_per_s == lassen.intra.bytes_per_s); // NOLINT: the same
    assert_string_equal(parsed(NODES "v100-16; nic=1 x 100Gb/s").inter.name, "ib-edr");
    assert_string_equal(parsed(NODES "v100-16; nic=1 x 200Gb/s").inter.name, "ib-hdr");
    assert_string_equal(parsed(NODES "v100-16; nic=1 x 400Gb/s").inter.name, "ib-ndr");
}

static void machines_may_be_large(void **state) {
    (void)state;
    const hp_machine m = parsed("nodes=131072; node=8 x h200");
    assert_int_equal(hp_machine_devices(&m), 1 << 20);
}

/* A change gives the machine described with it; the rest stays. */
static void a_change_changes_what_it_names(void **state) {
    (void)state;
    static const struct {
        const char *change, *text;
    } cases[] = {
        {"nodes=16", "nodes=16; node=2 x a100-40; nic=1 x ib-hdr"},
        {"nodes=2x", "nodes=16; node=2 x a100-40; nic=1 x ib-hdr"},
        {"nic=2x", "nodes=8; node=2 x a100-40; nic=1 x 48GB/s, ib-hdr"},
        {"nic=4 x 400Gb/s", "nodes=8; node=2 x a100-40; nic=4 x 400Gb/s"},
        {"nvlink=0.5x", "nodes=8; node=2 x a100-40, nvlink=84GB/s; nic=1 x ib-hdr"},
        {"a100-40.memory=80G", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr; device=a100-40, memory=80GB"},
        {"a100.memory=2x", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr; device=a100-40, memory=80GB"},
        {"bandwidth=1TB/s", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr; device=a100-40, bandwidth=1TB/s"},
        {"fat-tree 2:1", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr; fat-tree 2:1"},
        {"fat-tree 2:1, leaf=4", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr; fat-tree 2:1, leaf=4"},
        {"nic=1 x ib-hdr, rails", "nodes=8; node=2 x a100-40; nic=1 x ib-hdr, rails"},
        {"node=8 x h100", "nodes=8; node=8 x h100; cores=2; nic=1 x ib-hdr"},
    };
    hp_arena *a = hp_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hp_machine m = parsed("nodes=8; node=2 x a100-40; nic=1 x ib-hdr"), want = parsed(cases[i].text);
        hp_error err = {0};
        if (hp_machine_set(&m, cases[i].change, &err) != HP_OK) fail_msg("%s: %s", cases[i].change, err.text);
        m.inter.latency_s = want.inter.latency_s;
        strcpy(m.name, want.name);
        const char *text = hp_machine_text(a, &m);
        if (strcmp(text, hp_machine_text(a, &want)) != 0) fail_msg("%s gives %s", cases[i].change, text);
    }
    static const char *const bad[] = {"nodes=0.3x", "nodse=3", "nic=fast", "h100.memory=3G",
                                      "nodes",      "",        "nodes=0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hp_machine m = shipped("thesis-a100");
        hp_error err = {0};
        if (hp_machine_set(&m, bad[i], &err) != HP_EUSAGE) fail_msg("%s is accepted", bad[i]);
        assert_non_null(strstr(err.text, "--set"));
        assert_int_equal(m.nodes, 512);
    }
    hp_arena_free(a);
}

/* Whatever bytes are changed: a machine that can be read is written and read again as the same; everything
 * else is rejected with one line. */
static void damaged_text_is_a_machine_or_refused(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    const hp_machine first = shipped("thesis-a100");
    const char *const texts[] = {hp_machine_text(a, &first), "nodes=8; node=4 x A100, pcie; cores=3"};
    int read = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        char *text = hp_arena_strdup(a, texts[k % 2]);
        const size_t n = strlen(text);
        const int changes = 1 + (int)(3 * hp_rng_uniform(k, 0, 0));
        for (uint64_t c = 1; c <= (uint64_t)changes; c++) {
            const size_t from = (size_t)((double)n * hp_rng_uniform(k, c, 0)),
                         to = (size_t)((double)n * hp_rng_uniform(k, c, 1));
            text[to] =
                hp_rng_uniform(k, c, 2) < 0.7 ? text[from] : (char)(int)(1 + 255 * hp_rng_uniform(k, c, 3));
        }
        if (k % 4 == 3) text[(size_t)((double)n * hp_rng_uniform(k, 9, 0))] = '\0';
        hp_error err = {0};
        hp_machine m;
        const hp_status status = hp_machine_parse(text, "x.machine", &m, &err);
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

/* Writes a file of `size` bytes from `text`; returns its name in `path`. */
static void write_file(char path[32], const char *text, size_t size) {
    strcpy(path, "/tmp/hplan-machine-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), (ssize_t)size);
    close(fd);
}

static void a_machine_loads_from_its_file(void **state) {
    (void)state;
    char path[32];
    const char *text = "nodes=3 # a comment; nodes=4\nnode=2 x a100-40\n";
    write_file(path, text, strlen(text));
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(hp_machine_load(path, &m, &err), HP_OK);
    assert_int_equal(m.nodes, 3);
    unlink(path);
}

static void files_that_are_no_machine_are_refused(void **state) {
    (void)state;
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(hp_machine_load("no-such-machine", &m, &err), HP_EUSAGE);
    assert_non_null(strstr(err.text, "thesis-a100"));
    assert_int_equal(hp_machine_load("./no-such-file.machine", &m, &err), HP_EDATA);
    assert_int_equal(hp_machine_load("/", &m, &err), HP_EDATA);
    assert_int_equal(hp_machine_load("/dev/zero", &m, &err), HP_EDATA);
    char path[32];
    write_file(path, "nodes=1\0nodes=", 14);
    assert_int_equal(hp_machine_load(path, &m, &err), HP_EDATA);
    unlink(path);
}

/* A known GPU has its data sheet's rates under its class's name; another one has its own name, as far as
 * tables allow, and the driver's rates. */
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

/* Calibrations influence plans, and those in /tmp may be anybody's. */
static void the_cache_is_the_users_own(void **state) {
    (void)state;
    char out[300], want[300], *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    const struct passwd *user = getpwuid(geteuid());
    setenv("XDG_CACHE_HOME", "/c", 1);
    assert_string_equal(hp_cache_path("local.cost", out, sizeof out), "/c/hplan/local.cost");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/h", 1);
    assert_string_equal(hp_cache_path("local.cost", out, sizeof out), "/h/.cache/hplan/local.cost");
    unsetenv("HOME");
    snprintf(want, sizeof want, "%s/.cache/hplan/local.cost", user ? user->pw_dir : "");
    assert_string_equal(hp_cache_path("local.cost", out, sizeof out), want);
    if (home) setenv("HOME", home, 1);
    if (cache) setenv("XDG_CACHE_HOME", cache, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_parses_back_to_the_same_machine),
        cmocka_unit_test(shipped_machines_have_their_published_totals),
        cmocka_unit_test(local_is_one_node_of_cores),
        cmocka_unit_test(every_mistake_is_named),
        cmocka_unit_test(all_that_is_wrong_is_said_at_once),
        cmocka_unit_test(a_name_and_two_counts_are_a_machine),
        cmocka_unit_test(what_is_given_wins),
        cmocka_unit_test(links_may_be_named),
        cmocka_unit_test(machines_may_be_large),
        cmocka_unit_test(a_change_changes_what_it_names),
        cmocka_unit_test(damaged_text_is_a_machine_or_refused),
        cmocka_unit_test(a_machine_loads_from_its_file),
        cmocka_unit_test(files_that_are_no_machine_are_refused),
        cmocka_unit_test(gpus_of_this_node_become_a_machine),
        cmocka_unit_test(the_cache_is_the_users_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
