/* quantised_info.c - reads the metadata of a quantised file; see quantised.h. */
#include "exec/data/weights/quantised.h"
#include "base/alloc.h"

#include "base/input.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool hp_is_quantised_file(const hp_safetensors *st) {
    const char *format = hp_safetensors_note(st, "format");
    return format && strncmp(format, "hplan-quantised ", 16) == 0;
}

static hp_status fail(const char *path, const char *key, const char *why, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: note '%s' of its metadata %s; make it again with `hplan quantize`",
                   path, key, why);
}

static hp_status text_of(hp_arena *a, const char *path, const hp_safetensors *st, const char *key,
                         const char **out, hp_error *err) {
    const char *text = hp_safetensors_note(st, key);
    if (!text) return fail(path, key, "is missing", err);
    *out = hp_arena_strdup(a, text);
    return HP_OK;
}

/* Parses up to four comma-separated numbers; returns how many, 0 if it is no such list. */
static int parse_list(const char *text, double value[4]) {
    for (int n = 0; n < 4; n++) {
        char *end;
        value[n] = strtod(text, &end);
        if (end == text || !isfinite(value[n])) return 0;
        if (*end == '\0') return n + 1;
        if (*end != ',') return 0;
        text = end + 1;
    }
    return 0;
}

static hp_status read_pixels(const char *path, const hp_safetensors *st, hp_quantised_info *info,
                             hp_error *err) {
    const char *mean = hp_safetensors_note(st, "mean"), *std = hp_safetensors_note(st, "std");
    info->n_mean = mean ? parse_list(mean, info->mean) : 0;
    if (info->n_mean == 0) return fail(path, "mean", "is not a list of one to four numbers", err);
    if (!std || parse_list(std, info->std) != info->n_mean)
        return fail(path, "std", "is not a list of as many numbers as mean", err);
    for (int i = 0; i < info->n_mean; i++)
        if (info->std[i] <= 0) return fail(path, "std", "is not positive", err);
    return HP_OK;
}

static hp_status read_images(const char *path, const hp_safetensors *st, int64_t *images, hp_error *err) {
    const char *text = hp_safetensors_note(st, "images");
    char *end = NULL;
    errno = 0;
    *images = text ? strtoll(text, &end, 10) : -1;
    if (!text || end == text || *end || errno || *images < 0)
        return fail(path, "images", "is not a number", err);
    return HP_OK;
}

hp_status hp_quantised_info_of(hp_arena *a, const char *path, const hp_safetensors *st,
                               hp_quantised_info *info, hp_error *err) {
    const char *format = hp_safetensors_note(st, "format");
    if (!format || strcmp(format, "hplan-quantised 1") != 0)
        return fail(path, "format", "is not \"hplan-quantised 1\", which this version reads", err);
    HP_TRY(text_of(a, path, st, "net", &info->net, err));
    HP_TRY(text_of(a, path, st, "observer", &info->observer, err));
    HP_TRY(text_of(a, path, st, "float_layers", &info->float_layers, err));
    HP_TRY(text_of(a, path, st, "source", &info->source, err));
    HP_TRY(read_images(path, st, &info->images, err));
    return read_pixels(path, st, info, err);
}

/* In chunks: the file may be larger than memory. */
static uint64_t hash_stream(FILE *f) {
    static const size_t chunk = 1 << 20;
    unsigned char *bytes = hp_alloc(chunk);
    uint64_t hash = 0;
    for (size_t n; (n = fread(bytes, 1, chunk, f)) > 0;) hash = hp_hash64(bytes, n, hash);
    free(bytes);
    return hash;
}

hp_status hp_quantised_source(hp_arena *a, const char *path, uint64_t seed, const char **text,
                              hp_error *err) {
    if (!path) {
        *text = hp_arena_printf(a, "seed %" PRIu64, seed);
        return HP_OK;
    }
    FILE *f = hp_input_fopen(path);
    if (!f)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", path,
                       strerror(errno));
    const uint64_t hash = hash_stream(f);
    const bool fail = ferror(f);
    fclose(f);
    if (fail) return hp_fail(err, HP_EDATA, "cannot read %s to its end", path);
    *text = hp_arena_printf(a, "xxh3 %016" PRIx64, hash);
    return HP_OK;
}
