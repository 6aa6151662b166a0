/* frame.c - builds argp's options from a command's table, parses the command line and runs the command. */
#include "cli/show/frame.h"

#include <string.h>
#include <sys/stat.h>

enum { FIRST_KEY = 256 }; /* argp's keys of options without a letter: above every character */

typedef struct parse_state {
    const frame_command *command;
    frame *f;
    char *options;
} parse_state;

static int key_of(const frame_option *list, int i) {
    return list[i].letter ? list[i].letter : FIRST_KEY + i;
}

/* Options that store different values at one place exclude each other. */
static void store_choice(const frame_option *list, const frame_option *o, char *options,
                         const struct argp_state *state) {
    int *at = (int *)(void *)(options + o->at);
    for (const frame_option *other = list; other->name; other++)
        if (!other->arg && other->value && other->at == o->at && other->value == *at && *at != o->value)
            argp_error(state, "--%s and --%s: choose one of them", other->name, o->name);
    *at = o->value;
}

static void store_option(const frame_option *list, const frame_option *o, char *options, const char *arg,
                         const struct argp_state *state) {
    if (o->arg)
        *(const char **)(void *)(options + o->at) = arg;
    else if (o->value)
        store_choice(list, o, options, state);
    else
        *(bool *)(options + o->at) = true;
}

static error_t add_word(const parse_state *s, const char *arg, struct argp_state *state) {
    const frame_command *c = s->command;
    if (s->f->n_word == c->max_word) {
        if (!c->too_many) return ARGP_ERR_UNKNOWN;
        argp_error(state, c->too_many, arg);
    }
    s->f->word[s->f->n_word++] = arg;
    return 0;
}

/* The first time, the words so far are set apart. */
static error_t collect_word(const parse_state *s, const char *arg, struct argp_state *state) {
    if (s->f->n_first < 0) s->f->n_first = s->f->n_word;
    const error_t e = add_word(s, arg, state);
    if (e == 0) s->f->collected[s->f->n_word - 1] = true;
    return e;
}

static error_t parse_option(const parse_state *s, int key, const char *arg, struct argp_state *state) {
    const frame_option *list = s->command->option;
    const char *collects = s->command->collects;
    for (int i = 0; list[i].name; i++) {
        if (key_of(list, i) != key) continue;
        store_option(list, &list[i], s->options, arg, state);
        return collects && strcmp(list[i].name, collects) == 0 ? collect_word(s, arg, state) : 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static error_t parse_key(int key, char *arg, struct argp_state *state) {
    const parse_state *s = state->input;
    const frame_command *c = s->command;
    if (key == ARGP_KEY_ARG) return add_word(s, arg, state);
    if (key != ARGP_KEY_END) return parse_option(s, key, arg, state);
    if (s->f->n_word < c->min_word || (c->complete && !c->complete(s->options)))
        argp_error(state, "%s", c->too_few);
    return 0;
}

static void parse_arguments(const frame_command *c, frame *f, void *options, int argc, char **argv) {
    int n = 0;
    while (c->option[n].name) n++;
    struct argp_option *list = HP_NEW(f->arena, struct argp_option, n + 1);
    for (int i = 0; i < n; i++)
        list[i] = (struct argp_option){
            c->option[i].name, key_of(c->option, i), c->option[i].arg, 0, c->option[i].doc, 0};
    const struct argp argp = {list, parse_key, c->usage, c->doc, NULL, NULL, NULL};
    parse_state s = {c, f, options};
    cli_parse(&argp, c->collects ? ARGP_IN_ORDER : 0, argc, argv, &s);
}

hp_status frame_keep_words(const frame *f, const char *output, hp_error *err) {
    struct stat out, in;
    if (stat(output, &out) != 0) return HP_OK;
    for (int i = 0; i < f->n_word; i++)
        if (stat(f->word[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return hp_fail(err, HP_EUSAGE,
                           "-o %.200s would overwrite what it is made from: give another name", output);
    return HP_OK;
}

int frame_run(const frame_command *c, void *options, int argc, char **argv) {
    HP_ASSERT(c->max_word <= FRAME_WORDS);
    frame f = {.arena = hp_arena_new(), .options = options, .n_first = -1};
    hp_error err = {0};
    parse_arguments(c, &f, options, argc, argv);
    hp_status status = c->opens ? hp_db_open(f.word[0], &f.db, &err) : HP_OK;
    if (status == HP_OK) status = c->run(&f, &err);
    hp_db_close(&f.db);
    hp_arena_free(f.arena);
    return status == HP_OK || status == HP_DIFF ? (int)status : cli_report(&err);
}
