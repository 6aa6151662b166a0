/* manifest.c - see manifest.h. One table defines what is written, read and compared. */
#include "checkpoints/manifest.h"

#include "base/hash.h"
#include "base/input.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

enum { VERSION = 2, MOST_RANKS = 1 << 22 };

typedef enum item_type { TEXT, WHOLE, REAL } item_type;
typedef enum item_rule { SAME, NOTED, FREE } item_rule;

typedef struct item {
    item_type type;
    item_rule rule;
    const char *name, *words;
    size_t at;
} item;

static const item ITEMS[] = {
#define ITEM(type, name, rule, words) {type, rule, #name, words, offsetof(hp_manifest, name)},
#include "checkpoints/manifest.def"
#undef ITEM
};
enum { N_ITEM = sizeof ITEMS / sizeof *ITEMS };

static void *field(const hp_manifest *m, const item *i) {
    return (char *)m + i->at;
}

/* --- text --- */

/* Hexadecimal keeps every bit; JSON has no infinity and no NaN. */
static json_t *real_of(double value) {
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    return json_string(text);
}

static json_t *value_of(const hp_manifest *m, const item *i) {
    if (i->type == TEXT) return json_string(*(const char **)field(m, i));
    if (i->type == WHOLE) return json_integer(*(int64_t *)field(m, i));
    return real_of(*(double *)field(m, i));
}

static json_t *file_of(const hp_chunks *c) {
    json_t *hashes = json_array();
    for (int32_t k = 0; k < c->n; k++) {
        char hex[17];
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)c->hash[k]);
        json_array_append_new(hashes, json_string(hex));
    }
    return json_pack("{s:I, s:o}", "bytes", (json_int_t)c->bytes, "chunks", hashes);
}

/* Hashes the object without its own hash, in canonical form. */
static hp_hash hash_of(const json_t *root) {
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    HP_ASSERT(text);
    const hp_hash h = hp_hash_bytes(text, strlen(text));
    free(text);
    return h;
}

char *hp_manifest_text(const hp_manifest *m) {
    json_t *root = json_pack("{s:i}", "version", VERSION), *files = json_array();
    for (int i = 0; i < N_ITEM; i++) json_object_set_new(root, ITEMS[i].name, value_of(m, &ITEMS[i]));
    for (int64_t r = 0; r < m->ranks; r++) json_array_append_new(files, file_of(&m->file[r]));
    json_object_set_new(root, "files", files);
    json_object_set_new(root, "hash", json_string(hash_of(root).hex));
    char *text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    HP_ASSERT(text);
    return text;
}

/* --- reading --- */

static hp_status wrong(const char *path, const char *what, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: %s", path, what);
}

static hp_status read_text(hp_arena *a, const char *path, char **text, size_t *bytes, hp_error *err) {
    struct stat st;
    FILE *f = hp_input_fopen(path);
    if (!f) return wrong(path, "missing, so the checkpoint was not finished", err);
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > HP_MANIFEST_MOST) {
        fclose(f);
        return wrong(path, "not a file of at most 64 MiB", err);
    }
    *text = hp_arena_alloc(a, (size_t)st.st_size + 1);
    *bytes = fread(*text, 1, (size_t)st.st_size, f);
    fclose(f);
    return HP_OK;
}

static bool read_real(const char *text, double *value) {
    char *end = NULL;
    if (!text || !*text) return false;
    *value = strtod(text, &end);
    return *end == '\0';
}

static bool read_item(hp_arena *a, const json_t *root, const item *i, hp_manifest *m) {
    const json_t *v = json_object_get(root, i->name);
    if (i->type == REAL) return read_real(json_string_value(v), field(m, i));
    if (i->type == WHOLE) *(int64_t *)field(m, i) = json_integer_value(v);
    if (i->type == TEXT)
        *(const char **)field(m, i) = json_is_string(v) ? hp_arena_strdup(a, json_string_value(v)) : "";
    return i->type == WHOLE ? json_is_integer(v) : json_is_string(v);
}

static bool read_hash(const char *text, uint64_t *hash) {
    char *end = NULL;
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
    *hash = strtoull(text, &end, 16);
    return true;
}

