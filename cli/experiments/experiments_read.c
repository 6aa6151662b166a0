/* experiments_read.c - a file of published figures: lines "key: value", then rows; # begins a comment. */
#include "cli/experiments/experiments.h"

#include <ctype.h>
#include <string.h>

char *experiment_trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
    return text;
}

static const struct {
    const char *key;
    size_t at;
    bool needed;
} keys[] = {
    {"source", offsetof(experiment_file, source), true},
    {"what", offsetof(experiment_file, what), true},
    {"setup", offsetof(experiment_file, setup), true},
    {"section", offsetof(experiment_file, section), false},
    {"cited", offsetof(experiment_file, cited), false},
    {"all", offsetof(experiment_file, all), false},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static const char **field(experiment_file *f, int key) {
    return (const char **)(void *)((char *)f + keys[key].at);
}

static hp_status parse_key(char *line, int number, experiment_file *f, hp_error *err) {
    char *colon = strchr(line, ':');
    if (!colon)
        return hp_fail(err, HP_EDATA, "%s:%d: '%.40s' is neither 'key: value' nor a row of fields between |",
                       f->path, number, line);
    *colon = 0;
    const char *value = experiment_trim(colon + 1);
    int k = 0;
    while (k < KEYS && strcmp(keys[k].key, experiment_trim(line)) != 0) k++;
    if (k == KEYS)
        return hp_fail(err, HP_EDATA,
                       "%s:%d: key '%.40s' is not one of source, what, setup, section, cited, all", f->path,
                       number, line);
    if (*field(f, k)) return hp_fail(err, HP_EDATA, "%s:%d: %s comes twice", f->path, number, keys[k].key);
    if (!*value) return hp_fail(err, HP_EDATA, "%s:%d: %s is empty", f->path, number, keys[k].key);
    if (f->n)
        return hp_fail(err, HP_EDATA, "%s:%d: %s comes after rows; keys come first", f->path, number,
                       keys[k].key);
    *field(f, k) = value;
    return HP_OK;
}

static hp_status check_keys(experiment_file *f, hp_error *err) {
    for (int k = 0; k < KEYS; k++)
        if (keys[k].needed && !*field(f, k))
            return hp_fail(err, HP_EDATA, "%s:1: there is no line '%s: ...'", f->path, keys[k].key);
    if (f->n) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s:1: there are no rows; one is: name | options | measure value | kind",
                   f->path);
}

hp_status experiment_parse(hp_arena *arena, char *text, experiment_file *f, hp_error *err) {
    char *next = text;
    for (int number = 1; next; number++) {
        char *line = strsep(&next, "\n");
        line = experiment_trim(line);
        if (!*line || *line == '#') continue;
        if (strchr(line, '|'))
            HP_TRY(experiment_parse_row(arena, line, number, f, err));
        else
            HP_TRY(parse_key(line, number, f, err));
    }
    return check_keys(f, err);
}
