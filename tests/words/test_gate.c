/* test_gate.c - `check` of several runs a side: what fails it, its forms, and names that are markup. The runs
 * are predictions whose times are stretched and which say that they were measured. */
#include "tests/support/words/words.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* A host's name in every form: markup of XML, of Markdown, and a mention. */
#define HOSTILE "a<b>&\"c\"]]>|`@d`"

static void make_run(const char *name, double factor) {
    size_t n;
    char *bytes = words_read("plan.db", &n), *error = NULL;
    sqlite3 *db;
    assert_non_null(bytes);
    words_write_bytes(name, bytes, n);
    free(bytes);
    char *sql = sqlite3_mprintf(
        "UPDATE run SET kind = 'exec', status = 0, host = %Q, processor = 'abacus';"
        "UPDATE span SET t0_ns = CAST(t0_ns * %f AS INTEGER), t1_ns = CAST(t1_ns * %f AS INTEGER);"
        "UPDATE counter SET value = value * %f WHERE name = 'step_s';"
        "UPDATE meta SET value = 'none' WHERE key = 'content'",
        HOSTILE, factor, factor, factor);
    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s", error);
    sqlite3_free(sql);
    sqlite3_close(db);
}

/* o1 to o4, and n1 to n4 half as slow again. */
static int make_runs(void **state) {
    if (words_open(state)) return -1;
    hplan(*state, 0,
          "simulate --net cnn --image 28 --classes 10 --machine thesis-a100 --batch 64 --strategy "
          "stages=2,micro=4");
    for (int i = 1; i <= 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d.db", i);
        make_run(name, 1 + 0.01 * i);
        snprintf(name, sizeof name, "n%d.db", i);
        make_run(name, 1.5 * (1 + 0.01 * i));
    }
    return 0;
}

#define NEW  "n1.db n2.db n3.db n4.db"
#define OLD  "o1.db o2.db o3.db o4.db"
#define BOTH NEW " --baseline " OLD

static void runs_that_are_slower_fail(void **state) {
    static const words_row rows[] = {
        {1, "check " BOTH, "^ step .*\\+50.00%.* 0\\.029  regression$", NULL},
        {1, "check " BOTH, "^4 and 4 runs", NULL},
        {1, "check " BOTH, "\\+ is slower", NULL},
        {1, "check " BOTH, "^FAIL step is worse than the limit of 5%$", NULL},
        {1, "check --max-slowdown 40% " BOTH " --max-memory 1%", "^FAIL step .*40%$", NULL},
        {0, "check " BOTH " --max-slowdown 60%", "^ok: no regression$", NULL},
        {0, "check " OLD " --baseline " NEW, "^ok: no regression$", NULL},
        {0, "check n1.db n2.db n3.db --baseline " OLD, "not enough runs .*: 4 and 3, 4 of each", NULL},
        {0, "check n1.db --baseline o1.db", "not enough steps", NULL},
        {0, "check --baseline o1.db n1.db", "not enough steps .*1 and 1",
         NULL}, /* one of each, in any order */
        {0, "check --baseline o1.db --baseline o2.db n1.db", "not enough runs .*: 2 and 1,", NULL},
        {0, "check n1.db --baseline o1.db --baseline o2.db", "not enough runs .*: 2 and 1,", NULL}};
    each_row(*state, rows);
    words *w = *state;
    hplan(w, 1, "check %s --json", BOTH);
    near_to(words_number(w, "rows/0/delta"), 0.5, 1e-6);
    near_to(words_number(w, "rows/0/p"), 2. / 70, 1e-9); /* complete separation: 2 / C(8, 4) */
    assert_string_equal(words_text(w, "samples"), "runs");
    assert_string_equal(words_text(w, "runs/3/file"), "n4.db");
    assert_int_equal(words_length(w, "baseline_runs"), 4);
}

/* The phases grew by half, too: four tests or more share the level, which four runs cannot reach. */
static void phases_fail_on_request(void **state) {
    words *w = *state;
    hplan(w, 1, "check %s", BOTH);
    out_lacks(w, "^FAIL forward");
    hplan(w, 0, "check %s --phases", BOTH);
    out_says(w, "not enough runs");
    hplan(w, 0, "check %s --phases --json", BOTH);
    assert_true(words_number(w, "alpha") < 2. / 70 && words_number(w, "needed_steps") > 4);
}

