/* test_here.c - the local node: hwloc's synthetic topologies, control groups as files, Slurm as environment.
 * Laws: cores and memory are the least of all limits, the deciding limit is named, and nothing exceeds the
 * node. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "machines/here.h"
#include "machines/machine.h"
#include "tests/support/plan/tree.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const SLURM[] = {"SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_NODE",
                                    "SLURM_MEM_PER_CPU"};

/* A node with 64 GiB of memory, 48 of them available, and a version 2 group. */
static int open_node(void **state) {
    for (int i = 0; i < 4; i++) unsetenv(SLURM[i]);
    if (tree_open(state)) return -1;
    tree_write(*state, "/proc/meminfo",
               "MemTotal:       67108864 kB\nMemFree:         1048576 kB\nMemAvailable:   50331648 kB\n");
    tree_write(*state, "/proc/self/cgroup", "0::/job\n");
    tree_write(*state, "/proc/self/mountinfo", "35 30 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    return 0;
}

static int close_node(void **state) {
    for (int i = 0; i < 4; i++) unsetenv(SLURM[i]);
    return tree_close(state);
}

static hp_here here_of(const tree *t, const char *topology) {
    hp_here here;
    hp_error err = {0};
    if (hp_here_read(&(hp_here_source){t->root, topology}, &here, &err) != HP_OK) fail_msg("%s", err.text);
    return here;
}

static const int64_t GIB = 1 << 30;

static void a_device_is_a_core_not_a_hardware_thread(void **state) {
    static const struct {
        const char *topology;
        int cores, threads, numa;
    } nodes[] = {{"pack:1 core:4 pu:1", 4, 4, 1},
                 {"pack:2 [numa] core:8 pu:2", 16, 32, 2},
                 {"pack:2 [numa] [numa] l3:2 core:3 pu:4", 12, 48, 4},
                 {"pu:6", 6, 6, 1}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        const hp_here h = here_of(*state, nodes[i].topology);
        assert_int_equal(h.cores, nodes[i].cores);
        assert_int_equal(h.node_cores, nodes[i].cores);
        assert_int_equal(h.threads, nodes[i].threads);
        assert_int_equal(h.numa_nodes, nodes[i].numa);
        assert_string_equal(h.cores_limit, "");
    }
}

static void caches_are_those_of_a_core(void **state) {
    const hp_here h = here_of(*state, "pack:1 l3:1(size=33554432) l2:2(size=1048576) l1d:1(size=32768) pu:2");
    assert_int_equal(h.l1_bytes, 32768);
    assert_int_equal(h.l2_bytes, 1048576);
    assert_int_equal(h.l3_bytes, 33554432);
    assert_int_equal(here_of(*state, "core:2 pu:1").l3_bytes, 0);
}

static void the_smallest_limit_of_cores_decides_and_is_named(void **state) {
    tree *t = *state;
    static const char node[] = "pack:2 core:8 pu:2"; /* 16 cores */
    tree_write(t, "/sys/fs/cgroup/job/cpu.max", "650000 100000\n");
    assert_int_equal(here_of(t, node).cores, 6);
    assert_non_null(strstr(here_of(t, node).cores_limit, "cpu.max"));
    setenv("SLURM_CPUS_PER_TASK", "3", 1);
    assert_int_equal(here_of(t, node).cores, 3);
    setenv("SLURM_CPUS_ON_NODE", "12", 1); /* the job's share of the node, whatever a task has */
    assert_int_equal(here_of(t, node).cores, 6);
    setenv("SLURM_CPUS_ON_NODE", "4", 1);
    assert_int_equal(here_of(t, node).cores, 4);
    assert_string_equal(here_of(t, node).cores_limit, "SLURM_CPUS_ON_NODE=4");
    /* a fraction of a core is still one; a limit above the node's is none */
    tree_write(t, "/sys/fs/cgroup/job/cpu.max", "20000 100000\n");
    assert_int_equal(here_of(t, node).cores, 1);
    tree_write(t, "/sys/fs/cgroup/job/cpu.max", "6400000 100000\n");
    unsetenv("SLURM_CPUS_ON_NODE");
    setenv("SLURM_CPUS_PER_TASK", "999", 1);
    assert_int_equal(here_of(t, node).cores, 16);
    assert_string_equal(here_of(t, node).cores_limit, "");
}

static void the_smallest_limit_of_memory_decides_and_is_named(void **state) {
    tree *t = *state;
    hp_here h = here_of(t, "core:4 pu:1");
    assert_int_equal(h.memory_bytes, 64 * GIB);
    assert_int_equal(h.free_bytes, 48 * GIB);
    assert_string_equal(h.memory_limit, "");
    tree_write(t, "/sys/fs/cgroup/job/memory.max", "34359738368\n"); /* 32 GiB, 8 of them in use */
    tree_write(t, "/sys/fs/cgroup/job/memory.current", "8589934592\n");
    h = here_of(t, "core:4 pu:1");
    assert_int_equal(h.memory_bytes, 32 * GIB);
    assert_int_equal(h.node_memory_bytes, 64 * GIB);
    assert_int_equal(h.free_bytes, 24 * GIB);
    assert_non_null(strstr(h.memory_limit, "/job/memory.max"));
    setenv("SLURM_CPUS_ON_NODE", "4", 1);
    setenv("SLURM_MEM_PER_CPU", "4096", 1); /* MiB */
    h = here_of(t, "core:4 pu:1");
    assert_int_equal(h.memory_bytes, 16 * GIB);
    assert_int_equal(h.free_bytes, 16 * GIB);
    assert_string_equal(h.memory_limit, "SLURM_MEM_PER_CPU");
    setenv("SLURM_MEM_PER_NODE", "0", 1); /* sbatch --mem=0: the whole node */
    assert_int_equal(here_of(t, "core:4 pu:1").memory_bytes, 16 * GIB);
    setenv("SLURM_MEM_PER_NODE", "1024", 1);
    assert_int_equal(here_of(t, "core:4 pu:1").memory_bytes, GIB);
    setenv("SLURM_MEM_PER_NODE", "9999999999999999999", 1);
    assert_int_equal(here_of(t, "core:4 pu:1").memory_bytes, 32 * GIB);
}

static void a_node_that_says_nothing_is_an_error(void **state) {
    hp_here h;
    hp_error err = {0};
    tree_write(*state, "/proc/meminfo", "nothing\n");
    assert_int_equal(hp_here_read(&(hp_here_source){((tree *)*state)->root, "core:2"}, &h, &err),
                     HP_EUNAVAIL);
    assert_non_null(strstr(err.text, "--machine"));
    assert_int_equal(hp_here_read(&(hp_here_source){"", "no such thing"}, &h, &err), HP_EUNAVAIL);
}

/* Asks another way: sched_getaffinity and sysconf. */
static void this_node_agrees_with_the_kernel(void **state) {
    (void)state;
    cpu_set_t all, one;
    hp_here h;
    hp_machine m;
    hp_error err = {0};
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(hp_here_read(&hp_here_system, &h, &err), HP_OK);
    assert_int_equal(h.threads, CPU_COUNT(&all));
    assert_in_range(h.cores, 1, sysconf(_SC_NPROCESSORS_CONF));
    const int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    assert_int_equal(h.node_memory_bytes, bytes);
    assert_true(h.free_bytes > 0 && h.free_bytes <= h.memory_bytes && h.memory_bytes <= bytes);
    assert_int_equal(hp_machine_load("local", &m, &err), HP_OK);
    assert_int_equal(m.devices_per_node, h.cores);
    assert_int_equal(m.device.memory_bytes, h.memory_bytes);
    /* on one processor there is one core */
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hp_here_read(&hp_here_system, &h, &err), HP_OK);
    assert_int_equal(h.cores, 1);
    if (h.node_cores > 1 && CPU_COUNT(&all) > 1) assert_true(strlen(h.cores_limit) > 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

#define ON_NODE(test) cmocka_unit_test_setup_teardown(test, open_node, close_node)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_NODE(a_device_is_a_core_not_a_hardware_thread),
        ON_NODE(caches_are_those_of_a_core),
        ON_NODE(the_smallest_limit_of_cores_decides_and_is_named),
        ON_NODE(the_smallest_limit_of_memory_decides_and_is_named),
        ON_NODE(a_node_that_says_nothing_is_an_error),
        cmocka_unit_test(this_node_agrees_with_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
