/* test_decoder.c - files read by a decoder. Laws: the pixels are those that this process reads; a file
 * that crashes, loops or fills memory gives an error that names it, and the next file is read; nothing
 * outlives the rank.
 *
 * A hostile file is one that libpng decodes as this test wants. The decoder is a fork of this program, whose
 * png_read_row misbehaves for images of certain widths while this test runs. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "exec/data/image/reader.h"
#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/plan/data_files.h"

enum { H = 211, W = 157 }; /* no small image */
enum { ROWS = 700 };       /* rows of a hostile image */
enum { CRASHES = 101, LOOPS, HOARDS, WAITS, ENDS, TRIES };

/* silent_s: so long that no decoder here is given up for silence, however busy the machine. */
static const hp_decoder_limits LIMITS = {
    .memory_bytes = 128 << 20, .cpu_s = 1, .pixels_per_s = 1e6, .silent_s = 600};
enum { HANGS_S = 300 }; /* longer than anything here takes on a busy machine */

/* --- what a hostile file does --- */

static void hoard(void) {
    static void *held[1024];
    for (int i = 0; i < 1024; i++) {
        held[i] = malloc(2 << 20); /* the last pointer is NULL */
        memset(held[i], 1, 2 << 20);
    }
}

/* One byte per forbidden action: 1 if it was refused. */
static void try_all(uint8_t *row) {
    char *const words[] = {NULL};
    int n = 0;
    row[n++] = execv("/bin/true", words) != 0 && errno == EPERM;
    row[n++] = socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM;
    row[n++] = open("/tmp/hplan-decoder-was-here", O_CREAT | O_WRONLY, 0600) < 0 && errno == EPERM;
    row[n++] = kill(getppid(), 0) < 0 && errno == EPERM;
    row[n++] = fork() < 0 && errno == EPERM;
    row[n++] = unlink("/tmp/hplan-decoder-was-here") < 0 && errno == EPERM;
    row[n++] = setrlimit(RLIMIT_FSIZE, &(struct rlimit){1, 1}) != 0 || geteuid() == 0;
    row[n++] = open("/proc/self/status", O_RDONLY) >= 0; /* this it may */
}
enum { TRIED = 8 };

static png_uint_32 width; /* width of the last opened image; 0 in other tests */
static bool misbehaves;

/* Set by decoders, which are forked from this process, while they wait. */
static _Atomic int32_t *waiting;

void png_read_info(png_structrp png, png_inforp info) {
    void (*const next)(png_structrp, png_inforp) =
        (void (*)(png_structrp, png_inforp))dlsym(RTLD_NEXT, "png_read_info");
    next(png, info);
    width = misbehaves ? png_get_image_width(png, info) : 0;
}

void png_read_row(png_structrp png, png_bytep row, png_bytep display) {
    static void (*next)(png_structrp, png_bytep, png_bytep);
    if (!next) next = (void (*)(png_structrp, png_bytep, png_bytep))dlsym(RTLD_NEXT, "png_read_row");
    next(png, row, display);
    if (width == CRASHES) raise(SIGSEGV);
    for (volatile int i = 0; width == LOOPS; i = !i) {
    }
    if (width == HOARDS) hoard();
    if (width == WAITS) {
        atomic_store(waiting, (int32_t)getpid());
        pause();
    }
    if (width == ENDS) _exit(7);
    if (width == TRIES) try_all(row);
}

static const char *hostile(int w) {
    static uint8_t px[(CRASHES + 9) * ROWS];
    char name[32];
    snprintf(name, sizeof name, "hostile-%d.png", w);
    make_png(scratch_path(name), ROWS, w, 1, px);
    return scratch_path(name);
}

/* --- one decoder --- */

static hp_decoders *decoders;
static hp_decoder *decoder;

