/* reader.h - an image file kept open and read window by window: PNG, JPEG, TIFF, slides.
 *
 * A rank wants a tile of an image; a program of streamed tiles goes through one from top to bottom in strips
 * that overlap. A reader keeps its decoder's place and the pixels of the last window, so that such a pass
 * decodes every row once. Going back up starts PNG and JPEG again from their first row, as does asking for
 * columns that the rows before were not asked for.
 *
 * Memory: the last window; one row of strips or tiles across it at four bytes a pixel (TIFF, slides); of
 * interlaced PNG and progressive JPEG, which come row by row only at their end, the whole image, at most
 * HP_MAX_PIXELS. */
#ifndef HP_READER_H
#define HP_READER_H

#include "exec/data/image/image.h"

typedef struct hp_reader hp_reader;

typedef struct hp_reader_options {
    bool mask;     /* the numbers stored in a PNG, as hp_mask_read */
    bool slide;    /* through OpenSlide whatever the name says, so that `level` may be chosen */
    int32_t level; /* of a slide; 0 is the largest */
} hp_reader_options;

/* By the name's end a slide (OpenSlide's formats but TIFF), else by its first bytes PNG, JPEG or TIFF (first
 * page), 8 or 16 bits a channel (16 become 8). c is 1 for grey files and 3 for all others; an alpha channel
 * is dropped, of slides laid over their background. NULL options: all zero. Errors: HP_EDATA with path,
 * reason and fix; HP_EUNAVAIL for a slide in a build without OpenSlide. */
hp_status hp_reader_open(const char *path, const hp_reader_options *o, hp_reader **r, hp_error *err);
void hp_reader_close(hp_reader *r); /* NULL is fine */

/* h, w and c. */
hp_pixels hp_reader_size(const hp_reader *r);

/* Pixels of at least that window (NULL: all), lent until the next call. Errors: HP_EDATA (damaged, more than
 * HP_MAX_PIXELS, not within the image). */
hp_status hp_reader_window(hp_reader *r, const hp_crop *window, hp_pixels *view, hp_error *err);

/* Bytes of pixels that it holds now. */
size_t hp_reader_bytes(const hp_reader *r);

/* Do rows come one after another from the top, so that going back costs all rows above? */
bool hp_reader_forward(const hp_reader *r);

/* The smallest level that is not scaled down by more than `shrink` from this reader's; 0 where there are no
 * levels. */
int32_t hp_reader_level(const hp_reader *r, double shrink);

/* Is this the name of a slide? */
bool hp_slide_name(const char *name);

#endif
