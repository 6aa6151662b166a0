/* image_jpeg.c - JPEG through libjpeg. Its error exit jumps back into decode() and nowhere else; a file that
 * ends early or has damaged codes is an error here, where libjpeg by itself would fill the rest with grey. */
#include "exec/data/image.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

typedef struct job {
    const hp_decode_job *j;
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr mgr;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    FILE *file;
    uint8_t *row;
    hp_status status;
} job;

static void leave(j_common_ptr d) {
    job *p = (job *)((char *)d - offsetof(job, d));
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

static hp_status read_head(job *p) {
    const hp_decode_job *j = p->j;
    jpeg_stdio_src(&p->d, p->file);
    jpeg_read_header(&p->d, TRUE);
    if (p->d.jpeg_color_space == JCS_CMYK || p->d.jpeg_color_space == JCS_YCCK)
        return hp_fail(j->err, HP_EDATA, "%s: JPEG in CMYK; convert it to RGB", j->path);
    const bool grey = p->d.jpeg_color_space == JCS_GRAYSCALE;
    p->d.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    return hp_image_sizes(j->image, p->d.image_height, p->d.image_width, grey ? 1 : 3, j->path, j->err);
}

/* Rows above the window are decoded and dropped, those below are not read: cutting within libjpeg would
 * change pixels at the cut, where colour is interpolated. */
static void read_rows(job *p) {
    hp_image *image = p->j->image;
    jpeg_start_decompress(&p->d);
    for (int32_t y = 0; y < image->window.y1; y++) {
        JSAMPROW row = p->row;
        jpeg_read_scanlines(&p->d, &row, 1);
        hp_image_keep(image, y, p->row);
    }
    if (image->window.y1 == image->h)
        jpeg_finish_decompress(&p->d);
    else
        jpeg_abort_decompress(&p->d);
}

static hp_status read_file(job *p) {
    const hp_decode_job *j = p->j;
    HP_TRY(read_head(p));
    if (j->what == HP_DECODE_HEAD) return HP_OK;
    HP_TRY(hp_image_room(j->image, j->window, j->path, j->err));
    p->row = malloc((size_t)j->image->w * (size_t)j->image->c);
    if (!p->row) return hp_fail(j->err, HP_EDATA, "%s: no memory to decode it", j->path);
    read_rows(p);
    return HP_OK;
}

static void decode(job *p) {
    p->d.err = jpeg_std_error(&p->mgr);
    p->mgr.error_exit = leave;
    p->mgr.emit_message = emit;
    p->mgr.output_message = silent;
    if (setjmp(p->escape)) {
        p->status = hp_fail(p->j->err, HP_EDATA, "%s: libjpeg: %s; replace the file", p->j->path, p->text);
    } else {
        jpeg_create_decompress(&p->d);
        p->status = read_file(p);
    }
    jpeg_destroy_decompress(&p->d);
    free(p->row);
}

hp_status hp_decode_jpeg(const hp_decode_job *j) {
    job p = {.j = j, .file = fopen(j->path, "rbe")};
    if (!p.file)
        return hp_fail(j->err, HP_EDATA, "cannot open %s: %s; check its permissions", j->path,
                       strerror(errno));
    decode(&p);
    fclose(p.file);
    return p.status;
}
