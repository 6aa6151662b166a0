/* words_json.c - values of the JSON that a command prints, by their paths. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>

enum { PATH = 256 };

static json_t *child(json_t *at, const char *name, size_t n) {
    char key[PATH];
    snprintf(key, sizeof key, "%.*s", (int)n, name);
    return json_is_array(at) ? json_array_get(at, (size_t)atol(key)) : json_object_get(at, key);
}

json_t *words_find(words *w, const char *path) {
    json_error_t error;
    if (!w->json) w->json = json_loads(w->out, 0, &error);
    if (!w->json) fail_msg("hplan %s: no JSON: %s: %.200s", w->command, error.text, w->out);
    json_t *at = w->json;
    while (at && *path) {
        const size_t n = strcspn(path, "/");
        at = child(at, path, n);
        path += n + (path[n] == '/');
    }
    return at;
}

static json_t *find_formatted(words *w, const char *format, va_list arguments) {
    char path[PATH];
    vsnprintf(path, sizeof path, format, arguments);
    json_t *found = words_find(w, path);
    if (!found) fail_msg("hplan %s: JSON lacks %s: %.800s", w->command, path, w->out);
    return found;
}

json_t *words_at(words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    json_t *found = find_formatted(w, format, arguments);
    va_end(arguments);
    return found;
}

double words_number(words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const json_t *found = find_formatted(w, format, arguments);
    va_end(arguments);
    if (!json_is_number(found)) fail_msg("hplan %s: not a number: %s", w->command, format);
    return json_number_value(found);
}

const char *words_text(words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const json_t *found = find_formatted(w, format, arguments);
    va_end(arguments);
    if (!json_is_string(found)) fail_msg("hplan %s: not a text: %s", w->command, format);
    return json_string_value(found);
}

int words_length(words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const json_t *found = find_formatted(w, format, arguments);
    va_end(arguments);
    return (int)(json_is_array(found) ? json_array_size(found) : json_object_size(found));
}

char *words_compact(words *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const json_t *found = find_formatted(w, format, arguments);
    va_end(arguments);
    return json_dumps(found, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
}
