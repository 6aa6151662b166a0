/* test_plots.c - pictures and exports: hostile strings stay strings, tracks nest, outputs are whole or
 * absent. */
#include "base/rng.h"
#include "plots/plots.h"
#include "tests/support/traces/trace_fixture.h"
#include "traces/export/trace_export.h"
#include "traces/trace_lanes.h"

#include <dirent.h>
#include <jansson.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* What a shell, gnuplot (any kind of string, data file, enhanced text), SVG, JSON, CSV or a terminal might
 * take for its own. CANARY would be made in the current or the temporary folder. */
#define CANARY "hplan_canary"
static const char *const hostile[] = {
    "`touch " CANARY "`",
    "$(touch " CANARY ")",
    "'; system('touch " CANARY "') #",
    "\"; system(\"touch " CANARY "\") #",
    "<touch " CANARY,
    "|touch " CANARY,
    "\nsystem('touch " CANARY "')\n",
    "EOD\n!touch " CANARY "\n",
    "</text></svg><script>alert(1)</script>",
    "\x1b]0;owned\x07\x1b[2J\xc2\x9b"
    "31m",
    "{/Symbol a}_b^c@macro %s %n \\n \\ \t #",
    "=cmd()",
    "\xff\xfe\xed\xa0\x80",
    "",
};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

static char base[200], path[256], out[256];

static int64_t overlapping(const void *self, int rank, int task, int iter) {
    (void)self;
    return 1000000 * (1 + (rank + task * 3 + iter) % 5);
}

static void write_db(const char *text) {
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    fixture_ok(hp_db_exec(&db, &err, "INSERT INTO meta VALUES('net', ?)", "s", text), &err);
    for (int64_t rank = 1; rank < 4; rank++)
        fixture_ok(
            hp_db_exec(&db, &err,
                       "INSERT INTO candidate VALUES(?,?,?,1,1,0.9,1.2,?,1000000,0,0,0,1,0,0,0,0,0,0,?)",
                       "isids", rank, text, rank, 10.0 * (double)rank, text),
            &err);
    const fixture_run s = {.kind = "sim",
                           .strategy = text,
                           .label = text,
                           .ranks = 4,
                           .span_ranks = 2,
                           .iters = 1,
                           .duration = overlapping};
    const fixture_run e = {
        .kind = "exec", .strategy = text, .label = text, .ranks = 4, .iters = 4, .duration = overlapping};
    fixture_add(&db, &s);
    const int64_t run = fixture_add(&db, &e);
    for (int rank = 0; rank < 4; rank++) {
        fixture_sample(&db, run, rank, 0, HP_COUNTER_PLANNED, 0, 2e6);
        for (int k = 0; k < 5; k++) fixture_sample(&db, run, rank, 0, HP_COUNTER_MEMORY, k * 1000, 1e6 * k);
    }
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
}

static char *read_all(const char *name) {
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *text = malloc((size_t)n + 1);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* False when gnuplot is not there. */
static bool draw(const char *kind, hp_canvas_format format, const char *to) {
    hp_error err = {0};
    hp_canvas c;
    hp_plot_source s;
    hp_arena *arena = hp_arena_new();
    fixture_ok(hp_plot_load(arena, path, &s, &err), &err);
    fixture_ok(hp_canvas_open(format, format == HP_CANVAS_DUMB ? 100 : 800,
                              format == HP_CANVAS_DUMB ? 40 : 500, &c, &err),
               &err);
    const hp_status status = hp_plot_find(kind)->draw(arena, &s, 1, &c, &err);
    if (status == HP_OK) fixture_ok(hp_canvas_save(&c, to, &err), &err);
    hp_canvas_close(&c);
    hp_arena_free(arena);
    if (status != HP_EUNAVAIL) fixture_ok(status, &err);
    return status == HP_OK;
}

static bool has_control(const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s; s++)
        if ((*s < 0x20 && *s != '\n' && *s != '\t' && *s != '\f') || *s == 0x7f ||
            (s[0] == 0xc2 && s[1] < 0xa0))
            return true;
    return false;
}

