/* cli_main.c - finds the subcommand by table (commands.def) and calls it; help, version, wrong names, planned
 * ones. A function, so that a test calls it as the program does (tests/words/).
 *
 * SIGPIPE keeps its default action: `hplan explain plan.db | head` ends quietly, as every Unix tool does. */
#include "cli/cli.h"

#include "cli/manual/manual.h"

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/version.h"
#include "plan/strategy/strategy_axis.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
#define COMMAND(name, summary) {#name, cmd_##name, summary},
#include "cli/commands.def"
#undef COMMAND
};
enum { N_COMMAND = (int)(sizeof commands / sizeof commands[0]), MAX_NAME = 32, MAX_WORDS = 64 };

/* Programs under a command's name: "bench comm". */
static const struct {
    const char *command, *name;
} subcommands[] = {
#define COMMAND(name, summary)
#define SUBCOMMAND(command, name, summary) {#command, #name},
#include "cli/commands.def"
#undef COMMAND
};

/* Names in the documentation that this version does not have. */
typedef struct planned {
    const char *kind, *name, *summary;
} planned;

static const planned later[] = {
#define LATER(kind, name, summary) {#kind, name, summary},
#include "cli/later.def"
#undef LATER
};
enum { N_LATER = (int)(sizeof later / sizeof later[0]) };

static const command *find_command(const char *name) {
    for (int i = 0; i < N_COMMAND; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

static const planned *find_planned_command(const char *name) {
    for (int i = 0; i < N_LATER; i++)
        if (!strcmp(later[i].kind, "command") && !strcmp(later[i].name, name)) return &later[i];
    return NULL;
}

static int unknown_command(const char *name) {
    hp_error err;
    const char *names[N_COMMAND + 1] = {[N_COMMAND] = "help"};
    for (int i = 0; i < N_COMMAND; i++) names[i] = commands[i].name;
    const char *near = hp_nearest(name, names, N_COMMAND + 1);
    if (near)
        hp_fail(&err, HP_EUSAGE, "there is no command '%s'; did you mean 'hplan %s'? 'hplan help' lists all",
                name, near);
    else
        hp_fail(&err, HP_EUSAGE, "there is no command '%.40s'; 'hplan help' lists all", name);
    return cli_report(&err);
}

static int refuse_planned(const planned *p) {
    hp_error err;
    hp_fail(&err, HP_EUNAVAIL, "hplan %s does not have the command '%s' (%s); 'hplan help' lists what it has",
            hp_version(), p->name, p->summary);
    return cli_report(&err);
}

/* Runs `name` with argv[0] = "hplan NAME", which argp prints in help and errors. */
static int call(const char *name, int argc, char **argv) {
    const command *c = find_command(name);
    const planned *p = find_planned_command(name);
    if (p) return refuse_planned(p);
    if (!c) return unknown_command(name);
    char title[MAX_NAME + sizeof "hplan "];
    snprintf(title, sizeof title, "hplan %s", c->name);
    argv[0] = title;
    static char help[] = "--help"; /* argp has no short one */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0) argv[i] = help;
    return c->run(argc, argv);
}

static int finish(int code) {
    hp_error err;
    if (cli_finish_stdout(&err) != HP_OK) return cli_report(&err);
    return code;
}

static int print_short_help(void) {
    puts("hplan: which parallel strategy trains a network fastest here, and then run exactly that\n"
         "\n"
         "  hplan doctor                                  what this machine offers\n"
         "  hplan simulate --net cnn --image 28 --gpus 2  search strategies, write plan.db\n"
         "  hplan run plan.db --steps 20                  execute the plan, record run.db\n"
         "  hplan compare run.db                          predicted beside measured\n"
         "\n"
         "All commands: hplan help    One command: hplan help simulate");
    return finish(HP_OK);
}

/* "  networks   moe-gpt, dlrm"; where there are none, nothing. */
static void print_planned(const char *kind, const char *title) {
    int n = 0;
    for (int i = 0; i < N_LATER; i++) {
        if (strcmp(later[i].kind, kind) != 0) continue;
        if (n++)
            printf(", %s", later[i].name);
        else
            printf("  %-10s %s", title, later[i].name);
    }
    if (n) putchar('\n');
}

/* Prints the text in indented lines of 79 columns. */
static void print_wrapped(const char *text) {
    enum { WIDTH = 79, INDENT = 5 };
    int column = 0;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column + 1 + word > WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (!column) column = printf("%*s", INDENT, "");
        column += printf(" %.*s", word, text);
        text += word + strspn(text + word, " ");
    }
    putchar('\n');
}

static void print_exit_codes(void) {
    char text[512] = "";
    for (const manual_exit *e = manual_exits; e->code; e++)
        hp_text_add((hp_text){text, sizeof text}, "%s%s %s", e == manual_exits ? "" : ", ", e->code,
                    e->meaning);
    printf("\nExit codes:\n");
    print_wrapped(text);
}

