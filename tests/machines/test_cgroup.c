/* test_cgroup.c - control groups' limits, from trees of files as kernels and container engines lay them out.
 * The law: for any layout, the smallest limit between the process's group and the root applies. */
#include "machines/cgroup.h"
#include "tests/support/plan/tree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Mounts made by systemd. */
#define MOUNT_V2       "35 30 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1(word) "36 30 0:32 / /sys/fs/cgroup/" word " rw,nosuid - cgroup cgroup rw," word "\n"

enum { GIB = 1 << 30 };

static hp_cgroup read_tree(tree *t) {
    hp_cgroup c;
    hp_cgroup_read(t->root, &c);
    return c;
}

static void nothing_readable_limits_nothing(void **state) {
    const hp_cgroup c = read_tree(*state);
    assert_int_equal(c.memory_bytes, INT64_MAX);
    assert_int_equal(c.memory_free_bytes, INT64_MAX);
    assert_true(isinf(c.cpus));
    assert_string_equal(c.memory_file, "");
}

static void version_2_takes_the_smallest_on_the_way_up(void **state) {
    tree *t = *state;
    tree_write(t, "/proc/self/cgroup", "0::/user.slice/job/step\n");
    tree_write(t, "/proc/self/mountinfo", "22 30 0:5 / /proc rw - proc proc rw\n" MOUNT_V2);
    tree_write(t, "/sys/fs/cgroup/user.slice/memory.max", "max\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/memory.max", "1073741824\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/memory.current", "805306368\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/memory.stat",
               "anon 5\ninactive_file 201326592\nactive_file 67108864\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/step/memory.max", "2147483648\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/step/memory.current", "0\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/step/cpu.max", "max 100000\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
    const hp_cgroup c = read_tree(t);
    assert_int_equal(c.memory_bytes, GIB);
    assert_int_equal(c.memory_free_bytes, GIB / 2); /* memory that is held and cannot be dropped: 768 - 256
                                                     * MiB */
    assert_true(c.cpus == 1.5);
    assert_non_null(strstr(c.memory_file, "/user.slice/job/memory.max"));
    assert_non_null(strstr(c.cpus_file, "/user.slice/cpu.max"));
    /* the same limits in reverse order */
    tree_write(t, "/sys/fs/cgroup/user.slice/job/step/memory.max", "536870912\n");
    tree_write(t, "/sys/fs/cgroup/user.slice/job/step/memory.current", "536870912\n");
    assert_int_equal(read_tree(t).memory_bytes, GIB / 2);
    assert_int_equal(read_tree(t).memory_free_bytes, 0);
}

static void version_1_has_a_hierarchy_for_each(void **state) {
    tree *t = *state;
    tree_write(t, "/proc/self/cgroup",
               "12:cpuset:/\n5:memory:/slurm/job_7\n4:cpu,cpuacct:/batch\n0::/init\n");
    tree_write(t, "/proc/self/mountinfo", MOUNT_V1("memory") MOUNT_V1("cpu,cpuacct"));
    tree_write(t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    tree_write(t, "/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "1073741824\n");
    tree_write(t, "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
    tree_write(t, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    tree_write(t, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    tree_write(t, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "25000\n");
    tree_write(t, "/sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us", "50000\n");
    tree_write(t, "/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "805306368\n");
    tree_write(t, "/sys/fs/cgroup/memory/slurm/memory.stat",
               "active_file 7\ntotal_inactive_file 134217728\ntotal_active_file 134217728\n");
    const hp_cgroup c = read_tree(t);
    assert_int_equal(c.memory_bytes, GIB);
    assert_int_equal(c.memory_free_bytes, GIB / 2); /* including the memory of its own subgroups */
    assert_non_null(strstr(c.memory_file, "/memory/slurm/memory.limit_in_bytes"));
    assert_true(c.cpus == 0.5);
}

/* "Hybrid": version 2 mounted without controllers, next to version 1. */
static void hybrid_reads_both(void **state) {
    tree *t = *state;
    tree_write(t, "/proc/self/cgroup", "2:memory:/a\n0::/b\n");
    tree_write(t, "/proc/self/mountinfo",
               "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" MOUNT_V1("memory"));
    tree_write(t, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n");
    tree_write(t, "/sys/fs/cgroup/unified/b/cpu.max", "300000 100000\n");
    assert_int_equal(read_tree(t).memory_bytes, GIB);
    assert_true(read_tree(t).cpus == 3);
}

/* A container engine mounts only its group; the process may see the host's path, its own "/", or "/../..". */
static void in_a_container_the_mounted_group_counts(void **state) {
    static const char *const PATHS[] = {"/docker/7f3a", "/", "/../../docker/7f3a"};
    tree *t = *state;
    tree_write(t, "/proc/self/mountinfo",
               "700 690 0:31 /docker/7f3a /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n");
    tree_write(t, "/sys/fs/cgroup/memory.max", "1073741824\n");
    for (int i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "0::%s\n", PATHS[i]);
        tree_write(t, "/proc/self/cgroup", line);
        assert_int_equal(read_tree(t).memory_bytes, GIB);
    }
    /* a group below the container's own */
    tree_write(t, "/proc/self/cgroup", "0::/docker/7f3a/inner\n");
    tree_write(t, "/sys/fs/cgroup/inner/memory.max", "536870912\n");
    assert_int_equal(read_tree(t).memory_bytes, GIB / 2);
    /* another group whose name has the same prefix */
    tree_write(t, "/proc/self/cgroup", "0::/docker/7f3abc\n");
    assert_int_equal(read_tree(t).memory_bytes, GIB);
}

static void damaged_files_limit_nothing(void **state) {
    tree *t = *state;
    tree_write(t, "/proc/self/cgroup", "0\n::\n0::/a\n");
    tree_write(t, "/proc/self/mountinfo", "garbage\n1 2 - cgroup2\n" MOUNT_V2);
    tree_write(t, "/sys/fs/cgroup/a/memory.max", "a lot\n");
    tree_write(t, "/sys/fs/cgroup/a/cpu.max", "100000 0\n");
    assert_int_equal(read_tree(t).memory_bytes, INT64_MAX);
    assert_true(isinf(read_tree(t).cpus));
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TREE(nothing_readable_limits_nothing),         IN_TREE(version_2_takes_the_smallest_on_the_way_up),
        IN_TREE(version_1_has_a_hierarchy_for_each),      IN_TREE(hybrid_reads_both),
        IN_TREE(in_a_container_the_mounted_group_counts), IN_TREE(damaged_files_limit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
