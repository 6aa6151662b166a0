/* image_png.c - PNG through libpng, row by row. Its error exit jumps back into decode() and nowhere else.
 *
 * Pixels: every PNG type becomes 8-bit grey or RGB; gamma chunks are not applied, as Pillow does not. Masks:
 * the stored numbers, which are grey levels or palette entries. */
#include "exec/data/image.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <string.h>

typedef struct job {
    const hp_decode_job *j;
    png_structp png;
    png_infop info;
    FILE *file;
    jmp_buf escape;
    char text[160];
    uint8_t *rows; /* one row, or all of an interlaced file */
    bool mask, interlaced;
    hp_status status;
} job;

static void leave(png_structp png, png_const_charp text) {
    job *p = png_get_error_ptr(png);
    snprintf(p->text, sizeof p->text, "%s", text);
    longjmp(p->escape, 1);
}

static void silent(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static hp_status read_head(job *p) {
    const hp_decode_job *j = p->j;
    png_init_io(p->png, p->file);
    png_read_info(p->png, p->info);
    const int type = png_get_color_type(p->png, p->info), bits = png_get_bit_depth(p->png, p->info);
    p->mask = j->what == HP_DECODE_MASK || j->what == HP_DECODE_MASK_HEAD;
    if (p->mask && (bits > 8 || (type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE)))
        return hp_fail(j->err, HP_EDATA, "%s: a mask of %d-bit %s; make it 8-bit grey, one class per value",
                       j->path, bits, type & PNG_COLOR_MASK_COLOR ? "colour" : "grey or with alpha");
    const int c = !p->mask && type & PNG_COLOR_MASK_COLOR ? 3 : 1;
    return hp_image_sizes(j->image, png_get_image_height(p->png, p->info),
                          png_get_image_width(p->png, p->info), c, j->path, j->err);
}

/* What libpng is to make of the file's rows: one byte per channel. */
static void set_transforms(job *p) {
    if (p->mask) {
        png_set_packing(p->png);
    } else {
        png_set_scale_16(p->png); /* 16-bit samples are the 8-bit ones with more digits */
        png_set_palette_to_rgb(p->png);
        if (png_get_color_type(p->png, p->info) == PNG_COLOR_TYPE_GRAY)
            png_set_expand_gray_1_2_4_to_8(p->png);
        png_set_strip_alpha(p->png);
    }
    p->interlaced = png_set_interlace_handling(p->png) > 1;
    png_read_update_info(p->png, p->info);
}

static hp_status read_interlaced(job *p, size_t bytes) {
    hp_image *image = p->j->image;
    if ((int64_t)image->h * image->w > HP_MAX_PIXELS)
        return hp_fail(p->j->err, HP_EDATA,
                       "%s: interlaced, so read whole, and more than %d pixels; save it plain", p->j->path,
                       (int)HP_MAX_PIXELS);
    p->rows = malloc((size_t)image->h * bytes);
    if (!p->rows) return hp_fail(p->j->err, HP_EDATA, "%s: no memory to decode it", p->j->path);
    for (int pass = 0; pass < 7; pass++)
        for (int32_t y = 0; y < image->h; y++) png_read_row(p->png, p->rows + (size_t)y * bytes, NULL);
    for (int32_t y = 0; y < image->h; y++) hp_image_keep(image, y, p->rows + (size_t)y * bytes);
    return HP_OK;
}

static hp_status read_rows(job *p, size_t bytes) {
    hp_image *image = p->j->image;
    p->rows = malloc(bytes);
    if (!p->rows) return hp_fail(p->j->err, HP_EDATA, "%s: no memory to decode it", p->j->path);
    for (int32_t y = 0; y < image->window.y1; y++) {
        png_read_row(p->png, p->rows, NULL);
        hp_image_keep(image, y, p->rows);
    }
    return HP_OK;
}

static hp_status read_file(job *p) {
    const hp_decode_job *j = p->j;
    HP_TRY(read_head(p));
    if (j->what == HP_DECODE_HEAD || j->what == HP_DECODE_MASK_HEAD) return HP_OK;
    HP_TRY(hp_image_room(j->image, j->window, j->path, j->err));
    set_transforms(p);
    const size_t bytes = png_get_rowbytes(p->png, p->info);
    HP_ASSERT(bytes == (size_t)j->image->w * (size_t)j->image->c);
    HP_TRY(p->interlaced ? read_interlaced(p, bytes) : read_rows(p, bytes));
    if (j->image->window.y1 == j->image->h) png_read_end(p->png, NULL); /* the checksums of the last chunks */
    return HP_OK;
}

static void decode(job *p) {
    p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, leave, silent);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    HP_ASSERT(p->info);
    if (setjmp(p->escape))
        p->status = hp_fail(p->j->err, HP_EDATA, "%s: libpng: %s; replace the file", p->j->path, p->text);
    else
        p->status = read_file(p);
    png_destroy_read_struct(&p->png, &p->info, NULL);
    free(p->rows);
}

hp_status hp_decode_png(const hp_decode_job *j) {
    job p = {.j = j, .file = fopen(j->path, "rbe")};
    if (!p.file)
        return hp_fail(j->err, HP_EDATA, "cannot open %s: %s; check the path and its permissions", j->path,
                       strerror(errno));
    decode(&p);
    fclose(p.file);
    return p.status;
}