static int start(void **state) {
    hp_error err = {0};
    misbehaves = true;
    waiting = mmap(NULL, sizeof *waiting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (waiting == MAP_FAILED) return -1;
    if (scratch_setup(state) != 0 || hp_decoders_start(&LIMITS, &decoders, &err) != HP_OK) return -1;
    decoder = hp_decoder_new(decoders);
    return 0;
}

static bool is_there(int32_t pid) {
    return kill(pid, 0) == 0 || errno != ESRCH;
}

static int stop(void **state) {
    const int32_t pid = hp_decoder_pid(decoder);
    hp_decoder_free(decoder);
    hp_decoders_stop(decoders);
    if (pid > 0 && is_there(pid)) return -1;
    return scratch_teardown(state);
}

/* Pulses of readers while decoders work for them. */
static atomic_int beats;

static void beat(void *unused) {
    (void)unused;
    atomic_fetch_add(&beats, 1);
}

static hp_reader *open_in(hp_decoder *in, const char *path, bool mask) {
    hp_error err = {0};
    hp_reader *r = NULL;
    const hp_reader_options o = {.mask = mask, .decoder = in, .pulse = {beat, NULL}};
    if (hp_reader_open(path, &o, &r, &err) != HP_OK) fail_msg("%s", err.text);
    return r;
}

static hp_reader *open_ok(const char *path) {
    return open_in(decoder, path, false);
}

/* --- the same pixels --- */

static int32_t draw(uint64_t k, uint64_t what, int32_t n) {
    return (int32_t)hp_rng_below(17, k, what, (uint64_t)n);
}

static void same_window(hp_reader *there, hp_reader *here, const hp_crop *w) {
    hp_error err = {0};
    hp_pixels a = {0}, b = {0};
    if (hp_reader_window(there, w, &a, &err) != HP_OK || hp_reader_window(here, w, &b, &err) != HP_OK)
        fail_msg("%s", err.text);
    assert_true(a.h == b.h && a.w == b.w && a.c == b.c);
    const size_t c = (size_t)a.c;
    for (int32_t y = w->y0; y < w->y1; y++)
        assert_memory_equal(hp_pixels_row(&a, y) + (size_t)(w->x0 - a.window.x0) * c,
                            hp_pixels_row(&b, y) + (size_t)(w->x0 - b.window.x0) * c,
                            (size_t)hp_crop_columns(w) * c);
    const size_t whole = (size_t)a.h * (size_t)a.w * c;
    if (whole > 65536) assert_int_equal(hp_reader_bytes(there), hp_reader_bytes(here));
}

static void same(const char *path, bool mask, uint64_t k) {
    hp_reader *there = open_in(decoder, path, mask), *here = open_in(NULL, path, mask);
    const hp_pixels size = hp_reader_size(here);
    assert_int_equal(hp_reader_is_sequential(there), hp_reader_is_sequential(here));
    assert_int_equal(hp_reader_level(there, 2), hp_reader_level(here, 2));
    for (uint64_t i = 0; i < 40; i++) {
        hp_crop w = {draw(k, 4 * i, size.h), draw(k, 4 * i + 1, size.w), 0, 0};
        w.y1 = w.y0 + 1 + draw(k, 4 * i + 2, size.h - w.y0);
        w.x1 = w.x0 + 1 + draw(k, 4 * i + 3, size.w - w.x0);
        same_window(there, here, &w);
    }
    hp_reader_close(there);
    hp_reader_close(here);
}

static uint8_t px[H * W * 3];
enum { H_SMALL = 31, W_SMALL = 23 };

static void every_window_is_as_if_read_here(void **state) {
    (void)state;
    for (int i = 0; i < H * W * 3; i++) px[i] = (uint8_t)hp_rng_below(3, 1, (uint64_t)i, 256);
    make_png(scratch_path("x.png"), H, W, 3, px);
    make_png_as(scratch_path("i.png"), H, W, PNG_COLOR_TYPE_RGB, 8, true, px);
    make_png_as(scratch_path("m.png"), H, W, PNG_COLOR_TYPE_GRAY, 8, false, px);
    make_jpeg_as(scratch_path("x.jpg"), H, W, 3, px, 90, true);
    make_tiff(scratch_path("x.tif"), H, W, 3, px, 8, 0);
    make_tiff_tiled(scratch_path("t.tif"), H, W, 3, px, 16);
    const char *const names[] = {"x.png", "i.png", "m.png", "x.jpg", "x.tif", "t.tif"};
    for (uint64_t k = 0; k < sizeof names / sizeof *names; k++) same(scratch_path(names[k]), false, k);
    same(scratch_path("m.png"), true, 99);
    make_png(scratch_path("small.png"), H_SMALL, W_SMALL, 3, px);
    make_tiff(scratch_path("small.tif"), H_SMALL, W_SMALL, 3, px, 8, 0);
    same(scratch_path("small.png"), false, 100);
    same(scratch_path("small.tif"), false, 101);
}

/* 60 MB, in two answers. */
static void a_large_window_comes_in_pieces(void **state) {
    (void)state;
    make_png_blank(scratch_path("large.png"), 3000, 20000);
    hp_reader *there = open_ok(scratch_path("large.png")),
              *here = open_in(NULL, scratch_path("large.png"), false);
    same_window(there, here, &(hp_crop){0, 0, 3000, 20000});
    hp_reader_close(there);
    hp_reader_close(here);
}

static void errors_are_those_of_reading_here(void **state) {
    (void)state;
    hp_error there = {0}, here = {0};
    hp_reader *r;
    const hp_reader_options o = {.decoder = decoder};
    scratch_write("bad.png", "no image", 8);
    scratch_write("short.png", "\x89PNG\r\n\x1a\n", 8);
    const char *const paths[] = {scratch_path("bad.png"), scratch_path("missing.png"),
                                 scratch_path("short.png")};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hp_reader_open(paths[i], &o, &r, &there), hp_reader_open(paths[i], NULL, &r, &here));
        assert_string_equal(there.text, here.text);
    }
}

