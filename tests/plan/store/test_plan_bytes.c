/* test_plan_bytes.c - a plan.db with a changed byte or a truncated end: rejected, or the same plan,
 * candidates and content. HPLAN_LAW_CASES=N tries N flips and N lengths; an N above their number tries each.
 * Memory is allocated for what a file contains, not for what it claims. */
#include "base/db_content.h"
#include "plan/store/store.h"
#include "tests/support/plan/flips.h"
#include "tests/support/plan/law_cases.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct file {
    char path[64];
    unsigned char *bytes;
    size_t n;
    char content[HP_DB_CONTENT_TEXT];
    hp_hash hash;
} file;

static void make_plan(hp_arena *arena, hp_plan *p) {
    hp_error err = {HP_OK, ""};
    *p = (hp_plan){.net = "cnn",
                   .image_h = 8,
                   .image_w = 8,
                   .classes = 10,
                   .mode = HP_MODE_TRAIN,
                   .batch = 8,
                   .device = &hp_devices[HP_DEVICE_CPU]};
    if (hp_machine_load("thesis-a100", &p->machine, &err) != HP_OK ||
        hp_strategy_parse("dp=2", &p->strategy, &err) != HP_OK ||
        hp_plan_build(arena, p, NULL, &err) != HP_OK)
        fail_msg("%s", err.text);
}

static int write_file(void **state) {
    static file f;
    hp_arena *a = hp_arena_new();
    hp_plan p;
    hp_db db;
    hp_error err = {HP_OK, ""};
    const hp_candidate c = {.strategy = "dp=2", .gpus = 2, .step_s = 0.25, .note = "n"};
    snprintf(f.path, sizeof f.path, "/tmp/hplan-test-%d-bytes.db", (int)getpid());
    make_plan(a, &p);
    if (hp_db_create(f.path, &db, &err) != HP_OK || hp_plan_write(&db, &p, &err) != HP_OK ||
        hp_candidates_write(&db, &c, 1, NULL, 0, &err) != HP_OK || !hp_db_content(db.sql, f.content) ||
        hp_db_commit(&db, &err) != HP_OK)
        fail_msg("%s", err.text);
    hp_db_close(&db);
    f.hash = p.hash;
    hp_arena_free(a);
    f.bytes = flips_read(f.path, &f.n);
    *state = &f;
    return 0;
}

static int remove_file(void **state) {
    file *f = *state;
    free(f->bytes);
    return unlink(f->path);
}

/* Rejected, or equal to what was written. */
static bool refused(const file *f, const char *what, size_t at) {
    hp_arena *a = hp_arena_new();
    hp_db db = {0};
    hp_plan p;
    hp_error err = {HP_OK, ""};
    char content[HP_DB_CONTENT_TEXT] = "";
    hp_status s = hp_db_open(f->path, &db, &err);
    if (s == HP_OK) s = hp_plan_read(a, &db, &p, &err);
    if (s != HP_OK && (s != HP_EDATA || !err.text[0]))
        fail_msg("%s %zu: status %d, '%s'", what, at, s, err.text);
    if (s == HP_OK && (!hp_db_content(db.sql, content) || strcmp(content, f->content) != 0 ||
                       strcmp(p.hash.hex, f->hash.hex) != 0))
        fail_msg("%s %zu: another plan is taken", what, at);
    hp_db_close(&db);
    hp_arena_free(a);
    return s != HP_OK;
}

static bool refused_flip(const void *self, size_t at, unsigned char mask) {
    (void)mask;
    return refused(self, "byte", at);
}

static void another_byte_is_refused_or_changes_nothing(void **state) {
    const file *f = *state;
    const flips_count c = flips_try(f->path, law_cases(1500), refused_flip, f);
    print_message("%zu of %zu flips refused, the others change nothing\n", c.refused, c.tried);
    assert_true(c.refused > c.tried / 10); /* much of a small file is empty pages */
    assert_false(refused(f, "all of", f->n));
}

static void a_shorter_file_is_refused_or_changes_nothing(void **state) {
    const file *f = *state;
    const size_t step = 1 + f->n / law_cases(500);
    size_t n_refused = 0, tried = 0;
    for (size_t n = 0; n < f->n; n += step, tried++) {
        assert_int_equal(truncate(f->path, (off_t)n), 0);
        n_refused += refused(f, "length", n);
        const int fd = open(f->path, O_WRONLY);
        assert_int_equal(pwrite(fd, f->bytes + n, f->n - n, (off_t)n), (ssize_t)(f->n - n));
        close(fd);
    }
    print_message("%zu of %zu lengths refused, the others change nothing\n", n_refused, tried);
    assert_true(n_refused > tried * 9 / 10); /* the last page may hold nothing */
    assert_false(refused(f, "all of", f->n));
}

/* A header that claims 2^31 - 1 tasks, 120 GB, in a file of 64 kB. */
static void memory_is_taken_for_what_is_there(void **state) {
    const file *f = *state;
    hp_arena *a = hp_arena_new();
    hp_db db = {0};
    hp_plan p;
    hp_error err = {HP_OK, ""};
    sqlite3 *sql = NULL;
    assert_int_equal(sqlite3_open(f->path, &sql), SQLITE_OK);
    /* n_task is the second number of the header (plan/store/blob.c) */
    assert_int_equal(
        sqlite3_exec(
            sql,
            "UPDATE program SET data = CAST(substr(data, 1, 4) || x'ffffff7f' || substr(data, 9) AS BLOB) "
            "WHERE part = 'role'; UPDATE meta SET value = 'none' WHERE key = 'content'",
            NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(sql);
    assert_int_equal(hp_db_open(f->path, &db, &err), HP_OK);
    assert_int_equal(hp_plan_read(a, &db, &p, &err),
                     HP_EDATA); /* hp_arena_alloc would have ended the program */
    assert_non_null(strstr(err.text, "part task"));
    hp_db_close(&db);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_byte_is_refused_or_changes_nothing),
                                       cmocka_unit_test(a_shorter_file_is_refused_or_changes_nothing),
                                       cmocka_unit_test(memory_is_taken_for_what_is_there)};
    return cmocka_run_group_tests(tests, write_file, remove_file);
}
