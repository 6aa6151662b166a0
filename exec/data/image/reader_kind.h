/* reader_kind.h - the interface that an image format implements; private to exec/data. */
#ifndef HP_READER_KIND_H
#define HP_READER_KIND_H

#include "exec/data/image/reader.h"

/* What a file stores, as found by its format's reader. */
typedef struct hp_stored_image {
    int64_t h, w;       /* size as stored */
    hp_pixel_type type; /* type to which the format's reader converts samples */
    int32_t bands;      /* samples per pixel */
    int32_t colour;     /* number of leading bands that are colour: 1 grey, 3 RGB */
    uint32_t said;      /* HP_SAID_ bits of what a reader changes or leaves out */
    int32_t position;   /* Orientation of Exif or TIFF, 1 to 8; 0: upright */
} hp_stored_image;

typedef struct hp_reader_kind {
    bool forward; /* becomes the reader's */
    /* Reports what is stored (hp_reader_stores) and sets self; close is called even after an error. */
    hp_status (*open)(hp_reader *r, hp_error *err);
    /* Reads rows and columns of `part`, dense. May be called again after an error. */
    hp_status (*rows)(hp_reader *r, const hp_crop *part, uint8_t *px, hp_error *err);
    int32_t (*level)(const hp_reader *r, double shrink); /* NULL: no levels */
    void (*close)(hp_reader *r);                         /* self may be NULL */
} hp_reader_kind;

struct hp_reader {
    const hp_reader_kind *kind;
    char *path;
    hp_reader_options o;
    bool forward;  /* see hp_reader_is_sequential */
    hp_image kept; /* the last window */
    int32_t bands; /* in the file; kept.c of them are read: */
    int32_t pick[HP_MAX_BANDS];
    uint32_t said;        /* see hp_reader_said */
    int32_t position;     /* Orientation still to be undone, as in hp_stored_image */
    size_t decoder_bytes; /* additional bytes of pixels that the decoder holds */
    void *self;
};

/* image_layout.c: sets size and type of `kept`, and selects the bands to read. These are the bands that the
 * options name; else all, if the network takes as many; else the colour, leaving out one other band. Errors:
 * HP_EDATA with the number of bands and the fix. */
hp_status hp_reader_stores(hp_reader *r, const hp_stored_image *s, hp_error *err);
/* After reading the head again: does the file still have that size, type and number of bands? If not,
 * restores the old ones. */
bool hp_reader_is_still(hp_reader *r, const hp_pixels *was, int32_t bands);
/* Copies the bands that are read from n pixels with all bands, dense. */
void hp_reader_pick(const hp_reader *r, const void *pixels, size_t n, void *to);

/* turned.c: a reader that turns `r` upright; takes it over. */
hp_reader *hp_reader_upright(hp_reader *r);

/* exif.c: Orientation of Exif data, from its TIFF header on; 0: none. */
int32_t hp_exif_orientation(const uint8_t *exif, size_t bytes);

extern const hp_reader_kind hp_reader_png, hp_reader_jpeg, hp_reader_tiff, hp_reader_slide, hp_reader_decoded;

#endif