static int print_help(void) {
    printf("Usage: hplan COMMAND [OPTION...]\n\nCommands:\n");
    for (int i = 0; i < N_COMMAND; i++) printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    printf("\n'hplan help COMMAND' and 'hplan COMMAND --help' explain one command,\n"
           "'hplan help strategies' the keys of --strategy.\n"
           "Results go to stdout, messages to stderr; --json prints one JSON object.\n\n"
           "Planned, not in this version (exit code 69):\n");
    print_planned("command", "commands");
    print_planned("option", "options");
    print_planned("key", "strategies");
    print_planned("precision", "precisions");
    print_planned("network", "networks");
    print_planned("plot", "plots");
    print_exit_codes();
    return finish(HP_OK);
}

static int print_keys(void) {
    printf("A strategy is a list of keys, as in dp=2,stages=2,micro=4. An example of each key, what\n"
           "holds where it is left out, and what it means:\n\n");
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        printf("  %s (else %s)\n", hp_strategy_axes[i]->example, hp_strategy_axes[i]->usual);
        print_wrapped(hp_strategy_axes[i]->means);
    }
    return finish(HP_OK);
}

/* Calls the command that the words name with `last` as its last word. */
static int ask(int n, char **word, char *last) {
    char *args[MAX_WORDS + 2];
    if (n > MAX_WORDS) n = MAX_WORDS;
    for (int i = 0; i < n; i++) args[i] = word[i];
    args[n] = last;
    args[n + 1] = NULL;
    return call(word[0], n + 1, args);
}

/* hplan help --man [COMMAND...] */
static int print_page(int n, char **word) {
    if (n && strcmp(word[0], "strategies") != 0) return ask(n, word, manual_ask_page);
    if (n)
        manual_print_strategies();
    else
        manual_print_overview();
    return finish(HP_OK);
}

/* hplan help --complete WORD...: the last word is completed. */
static int print_words(int n, char **word) {
    const bool is_command = n && find_command(word[0]);
    if (n > 1 && is_command) return ask(n, word, manual_ask_words);
    if (n == 1 || (n == 2 && strcmp(word[0], "help") == 0)) manual_print_commands(word[n - 1]);
    return finish(HP_OK);
}

/* A command, or a command and its subcommand. */
static bool has_help(int n, char **word) {
    bool found = n == 1;
    for (size_t i = 0; n == 2 && i < sizeof subcommands / sizeof subcommands[0]; i++)
        found |= strcmp(word[0], subcommands[i].command) == 0 && strcmp(word[1], subcommands[i].name) == 0;
    return found;
}

static int refuse_word(const char *name, const char *extra) {
    hp_error err;
    hp_fail(&err, HP_EUSAGE, "help takes one command, '%.40s' is too much: 'hplan help %.40s'", extra, name);
    return cli_report(&err);
}

/* hplan help WORD...: all commands, the keys of strategies, or one command. */
static int explain_words(int n, char **word) {
    const bool is_help = strcmp(word[0], "help") == 0, is_keys = strcmp(word[0], "strategies") == 0;
    static char option[] = "--help";
    if ((is_help || is_keys || find_command(word[0])) && !has_help(n, word))
        return refuse_word(word[0], word[n - 1]);
    if (is_help) return print_help();
    if (is_keys) return print_keys();
    return ask(n, word, option);
}

static int help(int argc, char **argv) {
    static const struct {
        const char *option;
        int (*print)(int n, char **word);
    } forms[] = {{"man", print_page}, {"complete", print_words}};
    if (argc < 3) return print_help();
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strncmp(argv[2], "--", 2) == 0 && strcmp(argv[2] + 2, forms[i].option) == 0)
            return forms[i].print(argc - 3, argv + 3);
    return explain_words(argc - 2, argv + 2);
}

static int print_version(void) {
    printf("hplan %s (commit %s)\n", hp_version(), hp_commit());
    return finish(HP_OK);
}

/* argp prints help and exits by itself: a full disk must not look like success then. */
static void check_stdout_at_exit(void) {
    hp_error err;
    if (cli_finish_stdout(&err) != HP_OK) _exit(cli_report(&err));
}

/* A search allocates and frees programs of tens of megabytes thousands of times. If free() returned them to
 * the system, page faults would dominate: lowering 96,470 tasks takes 24 ms that way, 10 ms this way. */
static void keep_freed_memory(void) {
    mallopt(M_ARENA_MAX, 1); /* also of threads */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that glibc takes */
}

int cli_main(int argc, char **argv) {
    keep_freed_memory();
    json_set_alloc_funcs(hp_alloc,
                         free); /* an object without one of its members would be wrong, and not seen to be */
    signal(SIGPIPE, SIG_DFL);   /* some parents leave it ignored */
    argp_err_exit_status = HP_EUSAGE;
    atexit(check_stdout_at_exit);
    if (argc < 2) return print_short_help();
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) return print_version();
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "-?")) return print_help();
    if (!strcmp(name, "help")) return help(argc, argv);
    if (name[0] == '-') {
        hp_error err;
        hp_fail(&err, HP_EUSAGE,
                "the command comes first ('hplan simulate %.40s ...'); 'hplan help' lists all", name);
        return cli_report(&err);
    }
    return call(name, argc - 1, argv + 1);
}
