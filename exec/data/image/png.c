/* png.c - PNG through libpng, row by row. libpng's error exit jumps back into guarded() and nowhere else.
 *
 * Pixels: 8- or 16-bit grey or RGB; alpha, including tRNS, is one more band. Gamma chunks are ignored, as in
 * Pillow. Masks: the stored values, which are grey levels or palette indices. */
#include "exec/data/image/reader_kind.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

typedef struct png {
    png_structp png;
    png_infop info;
    FILE *file;
    jmp_buf escape;
    char text[160];
    uint8_t *row;   /* one row, all bands and columns */
    uint8_t *whole; /* all rows of an interlaced file */
    int32_t next;   /* row that libpng returns next; -1: must restart */
    bool interlaced;
} png;

static void leave(png_structp lib, png_const_charp text) {
    png *p = png_get_error_ptr(lib);
    snprintf(p->text, sizeof p->text, "%s", text);
    longjmp(p->escape, 1);
}

static void silent(png_structp lib, png_const_charp text) {
    (void)lib;
    (void)text;
}

/* Runs a sequence of libpng calls, any of which may end in the error exit. */
typedef struct step {
    hp_status (*run)(hp_reader *r, const struct step *s, hp_error *err);
    const hp_crop *part;
    uint8_t *px;
} step;

static hp_status guarded(hp_reader *r, const step *s, hp_error *err) {
    png *p = r->self;
    if (setjmp(p->escape)) {
        p->next = -1;
        return hp_fail(err, HP_EDATA, "%s: libpng: %s; replace the file", r->path, p->text);
    }
    return s->run(r, s, err);
}

static uint32_t said_of(const png *p) {
    uint32_t said = png_get_valid(p->png, p->info, PNG_INFO_iCCP) ? HP_SAID_PROFILE : 0;
    if (png_get_color_type(p->png, p->info) & PNG_COLOR_MASK_ALPHA ||
        png_get_valid(p->png, p->info, PNG_INFO_tRNS))
        said |= HP_SAID_ALPHA;
    return said;
}

static int32_t position_of(const png *p) {
    png_uint_32 bytes = 0;
    png_bytep exif = NULL;
    return png_get_eXIf_1(p->png, p->info, &bytes, &exif) && exif ? hp_exif_orientation(exif, bytes) : 0;
}

static hp_status read_head(hp_reader *r, hp_error *err) {
    png *p = r->self;
    rewind(p->file);
    png_init_io(p->png, p->file);
    png_set_user_limits(p->png, HP_MAX_SIDE, HP_MAX_SIDE);
    png_read_info(p->png, p->info);
    const int type = png_get_color_type(p->png, p->info), bits = png_get_bit_depth(p->png, p->info);
    if (r->o.mask && (bits > 8 || (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE)))
        return hp_fail(err, HP_EDATA, "%s: a mask of %d-bit %s; make it 8-bit grey, one class per value",
                       r->path, bits, type & PNG_COLOR_MASK_COLOR ? "colour" : "grey or with alpha");
    const bool colour = !r->o.mask && type & PNG_COLOR_MASK_COLOR;
    hp_stored_image s = {.h = png_get_image_height(p->png, p->info),
                         .w = png_get_image_width(p->png, p->info),
                         .type = bits == 16 ? HP_SAMPLE_U16 : HP_SAMPLE_U8,
                         .colour = colour ? 3 : 1,
                         .said = r->o.mask ? 0 : said_of(p),
                         .position = position_of(p)};
    s.bands = s.colour + (s.said & HP_SAID_ALPHA ? 1 : 0);
    return hp_reader_stores(r, &s, err);
}

/* Sets libpng's transformations: whole bytes, in the machine's byte order. */
static void set_transforms(hp_reader *r) {
    png *p = r->self;
    if (r->o.mask)
        png_set_packing(p->png);
    else
        png_set_expand(p->png); /* palettes to RGB, small grey levels to 8 bits, tRNS to alpha */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (r->kept.type == HP_SAMPLE_U16) png_set_swap(p->png);
#endif
    p->interlaced = png_set_interlace_handling(p->png) > 1;
    png_read_update_info(p->png, p->info);
}

static hp_status begin(hp_reader *r, const step *s, hp_error *err) {
    (void)s;
    return read_head(r, err);
}

static void renew(png *p) {
    png_destroy_read_struct(&p->png, &p->info, NULL);
    p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, leave, silent);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    HP_ASSERT(p->info);
}

