/* test_manual.c - manual pages and completion say what help says: the same options, commands, names. */
#include "tests/support/words/words.h"

#include "cli/manual/manual.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *blank, *more;
} commands[] = {
#define COMMAND(name, summary)             {#name, "", ""},
#define SUBCOMMAND(command, name, summary) {#command, " ", #name},
#include "cli/commands.def"
#undef COMMAND
};
enum { N_COMMAND = (int)(sizeof commands / sizeof commands[0]) };

/* An option of a line of help, "--net", which stands at column 6; false: none. */
static bool option_of(const char *line, char option[64]) {
    if (strcspn(line, "\n") < 8 || strncmp(line + 6, "--", 2) != 0) return false;
    snprintf(option, 64, "%.*s", (int)strspn(line + 6, "-abcdefghijklmnopqrstuvwxyz_"), line + 6);
    return strcmp(option, "--usage") != 0;
}

/* A page sets - as \-, so that it can be copied. */
static const char *as_in_a_page(const char *option, char out[128]) {
    size_t n = 0;
    for (; *option && n < 126; option++) {
        if (*option == '-') out[n++] = '\\';
        out[n++] = *option;
    }
    out[n] = 0;
    return out;
}

static void a_page_and_completion_have_every_option_of_help(void **state) {
    words *w = *state;
    for (int i = 0; i < N_COMMAND; i++) {
        char title[64];
        snprintf(title, sizeof title, "%s%s%s", commands[i].name, commands[i].blank, commands[i].more);
        hplan(w, 0, "help %s", title);
        char *help = strdup(w->out), option[64], roff[128];
        hplan(w, 0, "help --man %s", title);
        char *page = strdup(w->out);
        hplan(w, 0, "help --complete %s --", title);
        int listed = 0;
        for (const char *line = help; line; line = manual_next_line(line)) {
            if (!option_of(line, option)) continue;
            if (!strstr(page, as_in_a_page(option, roff))) fail_msg("page of %s: no %s", title, option);
            out_says(w, "^%s\t", option);
            listed++;
        }
        assert_true(listed >= 1);
        assert_int_equal(words_count(w->out, "."), listed);
        free(help);
        free(page);
    }
}

static void the_overview_names_every_command(void **state) {
    words *w = *state;
    hplan(w, 0, "help --man");
    for (int i = 0; i < N_COMMAND; i++)
        out_says(w, "^\\.B %s%s%s$", commands[i].name, commands[i].blank, commands[i].more);
    hplan(w, 0, "help --man strategies");
    out_says(w, "dp=4");
    hplan(w, 2, "help --man nonsense");
}

static void names_are_offered_where_they_may_stand(void **state) {
    static const words_row rows[] = {
        {0, "help --complete sim", "^simulate\t", NULL},
        {0, "help --complete help sim", "^simulate\t", NULL},
        {0, "help --complete simulate --net vgg1", "^vgg16\t", NULL},
        {0, "help --complete simulate --net=vgg1", "^--net=vgg16\t", NULL},
        {0, "help --complete simulate --machine thes", "^thesis-a100\t", NULL},
        {0, "help --complete machine show thes", "^thesis-a100\t", NULL},
        {0, "help --complete simulate --mode ''", "^train\t.*\n^infer\t", NULL},
        {0, "help --complete simulate --prec fp32,b", "^fp32,bf16\t", NULL},
        {0, "help --complete simulate --as pytorch-1", "^pytorch-1\\.13\t", NULL},
        {0, "help --complete simulate --strategy dp=2,stag", "^dp=2,stages=\t", NULL},
        {0, "help --complete simulate --strategy=dp=2,sched=1", "^--strategy=dp=2,sched=1f1b\t", NULL},
        {0, "help --complete why plan.db stag", "^stages=\t", NULL},
        {0, "help --complete plot ti", "^timeline\t", NULL},
        {0, "help --complete checkpoint ''", "^ls\t.*\n^verify\t.*\n^export\t", NULL},
        {0, "help --complete bench co", "^comm\t", NULL},
        {0, "help --complete bench comm --back", "^--backend\t", NULL},
        {0, "help --complete run plan.db --on-nan sk", "^skip\t", NULL},
    };
    each_row(*state, rows);
}

/* A shell then offers files. */
static void nothing_is_offered_where_a_file_may_stand(void **state) {
    static const char *const lines[] = {"run ''",           "simulate --cost ''",    "plot timeline ''",
                                        "checkpoint ls ''", "run plan.db --trace r", "nonsense ''"};
    words *w = *state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        hplan(w, 0, "help --complete %s", lines[i]);
        assert_string_equal(w->out, "");
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_and_completion_have_every_option_of_help),
        cmocka_unit_test(the_overview_names_every_command),
        cmocka_unit_test(names_are_offered_where_they_may_stand),
        cmocka_unit_test(nothing_is_offered_where_a_file_may_stand),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