/* --- hostile files --- */

/* Reads file `w`: the error must have the file's name and these words. Open readers and other files must
 * still work. Returns the pulses before the error. */
static int fails(int w, hp_status code, const char *words) {
    static const uint8_t blank[H * W];
    hp_error err = {0};
    hp_pixels view;
    make_png(scratch_path("good.png"), H, W, 1, blank);
    hp_reader *before = open_ok(scratch_path("good.png")), *bad = open_ok(hostile(w));
    atomic_store(&beats, 0);
    assert_int_equal(hp_reader_window(bad, NULL, &view, &err), code);
    const int worked = atomic_load(&beats);
    assert_non_null(strstr(err.text, "hostile-"));
    if (!strstr(err.text, words)) fail_msg("'%s' is not in: %s", words, err.text);
    hp_reader_close(bad);
    if (hp_reader_window(before, NULL, &view, &err) != HP_OK) fail_msg("%s", err.text);
    hp_reader *after = open_ok(scratch_path("good.png"));
    if (hp_reader_window(after, NULL, &view, &err) != HP_OK) fail_msg("%s", err.text);
    hp_reader_close(before);
    hp_reader_close(after);
    return worked;
}

static void a_file_that_crashes_costs_its_decoder(void **state) {
    (void)state;
    fails(CRASHES, HP_EDATA, "signal 11");
    fails(ENDS, HP_EDATA, "status 7");
}

/* Within the second of processor time the reader checks, and sends a pulse, up to ten times
 * on an idle machine. */
static void a_file_that_loops_is_stopped(void **state) {
    (void)state;
    assert_true(fails(LOOPS, HP_EDATA, "decoding takes more than 1 s") >= 2);
}

/* Skipped: AddressSanitizer waits for a symbolizer that a decoder may not start. */
#ifdef HPLAN_SANITIZED
static const bool SANITIZED = true;
#else
static const bool SANITIZED = false;
#endif

static void a_file_that_fills_memory_is_stopped(void **state) {
    (void)state;
    if (SANITIZED) skip();
    fails(HOARDS, HP_EDATA, "in at most 128 MiB of memory");
}

