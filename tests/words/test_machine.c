/* test_machine.c - `hplan machine`: its output is accepted and gives the same machine; all errors are listed;
 * the local machine is detected from its network cards and its Slurm job. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void shipped_machines_are_listed(void **state) {
    static const char *const names[] = {"thesis-a100", "lassen",   "summit",     "pitzer",
                                        "frontera",    "thetagpu", "perlmutter", "dgx-a100",
                                        "dgx-h100",    "dgx-h200", "p40x8"};
    words *w = *state;
    hplan(w, 0, "machine list");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) out_says(w, "^%s ", names[i]);
}

static void what_is_shown_is_the_same_machine_again(void **state) {
    static const char *const machines[] = {
        "thesis-a100", "frontera", "local",
        "nodes=8; node=4 x a100-80, nvlink=300GB/s; nic=2 x 200Gb/s; fat-tree 2:1",
        "nodes=8; node=8 x h100; nic=8 x 400Gb/s, rails; fat-tree 2:1, leaf=16; mpi=openmpi; sharp=yes"};
    words *w = *state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        hplan(w, 0, "machine show '%s'", machines[i]);
        words_write("shown.machine", "%s", w->out);
        hplan(w, 0, "machine check shown.machine");
        hplan(w, 0, "machine show shown.machine");
        words_write("again.machine", "%s", w->out);
        char *shown = strdup(w->out);
        hplan(w, 0, "machine show again.machine");
        assert_string_equal(w->out, shown);
        free(shown);
        hplan(w, 0, "simulate --net cnn --image 28 --strategy dp=2 --machine shown.machine");
    }
}

static void what_is_shipped_has_sources(void **state) {
    words *w = *state;
    hplan(w, 0, "machine show summit");
    assert_true(words_count(w->out, "# ") >= 4);
}

static void wrong_machines_are_refused(void **state) {
    static const words_row rows[] = {
        {2, "machine check 'nodes=8; nod=4 x a100-80; nic=2 x fast'", NULL, "\\(node\\).*'fast' is neither"},
        {65, "machine check json.machine", NULL, "not written in JSON but as nodes=8"},
        {2, "machine", NULL, "."},
        {2, "machine show", NULL, "."},
        {2, "machine list x", NULL, "."},
        {2, "machine lst", NULL, "."},
        {2, "machine check", NULL, "."},
    };
    words_write("json.machine", "{\"nodes\": 8}\n");
    each_row(*state, rows);
}

static void make_folder(const char *path) {
    char at[160];
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] && path[i] != '/') continue;
        snprintf(at, sizeof at, "%.*s", (int)i, path);
        mkdir(at, 0700);
    }
}

static void make_card(const char *name, const char *rate, const char *state) {
    char path[160], file[192];
    snprintf(path, sizeof path, "sys/class/infiniband/%s/ports/1", name);
    make_folder(path);
    snprintf(file, sizeof file, "%s/rate", path);
    words_write(file, "%s\n", rate);
    snprintf(file, sizeof file, "%s/state", path);
    words_write(file, "%s\n", state);
}

/* Cards of a made-up /sys: those that are active and as fast as the fastest; nodes of a Slurm job. */
static void the_machine_at_hand_is_detected(void **state) {
    words *w = *state;
    make_card("mlx5_0", "200 Gb/sec (4X HDR)", "4: ACTIVE");
    make_card("mlx5_1", "200 Gb/sec (4X HDR)", "4: ACTIVE");
    make_card("mlx5_2", "100 Gb/sec (4X EDR)", "4: ACTIVE");
    make_card("mlx5_3", "200 Gb/sec (4X HDR)", "1: DOWN");
    setenv("SLURM_JOB_NUM_NODES", "16", 1);
    hplan(w, 0, "machine --detect --sys sys");
    unsetenv("SLURM_JOB_NUM_NODES");
    out_says(w, "^nic=2 x 25GB/s, ib-hdr, latency=14us$");
    out_says(w, "^nodes=16$");
    words_write("here.machine", "%s", w->out);
    hplan(w, 0, "machine check here.machine");
    hplan(w, 0, "simulate --net cnn --image 28 --strategy dp=2 --machine here.machine");
}

/* A bridge is not a device. */
static void ethernet_is_detected(void **state) {
    words *w = *state;
    make_folder("net/class/net/eth0/device");
    make_folder("net/class/net/br0");
    words_write("net/class/net/eth0/speed", "10000\n");
    words_write("net/class/net/br0/speed", "100000\n");
    hplan(w, 0, "machine --detect --sys net");
    out_says(w, "^nic=1 x 1.25GB/s, tcp, latency=50us$");
    hplan(w, 0, "machine --detect --sys nothing");
    out_says(w, "none was found");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_machines_are_listed),
        cmocka_unit_test(what_is_shown_is_the_same_machine_again),
        cmocka_unit_test(what_is_shipped_has_sources),
        cmocka_unit_test(wrong_machines_are_refused),
        cmocka_unit_test(the_machine_at_hand_is_detected),
        cmocka_unit_test(ethernet_is_detected),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