static void wrong_words_name_the_right_ones(void **state) {
    static const words_row rows[] = {
        {2, "check n1.db", NULL, "hplan check run.db --baseline old.db"},
        {2, "check --baseline o1.db", NULL, "hplan check run.db --baseline old.db"},
        {2, "check --baseline o1.db o2.db n1.db", NULL, "hplan check NEW.db... --baseline OLD.db..."},
        {2, "check n1.db --baseline o1.db --max-slowdown 5", NULL, "--max-slowdown 5%"},
        {2, "check n1.db --baseline o1.db --json --markdown", NULL, "stdout"},
        {2, "check n1.db --baseline o1.db --json --junit -", NULL, "stdout"},
        {73, "check n1.db --baseline o1.db --junit missing/r.xml", NULL, "missing/r.xml"},
        {65, "check missing.db --baseline o1.db", NULL, "missing.db: no such file.*hplan run"},
        {65, "check n1.db --baseline missing.db", NULL, "missing.db: no such file.*hplan run"},
        {65, "check plan.db --baseline o1.db", NULL, "plan.db: holds no executed run; `hplan run plan.db`"}};
    each_row(*state, rows);
}

static void markdown_is_a_table(void **state) {
    words *w = *state;
    hplan(w, 1, "check %s --markdown", BOTH);
    out_says(w, "^### hplan check: 1 regression$");
    out_says(w, "^\\|---\\|---:\\|");
    out_says(w, "^\\| step \\|.*\\| \\+50\\.00%% \\| 0\\.029 \\| \\*\\*regression\\*\\* \\|$");
    out_says(w, "^- host: `a<b>&\"c\"\\]\\]>\\|'@d'`$"); /* one span: no backtick of the name ends it */
    out_says(w, "^- ±: .*; \\\\~ may be chance");
    hplan(w, 0, "check n1.db --baseline o1.db --markdown");
    out_says(w, "^### hplan check: not enough steps");
}

/* Another program reads it: every row, its verdict, and the host's name as it was. */
static void junit_is_xml(void **state) {
    words *w = *state;
    words_write("read.py", "import sys, xml.etree.ElementTree as e\n"
                           "s = e.parse(sys.argv[1]).getroot()[0]\n"
                           "c = s.findall('testcase')\n"
                           "kind = lambda k: [t.get('name') for t in c if t.find(k) is not None]\n"
                           "assert int(s.get('tests')) == len(c) > 1\n"
                           "assert int(s.get('failures')) == len(kind('failure'))\n"
                           "assert int(s.get('skipped')) == len(kind('skipped'))\n"
                           "assert kind(sys.argv[2]) == ['step'], kind(sys.argv[2])\n"
                           "p = {p.get('name'): p.get('value') for p in s.find('properties')}\n"
                           "assert p['run.host'] == p['baseline.host'] == sys.argv[3], p\n");
    if (!words_program("python3")) skip();
    hplan(w, 1, "check %s --junit r.xml", BOTH);
    out_says(w, "^FAIL step");
    setenv("HOSTILE", HOSTILE, 1);
    assert_int_equal(system("python3 read.py r.xml failure \"$HOSTILE\""), 0);
    hplan(w, 0, "check n1.db --baseline o1.db --junit -");
    out_lacks(w, "^not enough"); /* the XML alone */
    words_write("few.xml", "%s", w->out);
    assert_int_equal(system("python3 read.py few.xml skipped \"$HOSTILE\""), 0);
    if (words_program("xmllint")) assert_int_equal(system("xmllint --noout r.xml few.xml"), 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_are_slower_fail),
        cmocka_unit_test(phases_fail_on_request),
        cmocka_unit_test(wrong_words_name_the_right_ones),
        cmocka_unit_test(markdown_is_a_table),
        cmocka_unit_test(junit_is_xml),
    };
    return cmocka_run_group_tests(tests, make_runs, words_close);
}
