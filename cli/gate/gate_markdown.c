/* gate_markdown.c - a gate as Markdown, for a job's summary or a comment on a change. */
#include "cli/gate/gate.h"

/* As a code span: nothing of a host's or strategy's name is then markup, a link or a mention. */
static void print_code(const char *text) {
    putchar('`');
    for (const char *s = text; *s; s++) putchar(*s == '`' ? '\'' : *s);
    putchar('`');
}

/* Escapes ~, which strikes text out in GitHub's Markdown. */
static void print_text(const char *text) {
    for (; *text; text++) printf(*text == '~' ? "\\%c" : "%c", *text);
}

static void print_row(const hp_check *c, const hp_check_row *r) {
    char old[GATE_CELL], new[GATE_CELL], change[GATE_CELL], p[GATE_CELL];
    const char *word = gate_word(r);
    const bool bad = r->verdict == HP_VERDICT_REGRESSION;
    printf("| %s | %s | %s | ", r->name, gate_value(r, &r->old, old), gate_value(r, &r->new, new));
    print_text(gate_change(c, r, change));
    printf(" | %s | %s%s%s |\n", gate_p(c, r, p), bad ? "**" : "",
           *word ? word : hp_verdict_names[r->verdict], bad ? "**" : "");
}

static void print_title(const hp_check *c) {
    char text[GATE_LINE];
    if (c->n_regression)
        printf("### hplan check: %d regression%s\n\n", c->n_regression, c->n_regression == 1 ? "" : "s");
    else
        printf("### hplan check: %s\n\n", gate_result(c, text));
}

static void print_facts(const gate *g) {
    gate_fact fact[GATE_FACTS];
    gate_facts(g, fact);
    for (int i = 0; i < GATE_FACTS; i++) {
        printf("- %s: ", fact[i].name);
        print_code(fact[i].old);
        if (fact[i].same) {
            printf("\n");
            continue;
        }
        printf(" (baseline), ");
        print_code(fact[i].new);
        printf(" (run)\n");
    }
}

void gate_print_markdown(const gate *g) {
    const hp_check *c = g->check;
    char text[GATE_LINE];
    print_title(c);
    printf("| | baseline | run | change | p | verdict |\n|---|---:|---:|---:|---:|---|\n");
    for (int i = 0; i < c->n_row; i++) print_row(c, &c->row[i]);
    printf("\n");
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].verdict == HP_VERDICT_REGRESSION) printf("- %s\n", gate_reason(&c->row[i], text));
    if (c->n_regression && *gate_result(c, text)) printf("- %s\n", text);
    print_facts(g);
    printf("- %s\n- %s\n- ", gate_samples(c, text), GATE_SIGNS);
    print_text(gate_chance(c, text));
    printf("\n");
}
