/* gate_table.c - a gate as a table in the terminal and as JSON. */
#include "cli/gate/gate.h"
#include "cli/show/show_places.h"
#include "traces/check/compare.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

/* Right-aligned by characters: ±, ∞ and the sign of microseconds take several bytes. */
static void print_right(const char *text, int width) {
    int columns = 0;
    for (const char *s = text; *s; s++) columns += ((unsigned char)*s & 0xc0) != 0x80;
    printf("%*s%s", columns < width ? width - columns : 1, "", text);
}

static void print_row(const hp_check *c, const hp_check_row *r) {
    char old[GATE_CELL], new[GATE_CELL], change[GATE_CELL], p[GATE_CELL];
    printf(" %-15s", r->name);
    print_right(gate_value(r, &r->old, old), 17);
    print_right(gate_value(r, &r->new, new), 17);
    print_right(gate_change(c, r, change), 10);
    print_right(gate_p(c, r, p), 8);
    printf("%s%s\n", *gate_word(r) ? "  " : "", gate_word(r));
}

static void print_facts(const gate *g) {
    gate_fact fact[GATE_FACTS];
    gate_facts(g, fact);
    for (int i = 0; i < GATE_FACTS; i++) {
        const gate_fact *f = &fact[i];
        printf("%s: ", f->name);
        if (f->same)
            printf("%s\n", f->old);
        else
            printf("%s (baseline), %s (run)\n", f->old, f->new);
    }
}

void gate_print_table(const gate *g) {
    const hp_check *c = g->check;
    char text[GATE_LINE];
    print_facts(g);
    printf("%s\n%s\n\n", GATE_SIGNS, gate_chance(c, text));
    printf(" %-15s%17s%17s %9s %7s\n", "", "baseline", "run", "change", "p");
    for (int i = 0; i < c->n_row; i++) print_row(c, &c->row[i]);
    printf("\n%s\n", gate_samples(c, text));
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].verdict == HP_VERDICT_REGRESSION) printf("FAIL %s\n", gate_reason(&c->row[i], text));
    if (*gate_result(c, text)) printf("%s\n", text);
}

/* --- JSON --- */

static json_t *row_json(const hp_check_row *r) {
    static const char *const units[] = {"s", "B", "", ""};
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "name", r->name, "unit",
        units[r->unit], "baseline", cli_json_number(r->old.median), "run", cli_json_number(r->new.median),
        "baseline_spread", cli_json_number(r->old.spread), "run_spread", cli_json_number(r->new.spread),
        "baseline_interval", cli_json_number(r->old.half), "run_interval", cli_json_number(r->new.half),
        "delta", cli_json_number(r->delta), "delta_absolute", (int)r->delta_absolute, "p",
        cli_json_number(r->p), "limit", cli_json_number(r->limit), "verdict", hp_verdict_names[r->verdict]);
}

static int steps_of(const hp_check_side *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->run[i].trace.n_iter;
    return n;
}

static json_t *runs_json(hp_arena *arena, const hp_check_side *s) {
    json_t *list = json_array();
    for (int i = 0; i < s->n; i++) {
        const hp_trace *t = &s->run[i].trace;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i, s:o, s:i, s:o}", "file",
                                              hp_text_clean(arena, s->run[i].path), "strategy", t->strategy,
                                              "hplan", t->version, "steps", t->n_iter, "step_s",
                                              cli_json_number(hp_median(hp_trace_steps(arena, t), t->n_iter)),
                                              "status", t->status, "made_on", places_json(t)));
    }
    return list;
}

json_t *gate_json(const gate *g) {
    const hp_check *c = g->check;
    json_t *rows = json_array();
    for (int i = 0; i < c->n_row; i++) json_array_append_new(rows, row_json(&c->row[i]));
    json_t *o = json_pack("{s:i, s:i, s:i, s:i, s:b, s:i, s:b, s:o, s:o, s:o}", "schema", 1, "regressions",
                          c->n_regression, "baseline_steps", steps_of(g->old), "run_steps", steps_of(g->new),
                          "too_few_steps", (int)c->too_few, "needed_steps", c->n_needed, "plans_differ",
                          (int)c->plans_differ, "baseline_made_on", places_json(&g->old->run[0].trace),
                          "run_made_on", places_json(&g->new->run[0].trace), "rows", rows);
    json_object_set_new(o, "samples", json_string(c->by_run ? "runs" : "steps"));
    json_object_set_new(o, "baseline_samples", json_integer(c->n_old));
    json_object_set_new(o, "run_samples", json_integer(c->n_new));
    json_object_set_new(o, "alpha", cli_json_number(c->alpha));
    json_object_set_new(o, "baseline_runs", runs_json(g->arena, g->old));
    json_object_set_new(o, "runs", runs_json(g->arena, g->new));
    return o;
}
