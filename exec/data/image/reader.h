/* reader.h - an image file kept open and read window by window: PNG, JPEG, TIFF, slides.
 *
 * A rank needs a tile of an image; a program of streamed tiles reads an image from top to bottom in
 * overlapping strips. A reader keeps its decoder's position and the pixels of the last window, so that such a
 * pass decodes every row once. Moving up restarts PNG and JPEG at their first row; so does reading columns
 * that the last window did not have.
 *
 * Memory: the last window; one row of strips or tiles across it (TIFF, slides). Interlaced PNG and
 * progressive JPEG, whose rows are complete only at the end, and images that must be turned need the whole
 * image: at most HP_MAX_PIXELS and HP_MAX_BYTES. */
#ifndef HP_READER_H
#define HP_READER_H

#include "exec/data/image/decoder.h"
#include "exec/data/image/image.h"
#include "exec/data/image/pulse.h"

typedef struct hp_reader hp_reader;

typedef struct hp_reader_options {
    bool mask;  /* the stored values of a PNG of at most 8-bit grey levels, or of palette indices; c is 1 */
    bool slide; /* through OpenSlide for any name, so that `level` can be chosen */
    int32_t level;       /* level of a slide; 0 is the largest */
    hp_pulse pulse;      /* with every row, or piece that is decoded at once */
    hp_decoder *decoder; /* that reads the file (decoder.h); NULL: this process */
    int32_t channels; /* that the network takes, which decides what of many bands is read; 0: nobody knows */
    int32_t n_band;   /* --bands: only these are read, in this order; 0: see hp_reader_open */
    int32_t band[HP_MAX_BANDS]; /* from 1 on */
} hp_reader_options;

/* What a reader changes or leaves out: bits of hp_reader_said. */
enum {
    HP_SAID_ALPHA = 1 << 0,      /* alpha is left out */
    HP_SAID_MULTIPLIED = 1 << 1, /* colours stay multiplied by the alpha (TIFF's associated alpha) */
    HP_SAID_BAND = 1 << 2,       /* a band beside the colour is left out */
    HP_SAID_PROFILE = 1 << 3,    /* a colour profile is not applied */
    HP_SAID_TURNED = 1 << 4,     /* turned or mirrored, as the file wants it */
    HP_SAID_PAGES = 1 << 5,      /* pages after the first are ignored */
    HP_SAID_SCALED = 1 << 6,     /* integers became floats, divided by their largest value */
    HP_SAID_CONVERTED = 1 << 7,  /* another colour space became 8-bit RGB */
    HP_SAID_ROUNDED = 1 << 8,    /* 64-bit floats, or 32-bit integers, became 32-bit floats */
    HP_SAID_ALL = (1 << 9) - 1
};

/* Opens an image file. A slide's suffix (OpenSlide's formats except TIFF) selects its format; otherwise the
 * first bytes do: PNG, JPEG or TIFF (first page). Samples are as wide as in the file (image_samples.h). c is
 * the number of bands that are read (reader_kind.h); slides' alpha is blended over their background. NULL
 * options: all zero. Errors: HP_EDATA with path, reason and fix; HP_EUNAVAIL for a slide in a build without
 * OpenSlide; the decoder's, here and with every window. */
hp_status hp_reader_open(const char *path, const hp_reader_options *o, hp_reader **r, hp_error *err);
void hp_reader_close(hp_reader *r); /* NULL is fine */

/* HP_SAID_ bits of the open file. */
uint32_t hp_reader_said(const hp_reader *r);
/* Number of bands in the file. */
int32_t hp_reader_bands(const hp_reader *r);

/* h, w, c and type. */
hp_pixels hp_reader_size(const hp_reader *r);

/* Pixels covering at least the window (NULL: all), valid until the next call. Errors: HP_EDATA (damaged, more
 * than HP_MAX_PIXELS, not within the image). */
hp_status hp_reader_window(hp_reader *r, const hp_crop *window, hp_pixels *view, hp_error *err);

/* Bytes of pixels held now. */
size_t hp_reader_bytes(const hp_reader *r);

/* Is the file decoded row by row from the top, so that moving up decodes all rows above again? */
bool hp_reader_is_sequential(const hp_reader *r);

/* The smallest level scaled down by at most `shrink` relative to this reader's; 0 if the
 * file has no levels. */
int32_t hp_reader_level(const hp_reader *r, double shrink);

#endif
