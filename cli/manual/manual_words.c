/* manual_words.c - words that may stand next in a command line, from the same tables as its help. The scripts
 * for bash, zsh and fish beside this file ask for them; where there are none, those offer files. */
#include "cli/manual/manual.h"

#include "costmodels/framework/framework.h"
#include "machines/shipped.h"
#include "networks/graph/precision.h"
#include "networks/nets/nets.h"
#include "plan/strategy/strategy_axis.h"
#include "plots/plots.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char manual_ask_words[] = "--complete";

/* What is typed so far: `fixed` stays in front of every offer, which begins with `begin`. */
typedef struct typed {
    const char *fixed;
    int n_fixed;
    const char *begin;
} typed;

static void offer(const typed *t, const char *word, const char *after, const char *meaning) {
    if (strncmp(word, t->begin, strlen(t->begin)) != 0) return;
    printf("%.*s%s%s\t%s\n", t->n_fixed, t->fixed, word, after, meaning);
}

/* The rest of a list after its last comma. */
static typed in_list(const typed *t) {
    const char *comma = strrchr(t->begin, ',');
    if (!comma) return *t;
    /* `begin` follows `fixed` in memory, or `fixed` is empty */
    const char *fixed = t->n_fixed ? t->fixed : t->begin;
    return (typed){fixed, (int)(comma + 1 - fixed), comma + 1};
}

/* --- names --- */

static void offer_networks(const typed *t) {
    for (int i = 0; hp_net_name(i); i++) offer(t, hp_net_name(i), "", "network");
}

static void offer_machines(const typed *t) {
    offer(t, "local", "", "this machine");
    for (int i = 0; hp_machine_shipped_name(i); i++)
        offer(t, hp_machine_shipped_name(i), "", "shipped machine");
}

static void offer_precisions(const typed *t) {
    const typed last = in_list(t);
    for (int i = 0; hp_prec_names[i]; i++) offer(&last, hp_prec_names[i], "", "precision");
}

static void offer_frameworks(const typed *t) {
    for (const hp_framework *f = hp_frameworks; f->name; f++) offer(t, f->name, "", "framework");
}

static void offer_plots(const typed *t) {
    for (const hp_plot_kind *k = hp_plot_kinds; k->name; k++) offer(t, k->name, "", k->meaning);
}

/* Keys of a strategy, and the values of those that have names. */
static void offer_strategies(const typed *t) {
    const typed key = in_list(t);
    for (int i = 0; i < HP_STRATEGY_AXES; i++) {
        const hp_axis *a = hp_strategy_axes[i];
        const size_t n = strlen(a->name);
        offer(&key, a->name, "=", a->means);
        if (strncmp(key.begin, a->name, n) != 0 || key.begin[n] != '=' || !a->words) continue;
        const char *fixed = key.n_fixed ? key.fixed : key.begin;
        const typed value = {fixed, (int)(key.begin + n + 1 - fixed), key.begin + n + 1};
        for (int w = 0; a->words[w]; w++) offer(&value, a->words[w], "", a->name);
    }
}

/* What stands for names: an option, or a word of the usage. */
static const struct {
    const char *what;
    void (*names)(const typed *t);
} sources[] = {{"net", offer_networks},
               {"machine", offer_machines},
               {"prec", offer_precisions},
               {"as", offer_frameworks},
               {"strategy", offer_strategies},
               {"MACHINE", offer_machines},
               {"STRATEGY|NUMBER", offer_strategies},
               {"KIND", offer_plots}};

static bool offer_names(const char *what, size_t n, const typed *t) {
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strncmp(sources[i].what, what, n) != 0 || sources[i].what[n]) continue;
        sources[i].names(t);
        return true;
    }
    return false;
}

/* "train|infer", "stop|skip[:N]": those of the alternatives that stand for themselves. */
static void offer_literals(const char *form, size_t n, const char *meaning, const typed *t) {
    for (const char *at = form, *end = form + n; at < end;) {
        size_t length = strcspn(at, "| \n");
        if (at + length > end) length = (size_t)(end - at);
        const size_t literal = strcspn(at, "|[: \n,.");
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)(literal < length ? literal : length), at);
        if (islower((unsigned char)*word)) offer(t, word, "", meaning);
        at += length + 1;
    }
}

