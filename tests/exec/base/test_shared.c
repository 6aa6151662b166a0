/* test_shared.c - shared memory is the same memory in every process that opens it by its name, as long as the
 * name is valid. Reserving takes its pages, and no file system contains it. */
#include "exec/base/shared.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 3 * 4096 + 17 };

static unsigned char *new_memory(int64_t bytes, hp_memory_name *name) {
    void *at;
    hp_error err;
    if (hp_shared_new(bytes, &at, &err) != HP_OK || hp_shared_name(at, name, &err) != HP_OK)
        fail_msg("%s", err.text);
    return at;
}

/* Another process opens the memory and calls `act`. Returns its exit status, 1000 + the signal that killed
 * it, or -1: opening failed. */
static int in_another_process(const hp_memory_name *name, bool writable, int (*act)(unsigned char *)) {
    void *at;
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(hp_shared_open(name, writable, &at, NULL) == HP_OK ? act(at) : 255);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) return 1000 + WTERMSIG(status);
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

static int sees_sevens(unsigned char *at) {
    int n = 0;
    for (int i = 0; i < BYTES; i++) n += at[i] == 7;
    return n == BYTES ? 42 : 1;
}

static int writes_nines(unsigned char *at) {
    memset(at, 9, BYTES);
    return 0;
}

/* A forbidden write, without a sanitizer's report. */
static int dies_writing(unsigned char *at) {
    signal(SIGSEGV, SIG_DFL);
    return writes_nines(at);
}

static void another_process_has_the_same_bytes(void **state) {
    (void)state;
    hp_memory_name name;
    unsigned char *at = new_memory(BYTES, &name);
    for (int i = 0; i < BYTES; i++) assert_int_equal(at[i], 0);
    memset(at, 7, BYTES);
    assert_int_equal(in_another_process(&name, false, sees_sevens), 42);
    assert_int_equal(in_another_process(&name, true, writes_nines), 0);
    for (int i = 0; i < BYTES; i++) assert_int_equal(at[i], 9);
    assert_int_equal(in_another_process(&name, false, dies_writing), 1000 + SIGSEGV);
    hp_shared_free(at);
}

static void the_memory_lives_as_long_as_a_mapping_of_it(void **state) {
    (void)state;
    hp_memory_name name;
    hp_error err;
    unsigned char *at = new_memory(BYTES, &name);
    void *other;
    assert_int_equal(hp_shared_open(&name, true, &other, &err), HP_OK);
    memset(at, 5, BYTES);
    hp_shared_free(at);
    for (int i = 0; i < BYTES; i++) assert_int_equal(((unsigned char *)other)[i], 5);
    hp_shared_free(other);
}

/* The next memory gets the previous descriptor, so the old name leads to it. */
static void a_name_leads_to_no_other_memory(void **state) {
    (void)state;
    hp_memory_name old, name;
    void *at;
    hp_error err;
    hp_shared_free(new_memory(BYTES, &old));
    assert_int_equal(hp_shared_open(&old, false, &at, &err), HP_EUNAVAIL);
    unsigned char *next = new_memory(BYTES, &name);
    assert_memory_equal(old.bytes, name.bytes, 2 * sizeof(int32_t)); /* process and descriptor */
    assert_int_equal(hp_shared_open(&old, false, &at, &err), HP_EUNAVAIL);
    assert_non_null(strstr(err.text, "another process"));
    hp_shared_free(next);
}

static int64_t taken_bytes(const hp_memory_name *name) {
    int32_t number[2];
    char path[64];
    struct stat file;
    memcpy(number, name->bytes, sizeof number);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", number[0], number[1]);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_nlink, 0); /* no folder has a name for it */
    return 512 * (int64_t)file.st_blocks;
}

static void reserved_pages_are_taken_at_once(void **state) {
    (void)state;
    hp_memory_name name;
    hp_error err;
    unsigned char *at = new_memory(8 << 20, &name);
    assert_true(taken_bytes(&name) < 8 << 20);
    assert_int_equal(hp_shared_reserve(at, &err), HP_OK);
    assert_true(taken_bytes(&name) >= 8 << 20);
    hp_shared_free(at);
}

static void what_is_too_large_is_refused(void **state) {
    (void)state;
    void *at;
    hp_error err;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const hp_memory m = {.ops = &hp_memory_shared};
    assert_int_equal(m.ops->alloc(&m, 2 << 20, &at, &err), HP_EPLAN);
    assert_non_null(strstr(err.text, "2097152 bytes of shared memory"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(m.ops->alloc(&m, 2 << 20, &at, &err), HP_OK);
    m.ops->free(&m, at, 2 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_has_the_same_bytes),
        cmocka_unit_test(the_memory_lives_as_long_as_a_mapping_of_it),
        cmocka_unit_test(a_name_leads_to_no_other_memory),
        cmocka_unit_test(reserved_pages_are_taken_at_once),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