static void hostile_strings_stay_strings_in_pictures(void **state) {
    (void)state;
    static const char *const kinds[] = {"timeline", "scaling", "memory", "error", "pareto"};
    for (int i = 0; i < HOSTILE; i++) {
        write_db(hostile[i]);
        for (int k = 0; k < 5; k++)
            for (int dumb = 0; dumb < 2; dumb++) {
                if (!draw(kinds[k], dumb ? HP_CANVAS_DUMB : HP_CANVAS_SVG, out)) skip();
                char *text = read_all(out);
                assert_true(strlen(text) > 500);
                assert_false(has_control(text));
                assert_null(dumb ? NULL : strstr(text, "<script>alert"));
                free(text);
                assert_int_not_equal(access(CANARY, F_OK), 0);
                assert_int_not_equal(access("/tmp/" CANARY, F_OK), 0);
            }
    }
}

static bool beats(const hp_plot_candidate *a, const hp_plot_candidate *b) {
    return a->memory_bytes <= b->memory_bytes && a->images_per_s >= b->images_per_s &&
           (a->memory_bytes < b->memory_bytes || a->images_per_s > b->images_per_s);
}

/* The oracle: the definition, pair by pair. */
static void the_front_is_what_nothing_beats(void **state) {
    enum { MOST = 40 };
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        hp_arena *arena = hp_arena_new();
        hp_plot_candidate all[MOST];
        hp_plot_source s = {.candidate = all, .n_candidate = (int)(seed % MOST)};
        const hp_plot_candidate *front[MOST];
        for (int i = 0; i < s.n_candidate; i++)
            all[i] = (hp_plot_candidate){.memory_bytes = 1 + floor(12 * hp_rng_uniform(seed, 1, (uint64_t)i)),
                                         .images_per_s = floor(12 * hp_rng_uniform(seed, 2, (uint64_t)i))};
        const int n = hp_plot_front(arena, &s, front);
        for (int i = 0; i < s.n_candidate; i++) {
            bool beaten = all[i].images_per_s <= 0, there = false; /* no images at all: no candidate */
            for (int k = 0; k < s.n_candidate; k++) beaten |= beats(&all[k], &all[i]);
            for (int k = 0; k < n; k++)
                there |= !beats(front[k], &all[i]) && !beats(&all[i], front[k]) &&
                         front[k]->memory_bytes <= all[i].memory_bytes &&
                         front[k]->images_per_s >= all[i].images_per_s; /* itself, or its equal */
            assert_int_equal(there, !beaten);
        }
        for (int k = 1; k < n; k++)
            assert_true(front[k]->memory_bytes > front[k - 1]->memory_bytes &&
                        front[k]->images_per_s > front[k - 1]->images_per_s);
        hp_arena_free(arena);
    }
}

static int64_t tenth(const void *self, int rank, int task, int iter) {
    (void)self, (void)rank, (void)task, (void)iter;
    return 100000;
}

/* 128 ranks are 64 rows; the axis counts ranks, not rows. */
static void the_axis_of_a_timeline_counts_ranks(void **state) {
    (void)state;
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "sim", .ranks = 128, .iters = 1, .duration = tenth};
    fixture_add(&db, &r);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    if (!draw("timeline", HP_CANVAS_SVG, out)) skip();
    char *text = read_all(out);
    static const char *const ranks[] = {">0<", ">16<", ">112<"}, *const rows[] = {">8<", ">24<", ">56<"};
    for (int i = 0; i < 3; i++) {
        assert_non_null(strstr(text, ranks[i]));
        assert_null(strstr(text, rows[i]));
    }
    free(text);
}

