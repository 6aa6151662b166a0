/* test_store.c - plan.db: reading gives what was written, without a search; damaged or foreign files are
 * rejected. */
#include "plan/store/blob.h"
#include "plan/store/store.h"
#include "tests/support/plan/law_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const PLAN = "test_store_plan.db";

static void make_plan(hp_arena *arena, hp_plan *p, const char *strategy) {
    hp_error err = {HP_OK, ""};
    *p = (hp_plan){.net = "cnn",
                   .image_h = 28,
                   .image_w = 28,
                   .classes = 10,
                   .mode = HP_MODE_TRAIN,
                   .dtype = HP_F32,
                   .batch = 16,
                   .seed = 7,
                   .device = &hp_devices[HP_DEVICE_CPU],
                   .step_s = 0.25};
    if (hp_machine_load("thesis-a100", &p->machine, &err) != HP_OK ||
        hp_strategy_parse(strategy, &p->strategy, &err) != HP_OK ||
        hp_plan_build(arena, p, NULL, &err) != HP_OK)
        fail_msg("%s", err.text);
}

static void write_plan(const hp_plan *p) {
    hp_db db;
    hp_error err = {HP_OK, ""};
    const hp_candidate c = {.strategy = "dp=2", .gpus = 2, .step_s = 0.25, .note = "it's \"quoted\""};
    const hp_rejected r = {.code = HP_REJECT_MEM, .count = 3, .example = "dp=1", .limit = "x", .fix = "y"};
    if (hp_db_create(PLAN, &db, &err) != HP_OK || hp_plan_write(&db, p, &err) != HP_OK ||
        hp_candidates_write(&db, &c, 1, &r, 1, &err) != HP_OK || hp_db_commit(&db, &err) != HP_OK)
        fail_msg("%s", err.text);
    hp_db_close(&db);
}

static hp_status read_plan(hp_arena *arena, hp_plan *p, hp_error *err) {
    hp_db db;
    HP_TRY(hp_db_open(PLAN, &db, err));
    const hp_status s = hp_plan_read(arena, &db, p, err);
    hp_db_close(&db);
    return s;
}

typedef struct compare { /* parts of the second program, fetched while the first is visited */
    const hp_program *other;
    const hp_graph *g;
    int role;
    const char *part;
    const void *data;
    size_t size;
    int found;
} compare;

static hp_status match_part(void *self, int role, const char *part, const void *data, size_t size,
                            hp_error *err) {
    compare *c = self;
    (void)err;
    if (role != c->role || strcmp(part, c->part) != 0) return HP_OK;
    assert_int_equal(size, c->size);
    if (size) assert_memory_equal(data, c->data, size);
    c->found++;
    return HP_OK;
}

static hp_status each_part(void *self, int role, const char *part, const void *data, size_t size,
                           hp_error *err) {
    compare *c = self;
    compare inner = {.role = role, .part = part, .data = data, .size = size};
    HP_TRY(hp_program_visit(c->other, c->g, match_part, &inner, err));
    assert_int_equal(inner.found, 1);
    return HP_OK;
}

static void a_stored_plan_reloads_equal(void **state) {
    (void)state;
    static const char *const strategies[] = {"dp=1",
                                             "dp=2,stages=2,micro=4,sched=1f1b",
                                             "stages=2,chunks=2,micro=4,recompute=full",
                                             "sp=2x2,halo=2,micro=2",
                                             "dp=2,sp=2x1,stages=2,sched=gems,gems=2",
                                             "clients=2,sp=1x2,stages=2,tail=shared,bn=all",
                                             "cp=2,stages=2,micro=2,sched=zb"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        hp_arena *arena = hp_arena_new();
        hp_plan p = {0}, q = {0};
        hp_error err = {HP_OK, ""};
        make_plan(arena, &p, strategies[i]);
        write_plan(&p);
        if (read_plan(arena, &q, &err) != HP_OK) fail_msg("%s", err.text);
        assert_string_equal(p.hash.hex, q.hash.hex);
        assert_true(hp_strategy_equal(&p.strategy, &q.strategy));
        assert_int_equal(q.strategy.cut.n, p.strategy.stages * p.strategy.chunks);
        compare c = {.other = q.program, .g = p.graph};
        assert_int_equal(hp_program_visit(p.program, p.graph, each_part, &c, &err), HP_OK);
        assert_non_null(q.eval);
        c.other = q.eval;
        assert_int_equal(hp_program_visit(p.eval, p.graph, each_part, &c, &err), HP_OK);
        hp_arena_free(arena);
    }
    unlink(PLAN);
}

/* The error names the unknown device and the existing ones. */
static void a_plan_for_an_unknown_device_is_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_plan p;
    sqlite3 *db = NULL;
    hp_error err = {HP_OK, ""};
    make_plan(arena, &p, "dp=1");
    write_plan(&p);
    assert_int_equal(sqlite3_open(PLAN, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE meta SET value = 'abacus' WHERE key = 'device'; UPDATE meta SET "
                                  "value = 'none' WHERE key = 'content'",
                                  0, 0, 0),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(read_plan(arena, &p, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "abacus"));
    assert_non_null(strstr(err.text, HP_DEVICE_NAMES));
    hp_arena_free(arena);
    unlink(PLAN);
}