static hp_status open_png(hp_reader *r, hp_error *err) {
    png *p = r->self = calloc(1, sizeof *p);
    HP_ASSERT(p);
    p->next = -1;
    p->file = fopen(r->path, "rbe");
    if (!p->file)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", r->path,
                       strerror(errno));
    renew(p);
    return guarded(r, &(step){.run = begin}, err);
}

/* --- rows --- */

/* Bytes per pixel of the file, with all bands. */
static size_t pixel_bytes(const hp_reader *r) {
    return hp_pixel_bytes(r->bands, r->kept.type);
}

static hp_status no_memory(const hp_reader *r, hp_error *err) {
    return hp_fail(err, HP_EDATA, "%s: no memory to decode it", r->path);
}

/* Reads the header again, because the file may have changed. */
static hp_status restart(hp_reader *r, hp_error *err) {
    png *p = r->self;
    const hp_pixels was = hp_reader_size(r);
    const int32_t bands = r->bands;
    renew(p);
    p->next = -1;
    HP_TRY(read_head(r, err));
    set_transforms(r);
    if (!hp_reader_is_still(r, &was, bands)) {
        return hp_fail(err, HP_EDATA, "%s: changed while it was read; leave the data alone during a run",
                       r->path);
    }
    const size_t bytes = png_get_rowbytes(p->png, p->info);
    HP_ASSERT(bytes == (size_t)was.w * pixel_bytes(r));
    if (!p->row) p->row = malloc(bytes);
    if (!p->row) return no_memory(r, err);
    p->next = 0;
    return HP_OK;
}

static hp_status read_interlaced(hp_reader *r, hp_error *err) {
    png *p = r->self;
    const hp_pixels size = hp_reader_size(r);
    const size_t bytes = (size_t)size.w * pixel_bytes(r);
    if ((int64_t)size.h * size.w > HP_MAX_PIXELS || (size_t)size.h * bytes > HP_MAX_BYTES)
        return hp_fail(err, HP_EDATA,
                       "%s: interlaced, so read whole, and more than %d pixels or %d bytes; save it plain",
                       r->path, (int)HP_MAX_PIXELS, (int)HP_MAX_BYTES);
    if (!p->whole) p->whole = malloc((size_t)size.h * bytes);
    if (!p->whole) return no_memory(r, err);
    r->decoder_bytes = (size_t)size.h * bytes;
    p->next = -1; /* stays -1 unless the whole image gets decoded */
    for (int pass = 0; pass < 7; pass++)
        for (int32_t y = 0; y < size.h; y++) {
            hp_pulse_beat(&r->o.pulse);
            png_read_row(p->png, p->whole + (size_t)y * bytes, NULL);
        }
    png_read_end(p->png, NULL);
    p->next = size.h;
    return HP_OK;
}

/* Reads the file's next row, as far as the end of the part. */
static const uint8_t *next_row(const hp_reader *r, int32_t y) {
    png *p = r->self;
    if (p->interlaced) return p->whole + (size_t)y * (size_t)r->kept.w * pixel_bytes(r);
    hp_pulse_beat(&r->o.pulse);
    png_read_row(p->png, p->row, NULL);
    p->next = y + 1;
    return p->row;
}

static hp_status decode(hp_reader *r, const step *s, hp_error *err) {
    png *p = r->self;
    const hp_crop *part = s->part;
    const size_t n = (size_t)hp_crop_columns(part), to = n * hp_pixel_bytes(r->kept.c, r->kept.type);
    if (p->next < 0 || (p->next > part->y0 && !p->interlaced)) HP_TRY(restart(r, err));
    if (p->interlaced && p->next == 0) HP_TRY(read_interlaced(r, err));
    for (int32_t y = p->interlaced ? part->y0 : p->next; y < part->y1; y++) {
        const uint8_t *row = next_row(r, y);
        if (y >= part->y0)
            hp_reader_pick(r, row + (size_t)part->x0 * pixel_bytes(r), n,
                           s->px + (size_t)(y - part->y0) * to);
    }
    if (p->interlaced || part->y1 < r->kept.h) return HP_OK;
    p->next = -1;
    png_read_end(p->png, NULL); /* verifies the checksums of the last chunks */
    return HP_OK;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    return guarded(r, &(step){decode, part, px}, err);
}

static void close_png(hp_reader *r) {
    png *p = r->self;
    if (!p) return;
    png_destroy_read_struct(&p->png, &p->info, NULL);
    if (p->file) fclose(p->file);
    free(p->row);
    free(p->whole);
    free(p);
}

const hp_reader_kind hp_reader_png = {.forward = true, .open = open_png, .rows = rows, .close = close_png};
