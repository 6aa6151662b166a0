/* reader.c - chooses the format by a file's name and first bytes, and slides a window over the image. */
#include "exec/data/image/reader_kind.h"

#include "base/input.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

typedef struct format {
    const char *magic;
    size_t size;
    const hp_reader_kind *kind;
} format;

static const format formats[] = {
    {"\x89PNG\r\n\x1a\n", 8, &hp_reader_png},
    {"\xff\xd8\xff", 3, &hp_reader_jpeg},
    {"II*\0", 4, &hp_reader_tiff},
    {"MM\0*", 4, &hp_reader_tiff},
    {"II+\0", 4, &hp_reader_tiff},
    {"MM\0+", 4, &hp_reader_tiff},
};

#ifdef HP_HAVE_OPENSLIDE
static const hp_reader_kind *const slides = &hp_reader_slide;
#else
static const hp_reader_kind *const slides = NULL;
#endif

static bool ends_in(const char *name, const char *const *ends, size_t n) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return false;
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(dot, ends[i]) == 0) return true;
    return false;
}

/* Suffixes of OpenSlide's formats that are not used by other image formats. */
static bool is_slide_name(const char *name) {
    static const char *const ends[] = {".svs", ".ndpi", ".mrxs", ".vms", ".vmu", ".scn", ".bif", ".svslide"};
    return ends_in(name, ends, sizeof ends / sizeof *ends);
}

int hp_is_image_name(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".tif", ".tiff"};
    return ends_in(name, ends, sizeof ends / sizeof *ends) || is_slide_name(name);
}

static hp_status find_by_bytes(const char *path, const hp_reader_kind **kind, hp_error *err) {
    char head[8] = {0};
    FILE *f = hp_input_fopen(path);
    if (!f)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", path,
                       strerror(errno));
    const size_t got = fread(head, 1, sizeof head, f);
    fclose(f);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (got >= formats[i].size && memcmp(head, formats[i].magic, formats[i].size) == 0) {
            *kind = formats[i].kind;
            return HP_OK;
        }
    return hp_fail(err, HP_EDATA, "%s: neither PNG, JPEG nor TIFF%s; convert it or remove the file", path,
                   got == 0 ? " (no bytes)" : "");
}

static hp_status find_kind(const char *path, const hp_reader_options *o, const hp_reader_kind **kind,
                           hp_error *err) {
    *kind = &hp_reader_decoded;
    if (o->decoder) return HP_OK; /* the decoder finds the format itself */
    *kind = &hp_reader_png;
    if (o->mask) return HP_OK;
    if (!o->slide && !is_slide_name(path)) return find_by_bytes(path, kind, err);
    *kind = slides;
    if (slides) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL,
                   "%s is a slide and this hplan-exec has no OpenSlide: install libopenslide-dev and build "
                   "again, or convert it to a tiled TIFF",
                   path);
}

hp_status hp_reader_open(const char *path, const hp_reader_options *o, hp_reader **out, hp_error *err) {
    static const hp_reader_options none;
    const hp_reader_kind *kind;
    HP_TRY(find_kind(path, o ? o : &none, &kind, err));
    hp_reader *r = calloc(1, sizeof *r);
    HP_ASSERT(r);
    r->kind = kind;
    r->forward = kind->forward;
    r->o = o ? *o : none;
    r->path = strdup(path);
    HP_ASSERT(r->path);
    const hp_status s = kind->open(r, err);
    if (s != HP_OK) {
        hp_reader_close(r);
        return s;
    }
    *out = hp_reader_upright(r);
    return HP_OK;
}

void hp_reader_close(hp_reader *r) {
    if (!r) return;
    r->kind->close(r);
    hp_image_free(&r->kept);
    free(r->path);
    free(r);
}

hp_pixels hp_reader_size(const hp_reader *r) {
    return (hp_pixels){.h = r->kept.h, .w = r->kept.w, .c = r->kept.c, .type = r->kept.type};
}

uint32_t hp_reader_said(const hp_reader *r) {
    return r->said;
}

int32_t hp_reader_bands(const hp_reader *r) {
    return r->bands;
}

size_t hp_reader_bytes(const hp_reader *r) {
    return r->kept.capacity + r->decoder_bytes;
}

bool hp_reader_is_sequential(const hp_reader *r) {
    return r->forward;
}

int32_t hp_reader_level(const hp_reader *r, double shrink) {
    return r->kind->level ? r->kind->level(r, shrink) : 0;
}

/* Keeps the rows that the new window shares with the last one and decodes those below. */
static hp_status slide(hp_reader *r, const hp_crop *window, hp_error *err) {
    hp_image *kept = &r->kept;
    hp_crop part = *window;
    HP_TRY(hp_image_move(kept, window, r->path, &part.y0, err));
    const size_t row = (size_t)hp_crop_columns(window) * hp_pixel_bytes(kept->c, kept->type);
    const hp_status s = part.y0 < part.y1
                            ? r->kind->rows(r, &part, kept->px + (size_t)(part.y0 - window->y0) * row, err)
                            : HP_OK;
    if (s != HP_OK) kept->window = (hp_crop){0};
    return s;
}

hp_status hp_reader_window(hp_reader *r, const hp_crop *window, hp_pixels *view, hp_error *err) {
    const hp_crop whole = {0, 0, r->kept.h, r->kept.w}, *want = window ? window : &whole;
    if (hp_crop_rows(want) < 1 || hp_crop_columns(want) < 1 || !hp_crop_within(want, &r->kept.window))
        HP_TRY(slide(r, want, err));
    *view = hp_image_pixels(&r->kept);
    return HP_OK;
}
