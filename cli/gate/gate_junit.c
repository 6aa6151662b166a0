/* gate_junit.c - a gate as JUnit XML: a test case per judged row. Format: the Ant task's schema
 * (github.com/windyroad/JUnit-Schema), of which GitLab and Jenkins read suites, cases, failures, skips. */
#include "cli/gate/gate.h"
#include "traces/outfile.h"

#include <string.h>

static bool is_nonchar(const unsigned char *s) { /* U+FFFE, U+FFFF: well-formed UTF-8, not XML */
    return s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
}

/* Text of an attribute or an element. Texts are cleaned: UTF-8 without control characters. */
static void write_text(FILE *f, const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        const char *entity = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
        if (*s == '"') entity = "&quot;";
        if (is_nonchar(s)) {
            entity = "?";
            s += 2;
        }
        if (entity)
            fputs(entity, f);
        else
            fputc(*s, f);
    }
}

static void write_attribute(FILE *f, const char *name, const char *value) {
    fprintf(f, " %s=\"", name);
    write_text(f, value);
    fputc('"', f);
}

static void write_property(FILE *f, const char *side, const char *name, const char *value) {
    char key[GATE_CELL];
    snprintf(key, sizeof key, "%s%s", side, name);
    fputs("   <property", f);
    write_attribute(f, "name", key);
    write_attribute(f, "value", value);
    fputs("/>\n", f);
}

static void write_figures(FILE *f, const hp_check *c, const hp_check_row *r) {
    char old[GATE_CELL], new[GATE_CELL], change[GATE_CELL], p[GATE_CELL], text[GATE_LINE];
    const char *chance = gate_p(c, r, p);
    snprintf(text, sizeof text, "baseline %s, run %s, change %s%s%s", gate_value(r, &r->old, old),
             gate_value(r, &r->new, new), gate_change(c, r, change), *chance ? ", p " : "", chance);
    write_text(f, text);
}

static void write_case(FILE *f, const hp_check *c, const hp_check_row *r) {
    char text[GATE_LINE];
    fputs("  <testcase classname=\"hplan.check\"", f);
    write_attribute(f, "name", r->name);
    fprintf(f, " time=\"%.9f\">", r->unit == HP_CHECK_SECONDS ? r->new.median : 0);
    if (r->verdict == HP_VERDICT_REGRESSION) {
        fputs("<failure type=\"regression\"", f);
        write_attribute(f, "message", gate_reason(r, text));
        fputc('>', f);
        write_figures(f, c, r);
        fputs("</failure>", f);
    } else if (r->verdict == HP_VERDICT_UNKNOWN) {
        fputs("<skipped", f);
        write_attribute(f, "message", gate_result(c, text));
        fputs("/>", f);
    } else {
        fputs("<system-out>", f);
        write_figures(f, c, r);
        fputs("</system-out>", f);
    }
    fputs("</testcase>\n", f);
}

static int count(const hp_check *c, hp_verdict v) {
    int n = 0;
    for (int i = 0; i < c->n_row; i++) n += c->row[i].verdict == v;
    return n;
}

static void write_suite(const gate *g, FILE *f) {
    const hp_check *c = g->check;
    char text[GATE_LINE], numbers[128];
    gate_fact fact[GATE_FACTS];
    snprintf(numbers, sizeof numbers, "tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\"",
             c->n_row - count(c, HP_VERDICT_INFO), c->n_regression, count(c, HP_VERDICT_UNKNOWN));
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", f);
    fprintf(f, "<testsuites %s>\n <testsuite name=\"hplan check\" %s>\n  <properties>\n", numbers, numbers);
    gate_facts(g, fact);
    for (int i = 0; i < GATE_FACTS; i++) {
        write_property(f, "baseline.", fact[i].name, fact[i].old);
        write_property(f, "run.", fact[i].name, fact[i].new);
    }
    write_property(f, "", "samples", gate_samples(c, text));
    write_property(f, "", "signs", GATE_SIGNS);
    fputs("  </properties>\n", f);
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].verdict != HP_VERDICT_INFO) write_case(f, c, &c->row[i]);
    fputs(" </testsuite>\n</testsuites>\n", f);
}

hp_status gate_write_junit(const gate *g, const char *path, hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    write_suite(g, o.f);
    return hp_outfile_commit(&o, err);
}
