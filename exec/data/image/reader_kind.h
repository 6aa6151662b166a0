/* reader_kind.h - the interface that an image format implements; private to exec/data. */
#ifndef HP_READER_KIND_H
#define HP_READER_KIND_H

#include "exec/data/image/reader.h"

typedef struct hp_reader_kind {
    bool forward; /* becomes the reader's */
    /* Sets the sizes (hp_image_sizes of `kept`) and self; close is called even after an error. */
    hp_status (*open)(hp_reader *r, hp_error *err);
    /* Rows and columns of `part`, dense. May be called again after an error. */
    hp_status (*rows)(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err);
    int32_t (*level)(const hp_reader *r, double shrink); /* NULL: no levels */
    void (*close)(hp_reader *r);                         /* self may be NULL */
} hp_reader_kind;

struct hp_reader {
    const hp_reader_kind *kind;
    char *path;
    hp_reader_options o;
    bool forward;         /* see hp_reader_is_sequential */
    hp_image kept;        /* the last window */
    size_t decoder_bytes; /* bytes of pixels that the decoder holds in addition */
    void *self;
};

extern const hp_reader_kind hp_reader_png, hp_reader_jpeg, hp_reader_tiff, hp_reader_slide, hp_reader_decoded;

#endif
