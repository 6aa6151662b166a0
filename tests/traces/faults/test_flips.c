/* test_flips.c - a database in which one bit is another: refused, or all of its tables hold what was written. HPLAN_LAW_CASES=N tries
 * N bytes, more than there are: each of them. */
#include "plan/base/db_content.h"
#include "plan/base/rng.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/traces/trace_fixture.h"

#include <fcntl.h>
#include <stdlib.h>

static int64_t duration(const void *self, int rank, int task, int iter) {
    (void)self;
    return 1000000 + 1000 * rank + 100 * task + iter;
}

/* Writes a run of two ranks. */
static void write_run(const char *path, char content[HP_DB_CONTENT_TEXT]) {
    hp_db db = {0};
    hp_error err = {HP_OK, ""};
    const fixture_run run = {.kind = "exec",
                             .plan_hash = "0",
                             .strategy = "dp=2",
                             .label = "",
                             .ranks = 2,
                             .span_ranks = 2,
                             .iters = 40,
                             .duration = duration};
    fixture_ok(hp_db_create(path, &db, &err), &err);
    fixture_add(&db, &run);
    assert_true(hp_db_content(db.sql, content));
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static unsigned char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void put_byte(const char *path, size_t at, unsigned char byte) {
    const int fd = open(path, O_WRONLY);
    assert_true(fd >= 0 && pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

static void a_flipped_bit_is_refused_or_changes_nothing(void **state) {
    (void)state;
    char path[4096], content[HP_DB_CONTENT_TEXT], have[HP_DB_CONTENT_TEXT];
    size_t n, refused = 0, tried = 0;
    fixture_path(path, sizeof path, "flips.db");
    write_run(path, content);
    unsigned char *bytes = read_file(path, &n);
    const size_t step = 1 + n / law_cases(3000);
    for (size_t at = 0; at < n; at += step, tried++) {
        hp_db db = {0};
        hp_error err = {HP_OK, ""};
        const int bit = (int)hp_rng_below(7, 1, (uint64_t)at, 8);
        put_byte(path, at, (unsigned char)(bytes[at] ^ 1 << bit));
        const hp_status s = hp_db_open(path, &db, &err);
        if (s == HP_OK) {
            assert_true(hp_db_content(db.sql, have));
            if (strcmp(have, content) != 0) fail_msg("bit %d of byte %zu: another content is taken", bit, at);
        } else {
            assert_int_equal(s, HP_EDATA);
            refused++;
        }
        hp_db_close(&db);
        put_byte(path, at, bytes[at]);
    }
    print_message("%zu of %zu flips refused, the others change nothing\n", refused, tried);
    assert_true(refused > tried / 10); /* most of a small file is empty pages */
    free(bytes);
    unlink(path);
}

/* The same with every row, but not its note: the law would see it. */
static void without_the_note_a_flip_may_pass(void **state) {
    (void)state;
    char path[4096], content[HP_DB_CONTENT_TEXT], have[HP_DB_CONTENT_TEXT];
    size_t n, other = 0;
    hp_db db = {0};
    hp_error err = {HP_OK, ""};
    fixture_path(path, sizeof path, "bare.db");
    write_run(path, content);
    sqlite3 *sql = NULL;
    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(sql, "UPDATE meta SET value = 'none' WHERE key = 'content'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(sql);
    unsigned char *bytes = read_file(path, &n);
    for (size_t at = 0; at < n && other == 0; at += 13) {
        put_byte(path, at, bytes[at] ^ 1);
        if (hp_db_open(path, &db, &err) == HP_OK)
            other += hp_db_content(db.sql, have) && strcmp(have, content) != 0;
        hp_db_close(&db);
        put_byte(path, at, bytes[at]);
    }
    assert_true(other > 0);
    free(bytes);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_flipped_bit_is_refused_or_changes_nothing),
                                       cmocka_unit_test(without_the_note_a_flip_may_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