static void candidates_come_back(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_plan p;
    hp_db db;
    hp_error err;
    hp_candidate *c = NULL;
    hp_rejected *r = NULL;
    int n = 0, m = 0;
    make_plan(arena, &p, "dp=1");
    write_plan(&p);
    assert_int_equal(hp_db_open(PLAN, &db, &err), HP_OK);
    assert_int_equal(hp_candidates_read(arena, &db, &c, &n, &r, &m, &err), HP_OK);
    assert_int_equal(n, 1);
    assert_int_equal(m, 1);
    assert_string_equal(c[0].note, "it's \"quoted\"");
    assert_int_equal(r[0].code, HP_REJECT_MEM);
    hp_db_close(&db);
    hp_arena_free(arena);
    unlink(PLAN);
}

static unsigned char *slurp(size_t *n) {
    FILE *f = fopen(PLAN, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void spill(const unsigned char *bytes, size_t n) {
    FILE *f = fopen(PLAN, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* One changed byte: rejected with a message, or (in unused space) the same plan. */
static void a_changed_byte_never_gives_another_plan(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_plan p;
    make_plan(arena, &p, "sp=2x1,dp=2");
    write_plan(&p);
    size_t n = 0;
    unsigned char *bytes = slurp(&n);
    int refused = 0;
    for (size_t at = 0; at < n; at += 1 + n / law_some(1500)) {
        hp_arena *inner = hp_arena_new();
        hp_plan q;
        hp_error err = {HP_OK, ""};
        bytes[at] ^= 0x55;
        spill(bytes, n);
        const hp_status s = read_plan(inner, &q, &err);
        if (s == HP_OK) {
            assert_string_equal(q.hash.hex, p.hash.hex);
        } else {
            assert_int_equal(s, HP_EDATA);
            assert_non_null(strstr(err.text, PLAN));
            refused++;
        }
        bytes[at] ^= 0x55;
        hp_arena_free(inner);
    }
    assert_true(refused > (int)law_some(1500) / 15);
    for (size_t length = 0; length < n; length += 1 + n / 200) {
        hp_plan q;
        hp_error err = {HP_OK, ""};
        spill(bytes, length);
        const hp_status s = read_plan(arena, &q, &err);
        if (s == HP_OK) { /* the truncated end held nothing of the plan */
            assert_string_equal(q.hash.hex, p.hash.hex);
            assert_true(length > n / 2);
        } else {
            assert_int_equal(s, HP_EDATA);
        }
    }
    free(bytes);
    hp_arena_free(arena);
    unlink(PLAN);
}

/* A plan whose author recomputed the hash: its program is proved again, not trusted. */
static void a_rehashed_lie_is_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_plan p, q;
    hp_error err = {HP_OK, ""};
    make_plan(arena, &p, "sp=2x1");
    p.mode = HP_MODE_INFER;
    assert_int_equal(hp_plan_build(arena, &p, NULL, &err), HP_OK);
    hp_role *r = &p.program->role[1];
    int b = HP_BUF_FIXED;
    while (r->buffer[b].kind != HP_BUF_TENSOR) b++;
    hp_plan_use(&p, p.program);
    write_plan(&p);
    if (read_plan(arena, &q, &err) != HP_OK) fail_msg("%s", err.text);
    r->buffer[b].box.hi[HP_AXIS_H]++; /* beyond its bytes */
    hp_plan_use(&p, p.program);
    write_plan(&p);
    assert_int_equal(read_plan(arena, &q, &err), HP_EDATA);
    assert_non_null(strstr(err.text, "E-BOX: rank 1: "));
    hp_arena_free(arena);
    unlink(PLAN);
}

static void foreign_files_are_refused(void **state) {
    (void)state;
    hp_arena *arena = hp_arena_new();
    hp_plan q;
    hp_error err;
    sqlite3 *db = NULL;
    unlink(PLAN);
    assert_int_equal(read_plan(arena, &q, &err), HP_EDATA); /* missing */
    sqlite3_open(PLAN, &db);
    sqlite3_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1);", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_int_equal(read_plan(arena, &q, &err), HP_EDATA); /* another program's database */
    unlink(PLAN);
    hp_plan p;
    make_plan(arena, &p, "dp=1");
    write_plan(&p);
    sqlite3_open(PLAN, &db);
    sqlite3_exec(db, "CREATE TRIGGER evil AFTER INSERT ON run BEGIN DELETE FROM span; END;", NULL, NULL,
                 NULL);
    sqlite3_close(db);
    assert_int_equal(read_plan(arena, &q, &err), HP_EDATA); /* our schema with an addition */
    hp_arena_free(arena);
    unlink(PLAN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_plan_reloads_equal),
        cmocka_unit_test(candidates_come_back),
        cmocka_unit_test(a_plan_for_an_unknown_device_is_refused),
        cmocka_unit_test(a_changed_byte_never_gives_another_plan),
        cmocka_unit_test(a_rehashed_lie_is_refused),
        cmocka_unit_test(foreign_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
