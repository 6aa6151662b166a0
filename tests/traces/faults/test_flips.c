/* test_flips.c - a database with one byte changed is refused, or all of its tables hold what was written.
 * HPLAN_LAW_CASES=N tries N flips; if N exceeds their number, it tries all. */
#include "base/db_content.h"
#include "tests/support/plan/flips.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/traces/trace_fixture.h"

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

typedef struct written {
    char path[4096], content[HP_DB_CONTENT_TEXT];
} written;

static bool refused(const void *self, size_t at, unsigned char mask) {
    const written *w = self;
    char have[HP_DB_CONTENT_TEXT];
    hp_db db = {0};
    hp_error err = {HP_OK, ""};
    const hp_status s = hp_db_open(w->path, &db, &err);
    if (s == HP_OK) {
        assert_true(hp_db_content(db.sql, have));
        if (strcmp(have, w->content) != 0)
            fail_msg("byte %zu, bits %02x: another content is taken", at, mask);
    } else if (s != HP_EDATA || !err.text[0]) {
        fail_msg("byte %zu, bits %02x: status %d, '%s'", at, mask, s, err.text);
    }
    hp_db_close(&db);
    return s != HP_OK;
}

static void another_byte_is_refused_or_changes_nothing(void **state) {
    (void)state;
    written w;
    fixture_path(w.path, sizeof w.path, "flips.db");
    write_run(w.path, w.content);
    const flips_count c = flips_try(w.path, law_cases(3000), refused, &w);
    print_message("%zu of %zu flips refused, the others change nothing\n", c.refused, c.tried);
    assert_true(c.refused > c.tried / 10); /* most of a small file is empty pages */
    unlink(w.path);
}

/* All rows without the note: a flip may then pass, which the law would detect. */
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
    unsigned char *bytes = flips_read(path, &n);
    for (size_t k = 0; k < n && other == 0; k++) {
        const size_t at = k * 997 % n; /* a prime, so that every byte gets its turn */
        flips_put(path, at, bytes[at] ^ 1);
        if (hp_db_open(path, &db, &err) == HP_OK)
            other += hp_db_content(db.sql, have) && strcmp(have, content) != 0;
        hp_db_close(&db);
        flips_put(path, at, bytes[at]);
    }
    assert_true(other > 0);
    free(bytes);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_byte_is_refused_or_changes_nothing),
                                       cmocka_unit_test(without_the_note_a_flip_may_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
