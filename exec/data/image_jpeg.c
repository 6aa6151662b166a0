/* image_jpeg.c - JPEG through libjpeg. Its error exit jumps back into decode() and nowhere else; a file that
 * ends early or has damaged codes is an error here, where libjpeg by itself would fill the rest with grey. */
#include "exec/data/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

typedef struct job {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr mgr;
    jmp_buf escape;
    char text[JMSG_LENGTH_MAX];
    const char *path;
    FILE *file;
    hp_image *image;
    hp_error *err;
    hp_status status;
} job;

static void leave(j_common_ptr d) {
    job *j = (job *)((char *)d - offsetof(job, d));
    d->err->format_message(d, j->text);
    longjmp(j->escape, 1);
}

static void emit(j_common_ptr d, int level) {
    const int code = d->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        leave(d);
}

static void silent(j_common_ptr d) {
    (void)d;
}

static hp_status read_rows(job *j) {
    struct jpeg_decompress_struct *d = &j->d;
    jpeg_stdio_src(d, j->file);
    jpeg_read_header(d, TRUE);
    if (d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK)
        return hp_fail(j->err, HP_EDATA, "%s: JPEG in CMYK; convert it to RGB", j->path);
    const bool grey = d->jpeg_color_space == JCS_GRAYSCALE;
    d->out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    HP_TRY(hp_image_room(j->image, d->image_height, d->image_width, grey ? 1 : 3, j->path, j->err));
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = j->image->px + (size_t)d->output_scanline * (size_t)j->image->w * (size_t)j->image->c;
        jpeg_read_scanlines(d, &row, 1);
    }
    jpeg_finish_decompress(d);
    return HP_OK;
}

static void decode(job *j) {
    j->d.err = jpeg_std_error(&j->mgr);
    j->mgr.error_exit = leave;
    j->mgr.emit_message = emit;
    j->mgr.output_message = silent;
    if (setjmp(j->escape)) {
        j->status = hp_fail(j->err, HP_EDATA, "%s: libjpeg: %s; replace the file", j->path, j->text);
    } else {
        jpeg_create_decompress(&j->d);
        j->status = read_rows(j);
    }
    jpeg_destroy_decompress(&j->d);
}

hp_status hp_image_read_jpeg(const char *path, hp_image *image, hp_error *err) {
    job j = {.path = path, .image = image, .err = err, .file = fopen(path, "rbe")};
    if (!j.file)
        return hp_fail(err, HP_EDATA, "cannot open %s: %s; check its permissions", path, strerror(errno));
    decode(&j);
    fclose(j.file);
    return j.status;
}