/* --- a command's options and words --- */

static void offer_options(const struct argp_option *list, const typed *t) {
    for (; list->name; list++) {
        char word[64];
        snprintf(word, sizeof word, "--%s", list->name);
        if (!(list->flags & (OPTION_HIDDEN | OPTION_ALIAS))) offer(t, word, "", list->doc);
    }
    offer(t, "--help", "", "Give this help list");
}

/* The option that a word names, "--net", "--net=cnn" or "-o"; NULL: none. */
static const struct argp_option *find_option(const struct argp_option *list, const char *word) {
    const size_t n = word[0] == '-' && word[1] == '-' ? strcspn(word + 2, "=") : 0;
    for (; list->name; list++) {
        if (n && strncmp(list->name, word + 2, n) == 0 && !list->name[n]) return list;
        if (word[0] == '-' && word[1] && !word[2] && list->key == word[1]) return list;
    }
    return NULL;
}

static void offer_values(const struct argp_option *o, const typed *t) {
    if (!offer_names(o->name, strlen(o->name), t)) offer_literals(o->arg, strlen(o->arg), o->doc, t);
}

/* Does the word before wait for a value? */
static const struct argp_option *waiting(const struct argp_option *list, const char *word) {
    const struct argp_option *o = find_option(list, word);
    return o && o->arg && !strchr(word, '=') ? o : NULL;
}

/* Does a usage go with the words so far? Where it does, *next is what comes after them. */
static bool follows(const char *usage, int n, char *const *word, const char **next) {
    for (int i = 0; i < n; i++) {
        const size_t length = strcspn(usage, " \n");
        const bool literal = islower((unsigned char)*usage) && !memchr(usage, '|', length);
        if (!length || (literal && (strlen(word[i]) != length || strncmp(usage, word[i], length) != 0)))
            return false;
        usage += length + (usage[length] == ' ');
    }
    *next = usage;
    return true;
}

/* Commands of a command; of "": hplan's own. */
static void offer_commands(const char *command, const typed *t) {
    for (const manual_command *c = manual_commands; c->name; c++)
        if (!strcmp(c->command, command)) offer(t, c->name, "", c->summary);
}

static void offer_words(const char *usages, int n, char *const *word, const typed *t) {
    for (const char *usage = usages; usage; usage = manual_next_line(usage)) {
        const char *next;
        if (!follows(usage, n, word, &next)) continue;
        const size_t length = strcspn(next, " \n");
        if (!offer_names(next, length, t)) offer_literals(next, length, "", t);
    }
}

void manual_print_words(const struct argp *argp, const char *name, int n, char **word) {
    char *last = word[n - 1], *plain[64];
    int n_plain = 0;
    const struct argp_option *open = NULL;
    for (int i = 0; i < n - 1; i++) {
        if (!open && *word[i] != '-' && n_plain < 64) plain[n_plain++] = word[i];
        open = open ? NULL : waiting(argp->options, word[i]);
    }
    const char *equals = *last == '-' ? strchr(last, '=') : NULL;
    const struct argp_option *own = equals ? find_option(argp->options, last) : NULL;
    if (open) {
        offer_values(open, &(typed){"", 0, last});
    } else if (own && own->arg) {
        offer_values(own, &(typed){last, (int)(equals + 1 - last), equals + 1});
    } else if (*last == '-') {
        offer_options(argp->options, &(typed){"", 0, last});
    } else {
        if (!n_plain) offer_commands(name + strlen("hplan "), &(typed){"", 0, last});
        offer_words(argp->args_doc, n_plain, plain, &(typed){"", 0, last});
    }
}

void manual_print_commands(const char *begin) {
    const typed t = {"", 0, begin};
    offer_commands("", &t);
    offer(&t, "help", "", "explains one command");
}
