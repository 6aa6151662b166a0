/* test_ring.c - laws of the ring: what was recorded is read back, whatever killed the writer or cut the file.
 */
#include "tests/support/traces/trace_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char path[256];

static hp_span span_of(int64_t i) {
    return (hp_span){(int32_t)(i % 1000), (int32_t)(i / 1000), i * 10, i * 10 + 7};
}

static void check_spans(const hp_ring_data *d, int64_t written, int64_t capacity) {
    const int64_t kept = written < capacity ? written : capacity;
    assert_int_equal(d->n_span, kept);
    assert_int_equal(d->dropped, written - kept);
    for (int64_t i = 0; i < kept; i++) {
        const hp_span want = span_of(written - kept + i);
        assert_memory_equal(&d->span[i], &want, sizeof want);
    }
}

static void newest_capacity_spans_are_read_in_order(void **state) {
    (void)state;
    hp_error err = {0};
    for (int64_t written = 0; written <= 40; written++) {
        hp_ring *r = NULL;
        hp_ring_data d;
        fixture_ok(hp_ring_create(path, 3, 1, 8, 4, &r, &err), &err);
        for (int64_t i = 0; i < written; i++) {
            hp_ring_span(r, span_of(i));
            hp_ring_sample(r, (hp_sample){HP_COUNTER_LOSS, (int32_t)i, i, (double)i});
        }
        hp_ring_close(r);
        fixture_ok(hp_ring_read(path, &d, &err), &err);
        assert_int_equal(d.rank, 3);
        assert_int_equal(d.role, 1);
        check_spans(&d, written, 8);
        assert_int_equal(d.n_sample, written < 4 ? written : 4);
        for (int64_t i = 0; i < d.n_sample; i++) assert_int_equal(d.sample[i].iter, written - d.n_sample + i);
        hp_ring_free(&d);
    }
}

/* Waits until the child has written: the file exists with a span in it. False: the child has ended. */
static bool await_span(pid_t child) {
    hp_ring_data d = {0};
    bool written = false;
    while (!written && waitpid(child, NULL, WNOHANG) == 0) {
        written = hp_ring_read(path, &d, NULL) == HP_OK && d.n_span > 0;
        hp_ring_free(&d);
        usleep(100);
    }
    return written;
}

/* A child writes as fast as it can and is killed, every fourth time at once: what is read is a run of the
 * sequence without gaps. */
static void killed_writer_leaves_whole_spans(void **state) {
    (void)state;
    hp_error err = {0};
    for (int round = 0; round < 20; round++) {
        unlink(path);
        const pid_t child = fork();
        if (child == 0) {
            hp_ring *r = NULL;
            if (hp_ring_create(path, 0, 0, 777, 10, &r, NULL) != HP_OK) _exit(1);
            for (int64_t i = 0;; i++) hp_ring_span(r, span_of(i));
        }
        const bool early = round % 4 == 3;
        if (early)
            usleep((useconds_t)round * 20);
        else
            assert_true(await_span(child));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        hp_ring_data d;
        const hp_status status = hp_ring_read(path, &d, &err);
        if (status == HP_EDATA && early) continue; /* killed before the file was set up */
        fixture_ok(status, &err);
        check_spans(&d, d.dropped + d.n_span, 777);
        hp_ring_free(&d);
    }
    assert_int_equal(hp_ring_read("/tmp/hplan-test-no-such-ring", &(hp_ring_data){0}, &err), HP_EDATA);
}

static void write_small_ring(void) {
    hp_error err = {0};
    hp_ring *r = NULL;
    fixture_ok(hp_ring_create(path, 0, 0, 20, 5, &r, &err), &err);
    for (int64_t i = 0; i < 30; i++) hp_ring_span(r, span_of(i));
    hp_ring_sample(r, (hp_sample){HP_COUNTER_STEP, 0, 0, 0.5});
    hp_ring_close(r);
}

static void every_truncation_is_rejected(void **state) {
    (void)state;
    write_small_ring();
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        hp_error err = {0};
        hp_ring_data d;
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(hp_ring_read(path, &d, &err), HP_EDATA);
        assert_true(err.text[0] != '\0');
        assert_null(d.span);
    }
}

/* Any single corrupted byte: the ring is rejected, or read as some ring within its
 * capacity; never a crash. */
static void every_flipped_byte_is_survived(void **state) {
    (void)state;
    write_small_ring();
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (off_t at = 0; at < st.st_size; at++) {
        if (at > 80 && at < 4096) continue; /* the header page's unused rest */
        unsigned char byte, flipped;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        for (int bit = 0; bit < 8; bit++) {
            flipped = (unsigned char)(byte ^ (1u << bit));
            assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
            hp_ring_data d;
            const hp_status status = hp_ring_read(path, &d, NULL);
            assert_true(status == HP_OK || status == HP_EDATA);
            if (status == HP_OK) assert_true(d.n_span <= 20 && d.n_sample <= 5);
            hp_ring_free(&d);
        }
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

/* A file-size limit simulates a full disk: both are detected when the file is reserved. */
static void no_space_is_an_error_at_creation(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit small = {1 << 16, 1 << 16};
        setrlimit(RLIMIT_FSIZE, &small);
        hp_error err = {0};
        hp_ring *r = NULL;
        const bool refused = hp_ring_create(path, 0, 0, 100000, 10, &r, &err) == HP_EIO && err.text[0];
        _exit(refused && access(path, F_OK) != 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    hp_error err = {0};
    hp_ring *r = NULL;
    assert_int_equal(hp_ring_create("/no-such-folder/x.ring", 0, 0, 10, 10, &r, &err), HP_ECREATE);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(path, sizeof path, "ring");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_capacity_spans_are_read_in_order),
        cmocka_unit_test(killed_writer_leaves_whole_spans),
        cmocka_unit_test(every_truncation_is_rejected),
        cmocka_unit_test(every_flipped_byte_is_survived),
        cmocka_unit_test(no_space_is_an_error_at_creation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