/* gnuplot drops a title that is wider than the terminal: it comes in lines. */
static void a_long_title_is_shown_whole(void **state) {
    (void)state;
    static const char strategy[] =
        "dp=2,stages=2,cut=6:4,sp=2x1,micro=2,sched=1f1b,bn=all,recompute=boundary,fuse=10M,"
        "compress=allreduce:bf16,overlap=interior";
    hp_error err = {0};
    hp_db db;
    fixture_ok(hp_db_create(path, &db, &err), &err);
    const fixture_run r = {.kind = "sim", .ranks = 4, .iters = 1, .duration = tenth, .strategy = strategy};
    fixture_add(&db, &r);
    fixture_ok(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    if (!draw("timeline", HP_CANVAS_DUMB, out)) skip();
    char *text = read_all(out), *word = NULL, *save = NULL, words[sizeof strategy];
    strcpy(words, strategy);
    for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save))
        assert_non_null(strstr(text, word));
    free(text);
}

/* No folder is left behind in the temporary directory, which is ours alone. */
static void nothing_is_left_behind(void **state) {
    (void)state;
    DIR *d = opendir(base);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) assert_null(strstr(e->d_name, "hplan-plot-"));
    closedir(d);
}

static void write_program(const char *name, const char *body) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    assert_int_equal(chmod(name, 0700), 0);
}

static hp_status run_program(const char *name, double limit_s, hp_canvas *c, hp_error *err) {
    fixture_ok(hp_canvas_open(HP_CANVAS_SVG, 100, 100, c, err), err);
    return hp_canvas_run(c, name, limit_s, err);
}

static void the_program_is_confined_and_ends(void **state) {
    (void)state;
    hp_error err = {0};
    hp_canvas c;
    char name[300];
    snprintf(name, sizeof name, "%s/fake", base);
    setenv("HPLAN_SECRET", "do-not-pass-on", 1);
    write_program(name, "env > out; pwd >> out; ulimit -t >> out");
    fixture_ok(run_program(name, 10, &c, &err), &err);
    char result[600];
    snprintf(result, sizeof result, "%s/out", c.dir);
    char *text = read_all(result);
    assert_null(strstr(text, "HPLAN_SECRET"));
    assert_non_null(strstr(text, c.dir));
    assert_null(strstr(text, "unlimited"));
    free(text);
    hp_canvas_close(&c);

    write_program(name, "exec sleep 60");
    const time_t start = time(NULL);
    assert_int_equal(run_program(name, 0.2, &c, &err), HP_ESTALL);
    assert_true(time(NULL) - start < 10);
    hp_canvas_close(&c);

    write_program(name, "printf 'first\\n\\033[31mline 3: no good\\n' >&2; exit 1");
    assert_int_equal(run_program(name, 10, &c, &err), HP_EINTERNAL);
    assert_non_null(strstr(err.text, "no good"));
    assert_null(strchr(err.text, '\x1b'));
    hp_canvas_close(&c);

    write_program(name, "echo 'unknown or ambiguous terminal type; type just set terminal' >&2; exit 1");
    assert_int_equal(run_program(name, 10, &c, &err), HP_EUNAVAIL);
    assert_non_null(strstr(err.text, ".svg"));
    hp_canvas_close(&c);

    assert_int_equal(run_program("hplan-no-such-gnuplot", 10, &c, &err), HP_EUNAVAIL);
    assert_non_null(strstr(err.text, "apt-get install"));
    hp_canvas_close(&c);
}

/* --- exports --- */

static void load_exec(hp_arena *arena, hp_trace *t) {
    hp_error err = {0};
    hp_db db;
    int64_t run = -1;
    fixture_ok(hp_db_open(path, &db, &err), &err);
    fixture_ok(hp_trace_find(&db, "exec", &run, &err), &err);
    fixture_ok(hp_trace_load(arena, &db, run, true, t, &err), &err);
    hp_db_close(&db);
}

typedef struct event {
    int pid, tid;
    double ts, end;
} event;

