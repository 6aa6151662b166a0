/* manual_page.c - manual pages, man(7), from the tables of argp, of commands and of a strategy's keys. */
#include "cli/manual/manual.h"

#include "base/version.h"
#include "plan/strategy/strategy_axis.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char manual_ask_page[] = "--man";

const manual_exit manual_exits[] = {{"0", "ok"},
                                    {"1", "difference or regression"},
                                    {"2", "usage"},
                                    {"3", "no feasible plan"},
                                    {"65", "bad input"},
                                    {"69", "missing device or feature"},
                                    {"70", "bug or no memory"},
                                    {"73/74", "cannot create or write"},
                                    {"75", "saved, please requeue"},
                                    {"124", "stalled"},
                                    {"137", "a rank died"},
                                    {"128+n", "signal n"},
                                    {NULL, NULL}};

const manual_command manual_commands[] = {
#define COMMAND(name, summary)             {"", #name, summary},
#define SUBCOMMAND(command, name, summary) {#command, #name, summary},
#include "cli/commands.def"
#undef COMMAND
#undef SUBCOMMAND
    {NULL, NULL, NULL}};

/* --- text in roff --- */

static void put_character(char c) {
    static const struct {
        char plain;
        const char *roff;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                   {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++)
        if (escapes[i].plain == c) {
            fputs(escapes[i].roff, stdout);
            return;
        }
    putchar(c);
}

/* A piece of a line. */
static void put(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) put_character(text[i]);
}

/* A line of its own, which roff does not take for a request. */
static void put_line(const char *text, size_t n) {
    if (n && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
    put(text, n);
    putchar('\n');
}

/* Paragraphs up to `end`, a \v or a NUL; an indented line is an entry of a list. */
static void put_text(const char *text, char end) {
    bool in_list = false;
    const char ends[] = {'\n', end, 0};
    for (const char *line = text; *line && *line != end; line += strcspn(line, ends), line += *line == '\n') {
        const size_t n = strcspn(line, ends), blank = strspn(line, " ");
        if (blank && blank < n)
            puts(".IP \\(bu 2");
        else if (line != text && n && (in_list || line[-1] == '\n'))
            puts(".PP");
        in_list = blank > 0;
        if (n > blank) put_line(line + blank, n - blank);
    }
}

/* "hplan bench comm" as a page is called: hplan-bench-comm, or in capitals. */
static void put_title(const char *name, bool capitals) {
    for (; *name; name++) {
        if (*name == ' ')
            put_character('-');
        else
            putchar(capitals ? toupper((unsigned char)*name) : *name);
    }
}

static void put_head(const char *name, int section, const char *summary) {
    fputs(".TH ", stdout);
    put_title(name, true);
    printf(" %d \"\" \"hplan %s\" \"hplan manual\"\n.SH NAME\n", section, hp_version());
    put_title(name, false);
    fputs(" \\- ", stdout);
    put_line(summary, strlen(summary));
}

static void put_also(const char *pages) {
    printf(".SH SEE ALSO\n%s\n", pages);
}

/* --- a command --- */

static const char *summary_of(const char *name) {
    for (const manual_command *c = manual_commands; c->name; c++) {
        char title[64];
        snprintf(title, sizeof title, "hplan %s%s%s", c->command, *c->command ? " " : "", c->name);
        if (!strcmp(title, name)) return c->summary;
    }
    return "";
}

const char *manual_next_line(const char *text) {
    const char *newline = strchr(text, '\n');
    return newline ? newline + 1 : NULL;
}

/* A line for each of the usages, which newlines separate. */
static void put_synopsis(const char *name, const char *usages) {
    puts(".SH SYNOPSIS");
    for (const char *usage = usages ? usages : ""; usage; usage = manual_next_line(usage)) {
        if (usage != usages && usages) puts(".br");
        printf(".B %s\n[\\fIOPTION\\fR...] ", name);
        put_line(usage, strcspn(usage, "\n"));
    }
}

static void put_option(int letter, const char *name, const char *arg, const char *doc) {
    puts(".TP");
    if (letter) printf("\\fB\\-%c\\fR, ", letter);
    fputs("\\fB\\-\\-", stdout);
    put(name, strlen(name));
    fputs("\\fR", stdout);
    if (arg) fputs("=\\fI", stdout);
    if (arg) put(arg, strlen(arg));
    puts(arg ? "\\fR" : "");
    put_line(doc, strlen(doc));
}

static void put_options(const struct argp_option *list) {
    puts(".SH OPTIONS");
    for (; list->name; list++) {
        if (list->flags & (OPTION_HIDDEN | OPTION_ALIAS)) continue;
        const bool is_letter = list->key > ' ' && list->key < 0x7f;
        put_option(is_letter ? list->key : 0, list->name, list->arg, list->doc);
    }
    put_option('?', "help", NULL, "Give this help list");
    put_option(0, "usage", NULL, "Give a short usage message");
}

void manual_print_page(const struct argp *argp, const char *name) {
    const char *doc = argp->doc ? argp->doc : "", *after = strchr(doc, '\v');
    put_head(name, 1, summary_of(name));
    put_synopsis(name, argp->args_doc);
    puts(".SH DESCRIPTION");
    put_text(doc, '\v');
    put_options(argp->options);
    if (after) puts(".SH NOTES");
    if (after) put_text(after + 1, '\0');
    put_also(".BR hplan (1),\n.BR hplan\\-strategies (7)");
}

/* --- the pages that belong to no command --- */

static void put_entry(const char *what, const char *means) {
    fputs(".TP\n.B ", stdout);
    put_line(what, strlen(what));
    put_line(means, strlen(means));
}

void manual_print_overview(void) {
    put_head("hplan", 1, "which parallel strategy trains a network fastest here, and then run exactly that");
    puts(".SH SYNOPSIS\n.B hplan\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n"
         "A plan is found by simulating every combination of data, pipeline, spatial, bidirectional, channel "
         "and\n"
         "tensor parallelism that fits in memory; it is run as it is, and its prediction is compared with "
         "what was\n"
         "measured.\nResults go to stdout, messages to stderr; \\fB\\-\\-json\\fR prints one JSON object.\n"
         ".SH COMMANDS\nEach has a page of its own, as\n.BR hplan\\-simulate (1).");
    for (const manual_command *c = manual_commands; c->name; c++) {
        char words[64];
        snprintf(words, sizeof words, "%s%s%s", c->command, *c->command ? " " : "", c->name);
        put_entry(words, c->summary);
    }
    puts(".SH EXIT STATUS");
    for (const manual_exit *e = manual_exits; e->code; e++) put_entry(e->code, e->meaning);
    put_also(".BR hplan\\-strategies (7)");
}

void manual_print_strategies(void) {
    put_head("hplan-strategies", 7, "the keys of a strategy");
    puts(".SH DESCRIPTION\nA strategy is a list of keys, as in \\fBdp=2,stages=2,micro=4\\fR.\n"
         "An example of each key, what holds where it is left out, and what it means:");
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        printf(".TP\n\\fB");
        put(a->example, strlen(a->example));
        printf("\\fR (else ");
        put(a->usual, strlen(a->usual));
        puts(")");
        put_line(a->means, strlen(a->means));
    }
    put_also(".BR hplan (1),\n.BR hplan\\-simulate (1)");
}
