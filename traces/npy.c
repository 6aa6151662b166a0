/* npy.c - the header of an .npy file is a Python dictionary as text. Parses the only form that it may have,
 * and checks it against the file's length before using it. */
#include "traces/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum { MAGIC_BYTES = 8, MOST_HEADER = 1 << 16 };
static const int64_t MOST_COUNT = INT64_C(1) << 30;

typedef struct element {
    const char *descr;
    int64_t bytes;
    float (*value)(const void *at);
} element;

#define CONVERT(name, type)                                                                                  \
    static float name(const void *at) {                                                                      \
        type v;                                                                                              \
        memcpy(&v, at, sizeof v);                                                                            \
        return (float)v;                                                                                     \
    }
CONVERT(from_f4, float)
CONVERT(from_f8, double)
CONVERT(from_u1, uint8_t)
CONVERT(from_i4, int32_t)
CONVERT(from_i8, int64_t)

static const element ELEMENTS[] = {
    {"<f4", 4, from_f4}, {"<f8", 8, from_f8}, {"|u1", 1, from_u1}, {"<i4", 4, from_i4}, {"<i8", 8, from_i8}};
enum { N_ELEMENT = sizeof ELEMENTS / sizeof *ELEMENTS };
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they lie in the file");

typedef struct header {
    const element *element;
    bool has_order, has_shape;
    hp_npy *a;
} header;

/* --- the dictionary --- */

static void skip_blanks(const char **p) {
    while (**p == ' ') ++*p;
}

static bool accept(const char **p, const char *word) {
    skip_blanks(p);
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0) return false;
    *p += n;
    return true;
}

/* Parses 'text' or "text" without escapes; `out` gets the contents. */
static bool parse_text(const char **p, char *out, size_t size) {
    skip_blanks(p);
    const char quote = **p;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(*p + 1, quote);
    if (!end || (size_t)(end - *p) > size) return false;
    snprintf(out, size, "%.*s", (int)(end - *p - 1), *p + 1);
    *p = end + 1;
    return true;
}

static bool parse_descr(const char **p, header *h) {
    char descr[8];
    if (h->element || !parse_text(p, descr, sizeof descr)) return false;
    for (int i = 0; i < N_ELEMENT; i++)
        if (!strcmp(descr, ELEMENTS[i].descr)) h->element = &ELEMENTS[i];
    return h->element;
}

static bool parse_order(const char **p, header *h) {
    if (h->has_order || !accept(p, "False")) return false;
    h->has_order = true;
    return true;
}

/* Digits up to a bound that prevents overflow of products of dimensions. */
static bool parse_number(const char **p, int64_t *value) {
    static const int64_t MOST = INT64_C(1) << 48;
    skip_blanks(p);
    const char *first = *p;
    for (*value = 0; **p >= '0' && **p <= '9' && *value <= MOST; ++*p) *value = 10 * *value + (**p - '0');
    return *p > first && *value <= MOST;
}

/* (), (3,), (3, 4) or (3, 4,) */
static bool parse_shape(const char **p, header *h) {
    hp_npy *a = h->a;
    a->n_dim = 0;
    if (h->has_shape || !accept(p, "(")) return false;
    h->has_shape = true;
    bool comma = true;
    while (!accept(p, ")")) {
        if (!comma || a->n_dim == HP_NPY_DIMS || !parse_number(p, &a->dim[a->n_dim])) return false;
        a->n_dim++;
        comma = accept(p, ",");
    }
    return a->n_dim != 1 || comma; /* (3) is a number, not a tuple */
}

static bool parse_entry(const char **p, header *h) {
    static const struct {
        const char *key;
        bool (*parse)(const char **p, header *h);
    } ENTRIES[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};
    char key[16];
    if (!parse_text(p, key, sizeof key) || !accept(p, ":")) return false;
    for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++)
        if (!strcmp(key, ENTRIES[i].key)) return ENTRIES[i].parse(p, h);
    return false;
}

static bool parse_dictionary(const char *p, header *h) {
    bool comma = true;
    if (!accept(&p, "{")) return false;
    while (!accept(&p, "}")) {
        if (!comma || !parse_entry(&p, h)) return false;
        comma = accept(&p, ",");
    }
    skip_blanks(&p);
    return !strcmp(p, "\n") && h->element && h->has_order && h->has_shape;
}

