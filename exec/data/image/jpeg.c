/* jpeg.c - JPEG through libjpeg, row by row. libjpeg's error exit jumps back into guarded() and nowhere else;
 * a truncated file or corrupt codes are errors here, where libjpeg would fill the rest with grey. */
#include "exec/data/image/reader_kind.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

typedef struct jpeg {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr mgr;
    struct jpeg_progress_mgr progress;
    const hp_pulse *pulse;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    FILE *file;
    uint8_t *row;
    bool running; /* the next row is d.output_scanline */
} jpeg;

static void leave(j_common_ptr d) {
    jpeg *p = (jpeg *)((char *)d - offsetof(jpeg, d));
    d->err->format_message(d, p->text);
    longjmp(p->escape, 1);
}

static void emit(j_common_ptr d, int level) {
    const int code = d->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        leave(d);
}

static void silent(j_common_ptr d) {
    (void)d;
}

/* Called by libjpeg, also while jpeg_start_decompress reads a progressive file. */
static void progress(j_common_ptr d) {
    hp_pulse_beat(((const jpeg *)((char *)d - offsetof(jpeg, d)))->pulse);
}

/* Runs a sequence of libjpeg calls, any of which may end in the error exit. */
typedef struct step {
    hp_status (*run)(hp_reader *r, const struct step *s, hp_error *err);
    const hp_crop *part;
    uint8_t *px;
} step;

static hp_status guarded(hp_reader *r, const step *s, hp_error *err) {
    jpeg *p = r->self;
    if (setjmp(p->escape)) {
        p->running = false;
        return hp_fail(err, HP_EDATA, "%s: libjpeg: %s; replace the file", r->path, p->text);
    }
    return s->run(r, s, err);
}

/* Markers kept from the file: Exif's directory, and only the presence of a profile. */
enum { EXIF = JPEG_APP0 + 1, PROFILE = JPEG_APP0 + 2, EXIF_KEPT = 0xffff, PROFILE_KEPT = 12 };

static bool begins(jpeg_saved_marker_ptr m, int marker, const char *with, unsigned bytes) {
    return m->marker == marker && m->data_length >= bytes && memcmp(m->data, with, bytes) == 0;
}

static void read_markers(const jpeg *p, hp_stored_image *s) {
    for (jpeg_saved_marker_ptr m = p->d.marker_list; m; m = m->next) {
        if (begins(m, EXIF, "Exif\0", 6) && !s->position)
            s->position = hp_exif_orientation(m->data + 6, m->data_length - 6);
        if (begins(m, PROFILE, "ICC_PROFILE", 12)) s->said |= HP_SAID_PROFILE;
    }
}

static hp_status read_head(hp_reader *r, hp_error *err) {
    jpeg *p = r->self;
    rewind(p->file);
    jpeg_abort_decompress(&p->d);
    jpeg_stdio_src(&p->d, p->file);
    jpeg_save_markers(&p->d, EXIF, EXIF_KEPT);
    jpeg_save_markers(&p->d, PROFILE, PROFILE_KEPT);
    jpeg_read_header(&p->d, TRUE);
    if (p->d.jpeg_color_space == JCS_CMYK || p->d.jpeg_color_space == JCS_YCCK)
        return hp_fail(err, HP_EDATA, "%s: JPEG in CMYK; convert it to RGB", r->path);
    const bool grey = p->d.jpeg_color_space == JCS_GRAYSCALE;
    p->d.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    hp_stored_image s = {
        .h = p->d.image_height, .w = p->d.image_width, .colour = grey ? 1 : 3, .bands = grey ? 1 : 3};
    read_markers(p, &s);
    return hp_reader_stores(r, &s, err);
}

static hp_status begin(hp_reader *r, const step *s, hp_error *err) {
    (void)s;
    jpeg *p = r->self;
    jpeg_create_decompress(&p->d);
    p->pulse = &r->o.pulse;
    p->progress.progress_monitor = progress;
    p->d.progress = &p->progress;
    HP_TRY(read_head(r, err));
    p->row = malloc((size_t)r->kept.w * (size_t)r->bands);
    return p->row ? HP_OK : hp_fail(err, HP_EDATA, "%s: no memory to decode it", r->path);
}

static hp_status open_jpeg(hp_reader *r, hp_error *err) {
    jpeg *p = r->self = calloc(1, sizeof *p);
    HP_ASSERT(p);
    p->file = fopen(r->path, "rbe");
    if (!p->file)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check its permissions", r->path, strerror(errno));
    p->d.err = jpeg_std_error(&p->mgr);
    p->mgr.error_exit = leave;
    p->mgr.emit_message = emit;
    p->mgr.output_message = silent;
    return guarded(r, &(step){.run = begin}, err);
}

/* Reads the header again, because the file may have changed. */
static hp_status restart(hp_reader *r, hp_error *err) {
    jpeg *p = r->self;
    const hp_pixels was = hp_reader_size(r);
    const int32_t bands = r->bands;
    p->running = false;
    HP_TRY(read_head(r, err));
    if (!hp_reader_is_still(r, &was, bands)) {
        return hp_fail(err, HP_EDATA, "%s: changed while it was read; leave the data alone during a run",
                       r->path);
    }
    if (jpeg_has_multiple_scans(&p->d) && (int64_t)was.h * was.w > HP_MAX_PIXELS)
        return hp_fail(err, HP_EDATA,
                       "%s: progressive, so decoded whole, and more than %d pixels; save it as baseline JPEG",
                       r->path, (int)HP_MAX_PIXELS);
    if (jpeg_has_multiple_scans(&p->d))
        r->decoder_bytes = sizeof(JCOEF) * (size_t)was.h * (size_t)was.w * (size_t)bands;
    jpeg_start_decompress(&p->d);
    p->running = true;
    return HP_OK;
}

/* Decodes and drops rows above the part: cropping inside libjpeg would change pixels at the edge, where
 * colour is interpolated. */
static hp_status decode(hp_reader *r, const step *s, hp_error *err) {
    jpeg *p = r->self;
    const hp_crop *part = s->part;
    const size_t n = (size_t)hp_crop_columns(part), to = n * (size_t)r->kept.c;
    if (!p->running || p->d.output_scanline > (JDIMENSION)part->y0) HP_TRY(restart(r, err));
    while (p->d.output_scanline < (JDIMENSION)part->y1) {
        const int32_t y = (int32_t)p->d.output_scanline;
        JSAMPROW row = p->row;
        jpeg_read_scanlines(&p->d, &row, 1);
        if (y >= part->y0)
            hp_reader_pick(r, p->row + (size_t)part->x0 * (size_t)r->bands, n,
                           s->px + (size_t)(y - part->y0) * to);
    }
    if (part->y1 < r->kept.h) return HP_OK;
    p->running = false;
    jpeg_finish_decompress(&p->d);
    return HP_OK;
}

static hp_status rows(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err) {
    return guarded(r, &(step){decode, part, px}, err);
}

static void close_jpeg(hp_reader *r) {
    jpeg *p = r->self;
    if (!p) return;
    if (p->d.err) jpeg_destroy_decompress(&p->d);
    if (p->file) fclose(p->file);
    free(p->row);
    free(p);
}

const hp_reader_kind hp_reader_jpeg = {.forward = true, .open = open_jpeg, .rows = rows, .close = close_jpeg};