static void pause_ms(int64_t ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The decoder that waits in a file; 0: none does. */
static int32_t await_decoder(void) {
    int32_t pid = 0;
    for (const double start_s = hp_now_s(); !(pid = atomic_load(waiting)) && hp_now_s() - start_s < HANGS_S;)
        pause_ms(10);
    return pid;
}

static void *kill_waiting(void *unused) {
    const int32_t pid = await_decoder();
    if (pid) kill(pid, SIGKILL);
    return unused;
}

static void a_decoder_that_is_killed_is_said_to_be(void **state) {
    (void)state;
    pthread_t thread;
    atomic_store(waiting, 0);
    assert_int_equal(pthread_create(&thread, NULL, kill_waiting, NULL), 0);
    fails(WAITS, HP_EDEAD, "was killed");
    pthread_join(thread, NULL);
}

static void what_a_decoder_may_not_do_is_refused(void **state) {
    (void)state;
    hp_error err = {0};
    hp_pixels view;
    hp_reader *r = open_ok(hostile(TRIES));
    if (hp_reader_window(r, NULL, &view, &err) != HP_OK) fail_msg("%s", err.text);
    for (int i = 0; i < TRIED; i++)
        if (view.px[i] != 1) fail_msg("try %d was not refused", i);
    hp_reader_close(r);
    assert_int_equal(access("/tmp/hplan-decoder-was-here", F_OK), -1);
}

/* Counts pulses while the decoder waits, for about a dozen checks of its reader. */
static void *count_beats_and_kill(void *more) {
    const int32_t pid = await_decoder();
    const int before = atomic_load(&beats);
    pause_ms(1500);
    *(int *)more = atomic_load(&beats) - before;
    if (pid) kill(pid, SIGKILL);
    return NULL;
}

/* A decoder that does not work causes no pulses, except for earlier work. */
static void beats_say_that_a_decoder_works(void **state) {
    (void)state;
    pthread_t thread;
    int more = -1;
    atomic_store(waiting, 0);
    assert_int_equal(pthread_create(&thread, NULL, count_beats_and_kill, &more), 0);
    fails(WAITS, HP_EDEAD, "was killed");
    pthread_join(thread, NULL);
    assert_in_range(more, 0, 2);
}

static void a_decoder_keeps_to_the_cores_of_who_reads(void **state) {
    (void)state;
    cpu_set_t before, one, its;
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    hp_decoder *own = hp_decoder_new(decoders);
    hp_reader_close(open_in(own, hostile(TRIES), false));
    assert_int_equal(sched_getaffinity(hp_decoder_pid(own), sizeof its, &its), 0);
    assert_true(CPU_EQUAL(&its, &one));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    hp_decoder_free(own);
}

/* --- a rank that is killed --- */

static void nothing_outlives_the_rank(void **state) {
    (void)state;
    int32_t pid;
    int end[2];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(end), 0);
    const char *path = hostile(WAITS);
    const pid_t rank = fork();
    if (rank == 0) {
        hp_decoders *mine;
        hp_reader *r;
        hp_pixels view;
        if (hp_decoders_start(&LIMITS, &mine, NULL) != HP_OK) _exit(1);
        hp_decoder *d = hp_decoder_new(mine);
        const hp_reader_options o = {.decoder = d};
        if (hp_reader_open(path, &o, &r, NULL) != HP_OK) _exit(1);
        pid = hp_decoder_pid(d);
        if (write(end[1], &pid, sizeof pid) != sizeof pid) _exit(1);
        hp_reader_window(r, NULL, &view, NULL);
        _exit(1);
    }
    assert_int_equal(read(end[0], &pid, sizeof pid), sizeof pid);
    assert_true(is_there(pid));
    kill(rank, SIGKILL);
    for (const double start_s = hp_now_s(); is_there(pid) && hp_now_s() - start_s < HANGS_S; pause_ms(10)) {
        while (waitpid(-1, NULL, WNOHANG) > 0) { /* the rank, its process that starts decoders, the decoder */
        }
    }
    assert_false(is_there(pid));
    close(end[0]), close(end[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_window_is_as_if_read_here),
        cmocka_unit_test(a_large_window_comes_in_pieces),
        cmocka_unit_test(errors_are_those_of_reading_here),
        cmocka_unit_test(a_file_that_crashes_costs_its_decoder),
        cmocka_unit_test(a_file_that_loops_is_stopped),
        cmocka_unit_test(a_file_that_fills_memory_is_stopped),
        cmocka_unit_test(a_decoder_that_is_killed_is_said_to_be),
        cmocka_unit_test(what_a_decoder_may_not_do_is_refused),
        cmocka_unit_test(beats_say_that_a_decoder_works),
        cmocka_unit_test(a_decoder_keeps_to_the_cores_of_who_reads),
        cmocka_unit_test(nothing_outlives_the_rank),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