/* --- the file --- */

/* Reads magic, version and length. Returns the bytes read and the dictionary's length, which has two bytes in
 * version 1 and four later. */
static bool read_prefix(FILE *f, int64_t *bytes, int64_t *length) {
    static const unsigned char MAGIC[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    unsigned char b[MAGIC_BYTES + 4] = {0};
    if (fread(b, 1, MAGIC_BYTES, f) != MAGIC_BYTES || memcmp(b, MAGIC, sizeof MAGIC) != 0) return false;
    const size_t wide = b[6] == 1 ? 2 : 4;
    if (b[6] < 1 || b[6] > 3 || b[7] != 0 || fread(b + MAGIC_BYTES, 1, wide, f) != wide) return false;
    *length = 0;
    for (size_t i = 0; i < wide; i++) *length |= (int64_t)b[MAGIC_BYTES + i] << 8 * i;
    *bytes = MAGIC_BYTES + (int64_t)wide;
    return *length > 0 && *length <= MOST_HEADER;
}

/* Does the shape account for exactly `bytes`? */
static bool shape_fits(header *h, int64_t bytes) {
    const int64_t n = bytes / h->element->bytes;
    hp_npy *a = h->a;
    if (bytes % h->element->bytes) return false;
    a->count = 1;
    for (int i = 0; i < a->n_dim; i++) {
        if (a->dim[i] && a->count > n / a->dim[i]) return false;
        a->count *= a->dim[i];
    }
    return a->count == n;
}

static hp_status read_elements(hp_arena *arena, FILE *f, const char *path, header *h, hp_error *err) {
    unsigned char chunk[1 << 13]; /* whole elements of every size */
    const int64_t size = h->element->bytes;
    h->a->data = HP_NEW(arena, float, h->a->count);
    for (int64_t done = 0; done < h->a->count;) {
        const int64_t room = (int64_t)sizeof chunk / size, left = h->a->count - done;
        const int64_t n = left < room ? left : room;
        if (fread(chunk, (size_t)size, (size_t)n, f) != (size_t)n)
            return hp_fail(err, HP_EDATA, "%s: cannot be read to its end: %s", path,
                           ferror(f) ? strerror(errno) : "it became shorter");
        for (int64_t i = 0; i < n; i++) h->a->data[done + i] = h->element->value(chunk + i * size);
        done += n;
    }
    return HP_OK;
}

static hp_status read_array(hp_arena *arena, FILE *f, const char *path, hp_npy *a, hp_error *err) {
    struct stat st;
    int64_t prefix = 0, length = 0;
    header h = {.a = a};
    if (fstat(fileno(f), &st) != 0) return hp_fail(err, HP_EDATA, "%s: %s", path, strerror(errno));
    if (!read_prefix(f, &prefix, &length))
        return hp_fail(err, HP_EDATA, "%s: not an .npy file; numpy.save writes one", path);
    char *text = hp_arena_alloc(arena, (size_t)length + 1);
    const bool whole = fread(text, 1, (size_t)length, f) == (size_t)length;
    if (!whole || !parse_dictionary(text, &h))
        return hp_fail(
            err, HP_EDATA,
            "%s: its header is not one of a little-endian array of f4, f8, u1, i4 or i8 in C order", path);
    if (!shape_fits(&h, st.st_size - prefix - length))
        return hp_fail(err, HP_EDATA,
                       "%s: %lld bytes follow its header, but its shape implies another number", path,
                       (long long)(st.st_size - prefix - length));
    if (a->count > MOST_COUNT)
        return hp_fail(err, HP_EDATA, "%s: %lld numbers, at most %lld are read", path, (long long)a->count,
                       (long long)MOST_COUNT);
    return read_elements(arena, f, path, &h, err);
}

hp_status hp_npy_read(hp_arena *arena, const char *path, hp_npy *a, hp_error *err) {
    struct stat st;
    *a = (hp_npy){0};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* opening a pipe would wait for its writer */
        return hp_fail(err, HP_EDATA, "%s: not a regular file", path);
    FILE *f = fopen(path, "rbe");
    if (!f) return hp_fail(err, HP_EDATA, "%s: cannot be opened: %s", path, strerror(errno));
    const hp_status status = read_array(arena, f, path, a, err);
    fclose(f);
    return status;
}
