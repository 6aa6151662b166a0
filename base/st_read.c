/* st_read.c - opens safetensors files and checks every claim of the header; see st_read.h. */
#include "base/st_read.h"
#include "base/input.h"
#include "base/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

struct hp_safetensors {
    hp_arena *arena;
    const char *path;
    unsigned char *map;
    size_t map_bytes;
    const unsigned char *data; /* offset just after the header */
    int64_t data_bytes;
    int n;
    hp_st_tensor *tensor;         /* by data offset */
    const hp_st_tensor **by_name; /* the same, sorted by name */
    int n_note;
    hp_st_note *note;
    const char *strip,
        *prefix; /* a name starting with the first, as callers use it, matches a file name starting with the
                  * second */
};

const char *hp_st_printable(const char *name, char out[64]) {
    size_t i = 0;
    for (; name[i] && i < 63; i++) out[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    out[i] = '\0';
    return out;
}

static hp_status fail(const hp_safetensors *st, const char *name, const char *why, hp_error *err) {
    char shown[64];
    return hp_fail(err, HP_EDATA, "%s: tensor '%s': %s; write the file again", st->path,
                   hp_st_printable(name, shown), why);
}

static hp_status map_file(hp_safetensors *st, hp_error *err) {
    const int fd = hp_input_open(st->path);
    if (fd < 0)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", st->path,
                       strerror(errno));
    struct stat s;
    const int ok = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 8;
    if (ok) {
        st->map_bytes = (size_t)s.st_size;
        st->map = mmap(NULL, st->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (!ok)
        return hp_fail(err, HP_EDATA, "%s: not a file of more than 8 bytes, so not a safetensors file",
                       st->path);
    if (st->map == MAP_FAILED) {
        st->map = NULL;
        return hp_fail(err, HP_EDATA, "cannot map %s: %s", st->path, strerror(errno));
    }
    return HP_OK;
}

static hp_status read_dtype(const hp_safetensors *st, json_t *entry, hp_st_tensor *t, hp_error *err) {
    const char *text = json_string_value(json_object_get(entry, "dtype"));
    for (t->dtype = 0; text && t->dtype < HP_ST_DTYPES; t->dtype++)
        if (strcmp(text, hp_st_infos[t->dtype].name) == 0) return HP_OK;
    return fail(st, t->name, text ? "a dtype this version does not know" : "no dtype", err);
}

static hp_status read_shape(const hp_safetensors *st, json_t *entry, hp_st_tensor *t, hp_error *err) {
    json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return fail(st, t->name, "no shape", err);
    if (json_array_size(shape) > HP_ST_MAX_DIM) return fail(st, t->name, "more than 8 dimensions", err);
    t->n_dim = (int32_t)json_array_size(shape);
    t->count = 1;
    for (int i = 0; i < t->n_dim; i++) {
        json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return fail(st, t->name, "a dimension is not a size", err);
        t->dim[i] = json_integer_value(dim);
        if (__builtin_mul_overflow(t->count, t->dim[i], &t->count))
            return fail(st, t->name, "the shape has more than 2^63 elements", err);
    }
    return HP_OK;
}

static hp_status read_range(const hp_safetensors *st, json_t *entry, hp_st_tensor *t, hp_error *err) {
    json_t *range = json_object_get(entry, "data_offsets"), *b = json_array_get(range, 0),
           *e = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return fail(st, t->name, "no data_offsets", err);
    const int64_t begin = json_integer_value(b), end = json_integer_value(e);
    if (begin < 0 || end < begin || end > st->data_bytes)
        return fail(st, t->name, "its data lie outside the file (is it truncated?)", err);
    int64_t bytes;
    if (__builtin_mul_overflow(t->count, (int64_t)hp_st_infos[t->dtype].bytes, &bytes) ||
        bytes != end - begin)
        return fail(st, t->name, "its data are not as long as its shape says", err);
    t->data = st->data + begin;
    return HP_OK;
}

static hp_status read_tensor(hp_safetensors *st, const char *name, json_t *entry, hp_error *err) {
    hp_st_tensor *t = &st->tensor[st->n];
    t->name = hp_arena_strdup(st->arena, name);
    if (!json_is_object(entry)) return fail(st, name, "its entry is not an object", err);
    HP_TRY(read_dtype(st, entry, t, err));
    HP_TRY(read_shape(st, entry, t, err));
    HP_TRY(read_range(st, entry, t, err));
    st->n++;
    return HP_OK;
}

/* The format allows only string values; others are ignored. */
static void read_notes(hp_safetensors *st, json_t *entry) {
    const char *key;
    json_t *value;
    st->note = HP_NEW(st->arena, hp_st_note, json_object_size(entry) + 1);
    json_object_foreach(entry, key, value) {
        if (!json_is_string(value)) continue;
        st->note[st->n_note++] = (hp_st_note){hp_arena_strdup(st->arena, key),
                                              hp_arena_strdup(st->arena, json_string_value(value))};
    }
}

static hp_status read_entries(hp_safetensors *st, json_t *root, hp_error *err) {
    const size_t n = json_object_size(root);
    if (n > HP_ST_MAX_TENSORS + 1)
        return hp_fail(err, HP_EDATA, "%s: %zu tensors; hplan reads up to %d", st->path, n,
                       (int)HP_ST_MAX_TENSORS);
    st->tensor = HP_NEW(st->arena, hp_st_tensor, n + 1);
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry) {
        if (strcmp(name, "__metadata__") == 0)
            read_notes(st, entry);
        else
            HP_TRY(read_tensor(st, name, entry, err));
    }
    return HP_OK;
}

static int by_offset(const void *x, const void *y) {
    const hp_st_tensor *a = x, *b = y;
    const int64_t na = a->count, nb = b->count; /* if two tensors have one offset, the empty one sorts
                                                 * first */
    if (a->data != b->data) return a->data < b->data ? -1 : 1;
    return (na > nb) - (na < nb);
}

static int by_name(const void *x, const void *y) {
    return strcmp((*(const hp_st_tensor *const *)x)->name, (*(const hp_st_tensor *const *)y)->name);
}

static hp_status check_cover(hp_safetensors *st, hp_error *err) {
    if (st->n) qsort(st->tensor, (size_t)st->n, sizeof *st->tensor, by_offset);
    const unsigned char *at = st->data;
    for (int i = 0; i < st->n; i++) {
        const hp_st_tensor *t = &st->tensor[i];
        if (t->data != at)
            return fail(st, t->name, "its data overlap another's or leave a hole before them", err);
        at += t->count * hp_st_infos[t->dtype].bytes;
    }
    if (at != st->data + st->data_bytes)
        return hp_fail(err, HP_EDATA, "%s: %lld bytes of no tensor at the end; write the file again",
                       st->path, (long long)(st->data + st->data_bytes - at));
    st->by_name = HP_NEW(st->arena, const hp_st_tensor *, st->n + 1);
    for (int i = 0; i < st->n; i++) st->by_name[i] = &st->tensor[i];
    if (st->n) qsort(st->by_name, (size_t)st->n, sizeof *st->by_name, by_name);
    return HP_OK;
}

/* For a file of another format, the error names that format. */
static hp_status fail_kind(const hp_safetensors *st, const char *else_why, hp_error *err) {
    bool weights;
    const char *kind = hp_file_kind(st->map, st->map_bytes, &weights);
    const bool own = st->map_bytes > 8 && st->map[8] == '{';
    if (!kind || own)
        return hp_fail(err, HP_EDATA, "%s: %s; give weights as safetensors", st->path, else_why);
    return hp_fail(err, HP_EDATA, "%s is %s; weights are read from safetensors%s", st->path, kind,
                   weights ? ": in Python, safetensors.torch.save_file(state_dict, 'weights.safetensors')"
                           : "");
}

static hp_status read_header(hp_safetensors *st, hp_error *err) {
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | st->map[i];
    if (length > HP_ST_MAX_HEADER || length > st->map_bytes - 8)
        return fail_kind(
            st,
            hp_arena_printf(
                st->arena,
                "a header of %llu bytes (at most %d, and inside the file): cut off or not safetensors",
                (unsigned long long)length, (int)HP_ST_MAX_HEADER),
            err);
    st->data = st->map + 8 + length;
    st->data_bytes = (int64_t)(st->map_bytes - 8 - length);
    json_error_t e;
    json_t *root = json_loadb((const char *)st->map + 8, (size_t)length, JSON_REJECT_DUPLICATES, &e);
    if (!json_is_object(root)) {
        char shown[64];
        json_decref(root);
        return fail_kind(st,
                         hp_arena_printf(st->arena, "the header is not a JSON object (%s): not safetensors",
                                         root ? "another value" : hp_st_printable(e.text, shown)),
                         err);
    }
    const hp_status s = read_entries(st, root, err);
    json_decref(root);
    return s;
}

hp_status hp_safetensors_open(const char *path, hp_safetensors **out, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    hp_safetensors *st = HP_NEW(arena, hp_safetensors, 1);
    st->arena = arena;
    st->path = hp_arena_strdup(arena, path);
    st->strip = st->prefix = "";
    hp_status s = map_file(st, err);
    if (s == HP_OK) s = read_header(st, err);
    if (s == HP_OK) s = check_cover(st, err);
    if (s != HP_OK) {
        hp_safetensors_close(st);
        return s;
    }
    *out = st;
    return HP_OK;
}

void hp_safetensors_close(hp_safetensors *st) {
    if (!st) return;
    if (st->map) munmap(st->map, st->map_bytes);
    hp_arena_free(st->arena);
}

int hp_safetensors_count(const hp_safetensors *st) {
    return st->n;
}

const hp_st_tensor *hp_safetensors_tensor(const hp_safetensors *st, int i) {
    HP_ASSERT(i >= 0 && i < st->n);
    return &st->tensor[i];
}

static bool begins_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

void hp_safetensors_use_prefix(hp_safetensors *st, const char *strip, const char *prefix) {
    st->strip = hp_arena_strdup(st->arena, strip);
    st->prefix = hp_arena_strdup(st->arena, prefix);
}

void hp_safetensors_prefix(const hp_safetensors *st, const char **strip, const char **prefix) {
    *strip = st->strip;
    *prefix = st->prefix;
}

const char *hp_safetensors_own_name(const hp_safetensors *st, const char *name) {
    if (!begins_with(name, st->prefix)) return NULL;
    const char *rest = name + strlen(st->prefix);
    return *st->strip ? hp_arena_printf(st->arena, "%s%s", st->strip, rest) : rest;
}

typedef struct parts {
    const char *prefix, *rest;
} parts;

static int by_parts(const void *key, const void *tensor) {
    const parts *k = key;
    const char *name = (*(const hp_st_tensor *const *)tensor)->name;
    const size_t n = strlen(k->prefix);
    const int first = strncmp(k->prefix, name, n);
    return first ? first : strcmp(k->rest, name + n);
}

const hp_st_tensor *hp_safetensors_find(const hp_safetensors *st, const char *name) {
    if (!begins_with(name, st->strip)) return NULL;
    const parts key = {st->prefix, name + strlen(st->strip)};
    const hp_st_tensor **found = bsearch(&key, st->by_name, (size_t)st->n, sizeof *st->by_name, by_parts);
    return found ? *found : NULL;
}

const char *hp_safetensors_note(const hp_safetensors *st, const char *key) {
    for (int i = 0; i < st->n_note; i++)
        if (strcmp(st->note[i].key, key) == 0) return st->note[i].text;
    return NULL;
}

void hp_safetensors_release_pages(hp_safetensors *st) {
    (void)madvise(st->map, st->map_bytes, MADV_DONTNEED); /* the mapping is read-only, so nothing is lost */
}
