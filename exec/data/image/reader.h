/* reader.h - an image file kept open and read window by window: PNG, JPEG, TIFF, slides.
 *
 * A rank needs a tile of an image; a program of streamed tiles reads an image from top to bottom in
 * overlapping strips. A reader keeps its decoder's position and the pixels of the last window, so that such a
 * pass decodes every row once. Moving up restarts PNG and JPEG from their first row, as does reading columns
 * that earlier rows were not read with.
 *
 * Memory: the last window; one row of strips or tiles across it at four bytes per pixel (TIFF, slides); for
 * interlaced PNG and progressive JPEG, whose rows are complete only at the end, the whole image, at most
 * HP_MAX_PIXELS. */
#ifndef HP_READER_H
#define HP_READER_H

#include "exec/data/image/decoder.h"
#include "exec/data/image/image.h"
#include "exec/data/image/pulse.h"

typedef struct hp_reader hp_reader;

typedef struct hp_reader_options {
    bool mask;           /* stored values of a PNG, as hp_mask_read */
    bool slide;          /* through OpenSlide for any name, so that `level` can be chosen */
    int32_t level;       /* of a slide; 0 is the largest */
    hp_pulse pulse;      /* with every row, or piece that is decoded at once */
    hp_decoder *decoder; /* that reads the file (decoder.h); NULL: this process */
} hp_reader_options;

/* Chooses the format by the name's suffix for slides (OpenSlide's formats except TIFF), otherwise by the
 * first bytes: PNG, JPEG or TIFF (first page), 8 or 16 bits per channel (16 become 8). c is 1 for grey files
 * and 3 for all others; an alpha channel is dropped, in slides blended over their background. NULL options:
 * all zero. Errors: HP_EDATA with path, reason and fix; HP_EUNAVAIL for a slide in a build without
 * OpenSlide; the decoder's, here and with every window. */
hp_status hp_reader_open(const char *path, const hp_reader_options *o, hp_reader **r, hp_error *err);
void hp_reader_close(hp_reader *r); /* NULL is fine */

/* h, w and c. */
hp_pixels hp_reader_size(const hp_reader *r);

/* Pixels of at least that window (NULL: all), valid until the next call. Errors: HP_EDATA (damaged, more than
 * HP_MAX_PIXELS, not within the image). */
hp_status hp_reader_window(hp_reader *r, const hp_crop *window, hp_pixels *view, hp_error *err);

/* Bytes of pixels held now. */
size_t hp_reader_bytes(const hp_reader *r);

/* Is the file decoded row by row from the top, so that moving up decodes all rows above again? */
bool hp_reader_is_sequential(const hp_reader *r);

/* The smallest level that is not scaled down by more than `shrink` from this reader's; 0 if the file has no
 * levels. */
int32_t hp_reader_level(const hp_reader *r, double shrink);

/* Is this the name of a slide? */
bool hp_is_slide_name(const char *name);

#endif