static bool read_file(hp_arena *a, const json_t *v, hp_chunks *c) {
    const json_t *bytes = json_object_get(v, "bytes"), *hashes = json_object_get(v, "chunks");
    c->bytes = json_integer_value(bytes);
    c->n = (int32_t)json_array_size(hashes);
    if (!json_is_integer(bytes) || c->bytes <= 0 ||
        hp_chunks_of(c->bytes) != (int64_t)json_array_size(hashes))
        return false;
    c->hash = HP_NEW(a, uint64_t, c->n);
    for (int32_t k = 0; k < c->n; k++)
        if (!read_hash(json_string_value(json_array_get(hashes, (size_t)k)), &c->hash[k])) return false;
    return true;
}

static hp_status read_object(hp_arena *a, const char *path, json_t *root, hp_manifest *m, hp_error *err) {
    json_t *hash = json_incref(json_object_get(root, "hash"));
    const char *said = json_string_value(hash);
    json_object_del(root, "hash");
    const bool right = said && strcmp(said, hash_of(root).hex) == 0;
    json_decref(hash);
    if (!right) return wrong(path, "not what was written: its hash is another", err);
    if (json_integer_value(json_object_get(root, "version")) != VERSION)
        return wrong(path, "of another version of hplan", err);
    for (int i = 0; i < N_ITEM; i++)
        if (!read_item(a, root, &ITEMS[i], m)) return wrong(path, ITEMS[i].name, err);
    const json_t *files = json_object_get(root, "files");
    if (m->ranks < 1 || m->ranks > MOST_RANKS || (int64_t)json_array_size(files) != m->ranks || m->step < 0 ||
        m->step > INT32_MAX)
        return wrong(path, "its numbers of ranks, files and steps do not go together", err);
    m->file = HP_NEW(a, hp_chunks, m->ranks);
    for (int64_t r = 0; r < m->ranks; r++)
        if (!read_file(a, json_array_get(files, (size_t)r), &m->file[r])) return wrong(path, "files", err);
    return HP_OK;
}

hp_status hp_manifest_read(hp_arena *a, const char *path, hp_manifest *m, hp_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    *m = (hp_manifest){.net = ""};
    HP_TRY(read_text(a, path, &text, &bytes, err));
    json_error_t e;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    const hp_status s =
        json_is_object(root) ? read_object(a, path, root, m, err) : wrong(path, "not a JSON object", err);
    json_decref(root);
    return s;
}

/* --- comparing --- */

static bool equal(const hp_manifest *a, const hp_manifest *b, const item *i) {
    if (i->type == TEXT) return strcmp(*(const char **)field(a, i), *(const char **)field(b, i)) == 0;
    if (i->type == WHOLE) return *(int64_t *)field(a, i) == *(int64_t *)field(b, i);
    return *(double *)field(a, i) == *(double *)field(b, i);
}

static const char *shown(const hp_manifest *m, const item *i, char out[64]) {
    if (i->type == TEXT) snprintf(out, 64, "%.40s", *(const char **)field(m, i));
    if (i->type == WHOLE) snprintf(out, 64, "%lld", (long long)*(int64_t *)field(m, i));
    if (i->type == REAL) snprintf(out, 64, "%.10g", *(double *)field(m, i));
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return out;
}

hp_status hp_manifest_same(const hp_manifest *stored, const hp_manifest *mine, hp_error *err) {
    char a[64], b[64];
    for (int i = 0; i < N_ITEM; i++)
        if (ITEMS[i].rule == SAME && !equal(stored, mine, &ITEMS[i]))
            return hp_fail(
                err, HP_EDATA,
                "the checkpoint of step %lld is of another run: %s was %s, now %s; give what it was, "
                "or an empty folder to begin anew",
                (long long)stored->step, ITEMS[i].words, shown(stored, &ITEMS[i], a),
                shown(mine, &ITEMS[i], b));
    return HP_OK;
}

const char *hp_manifest_notes(hp_arena *arena, const hp_manifest *stored, const hp_manifest *mine) {
    const char *notes = "";
    char a[64], b[64];
    for (int i = 0; i < N_ITEM; i++)
        if (ITEMS[i].rule == NOTED && !equal(stored, mine, &ITEMS[i]))
            notes = hp_arena_printf(arena, "%s%s%s was %s, is now %s", notes, *notes ? "; " : "",
                                    ITEMS[i].words, shown(stored, &ITEMS[i], a), shown(mine, &ITEMS[i], b));
    return notes;
}