static int compare_events(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->pid != y->pid) return x->pid - y->pid;
    if (x->tid != y->tid) return x->tid - y->tid;
    return (x->ts > y->ts) - (x->ts < y->ts);
}

/* Number of complete events; each starts on its track when the one before has ended. */
static int check_tracks(const json_t *list) {
    event *e = calloc(json_array_size(list) + 1, sizeof *e);
    int n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(o, "ph")), "X") != 0) continue;
        const double ts = json_number_value(json_object_get(o, "ts"));
        e[n++] = (event){(int)json_integer_value(json_object_get(o, "pid")),
                         (int)json_integer_value(json_object_get(o, "tid")), ts,
                         ts + json_number_value(json_object_get(o, "dur"))};
    }
    qsort(e, (size_t)n, sizeof *e, compare_events);
    for (int i = 1; i < n; i++)
        if (e[i].pid == e[i - 1].pid && e[i].tid == e[i - 1].tid) assert_true(e[i].ts >= e[i - 1].end - 1e-6);
    free(e);
    return n;
}

static void chrome_json_parses_and_tracks_do_not_overlap(void **state) {
    (void)state;
    for (int i = 0; i < HOSTILE; i++) {
        hp_error err = {0};
        hp_trace t;
        hp_arena *arena = hp_arena_new();
        write_db(hostile[i]);
        load_exec(arena, &t);
        hp_trace_value value[2] = {{0, 0, 5, 1.5}, {1, 0, 6, (double)NAN}};
        hp_export_counter counter = {"memory", value, 2};
        const hp_export_side side = {t, &counter, 1};
        fixture_ok(hp_export_chrome(arena, &side, 1, out, &err), &err);
        json_error_t bad;
        json_t *root = json_load_file(out, JSON_REJECT_DUPLICATES, &bad);
        if (!root) fail_msg("line %d: %s", bad.line, bad.text);
        assert_int_equal(check_tracks(json_object_get(root, "traceEvents")), 4 * 4 * FIXTURE_TASKS);
        json_decref(root);
        char *text = read_all(out);
        assert_false(has_control(text));
        free(text);
        hp_arena_free(arena);
    }
}

static bool on_track(const hp_trace *t, const hp_trace_span *s, int rank, int queue) {
    return s->rank == rank && hp_trace_span_queue(t, s) == queue;
}

/* First fit needs no more lanes than the most spans that are open at once. */
static void lanes_are_as_few_as_possible(void **state) {
    (void)state;
    hp_trace t;
    hp_arena *arena = hp_arena_new();
    write_db("x");
    load_exec(arena, &t);
    const int32_t *lane = hp_trace_lanes(arena, &t);
    for (int rank = 0; rank < t.ranks; rank++)
        for (int queue = 0; queue < 4; queue++) {
            int used = 0, most = 0;
            for (int64_t i = 0; i < t.n_span; i++) {
                if (!on_track(&t, &t.span[i], rank, queue)) continue;
                int open = 0;
                for (int64_t k = 0; k < t.n_span; k++)
                    open += on_track(&t, &t.span[k], rank, queue) && t.span[k].t0_ns <= t.span[i].t0_ns &&
                            t.span[k].t1_ns > t.span[i].t0_ns;
                used = lane[i] + 1 > used ? lane[i] + 1 : used;
                most = open > most ? open : most;
            }
            assert_int_equal(used, most);
        }
    hp_arena_free(arena);
}

static void csv_has_a_line_per_span_and_no_formula(void **state) {
    (void)state;
    for (int i = 0; i < HOSTILE; i++) {
        hp_error err = {0};
        hp_trace t;
        hp_arena *arena = hp_arena_new();
        write_db(hostile[i]);
        load_exec(arena, &t);
        fixture_ok(hp_export_csv(&t, out, &err), &err);
        char *text = read_all(out);
        int lines = 0;
        for (const char *s = text; (s = strstr(s, "\r\n")); s += 2) lines++;
        assert_int_equal(lines, 1 + t.n_span);
        assert_null(strstr(text, ",\"="));
        free(text);
        hp_arena_free(arena);
    }
}

static void nsys_tables_hold_every_span(void **state) {
    (void)state;
    hp_error err = {0};
    hp_trace t;
    hp_arena *arena = hp_arena_new();
    sqlite3 *sql = NULL;
    sqlite3_stmt *st = NULL;
    write_db(hostile[0]);
    load_exec(arena, &t);
    unlink(out); /* a text, which a database does not replace */
    fixture_ok(hp_export_nsys(arena, &t, out, &err), &err);
    assert_int_equal(sqlite3_open_v2(out, &sql, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    static const char query[] =
        "SELECT (SELECT count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId),"
        "(SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName),"
        "(SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY),"
        "(SELECT count(DISTINCT globalTid / 16777216 % 16777216) FROM NVTX_EVENTS)";
    assert_int_equal(sqlite3_prepare_v2(sql, query, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(st, 0), 4 * 4 * FIXTURE_TASKS);
    assert_int_equal(sqlite3_column_int(st, 1), 4 * 4 * 4);
    assert_int_equal(sqlite3_column_int(st, 2), 4 * 4 * 3 * 4096);
    assert_int_equal(sqlite3_column_int(st, 3), 4);
    sqlite3_finalize(st);
    sqlite3_close(sql);
    unlink(out);
    hp_arena_free(arena);
}

/* A file-size limit stands for a full disk: status 74, the earlier file as it was, no half file beside it. */
static void full_disk_keeps_the_earlier_file(void **state) {
    (void)state;
    write_db("x");
    FILE *f = fopen(out, "w");
    fputs("earlier", f);
    fclose(f);
    const pid_t child = fork();
    if (child == 0) {
        hp_trace t;
        hp_error err = {0};
        hp_arena *arena = hp_arena_new();
        load_exec(arena, &t);
        char database[300];
        snprintf(database, sizeof database, "%s.db", out);
        signal(SIGXFSZ, SIG_IGN);
        const struct rlimit small = {2000, 2000};
        setrlimit(RLIMIT_FSIZE, &small);
        const hp_export_side side = {t, NULL, 0};
        const bool refused = hp_export_chrome(arena, &side, 1, out, &err) == HP_EIO &&
                             hp_export_csv(&t, out, &err) == HP_EIO &&
                             hp_export_nsys(arena, &t, database, &err) == HP_EIO;
        hp_arena_free(arena);
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    char *text = read_all(out), tmp[300];
    assert_string_equal(text, "earlier");
    free(text);
    glob_t found;
    snprintf(tmp, sizeof tmp, "%s.*", out);
    assert_int_equal(glob(tmp, 0, NULL, &found), GLOB_NOMATCH);
}

static int set_up(void **state) {
    (void)state;
    fixture_path(base, sizeof base, "plots");
    if (mkdir(base, 0700) != 0) return -1;
    setenv("TMPDIR", base, 1);
    snprintf(path, sizeof path, "%s/run.db", base);
    snprintf(out, sizeof out, "%s/out", base);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char name[300];
    snprintf(name, sizeof name, "%s/fake", base);
    unlink(path);
    unlink(out);
    unlink(name);
    return rmdir(base); /* fails when anything else was left there */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_strings_stay_strings_in_pictures),
        cmocka_unit_test(the_front_is_what_nothing_beats),
        cmocka_unit_test(the_program_is_confined_and_ends),
        cmocka_unit_test(the_axis_of_a_timeline_counts_ranks),
        cmocka_unit_test(a_long_title_is_shown_whole),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(chrome_json_parses_and_tracks_do_not_overlap),
        cmocka_unit_test(lanes_are_as_few_as_possible),
        cmocka_unit_test(csv_has_a_line_per_span_and_no_formula),
        cmocka_unit_test(nsys_tables_hold_every_span),
        cmocka_unit_test(full_disk_keeps_the_earlier_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
