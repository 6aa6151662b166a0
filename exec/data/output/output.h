/* output.h - writes the results of inference to a file: logits of classes or maps, in the format of
 * the name's suffix.
 *
 *     .npy    NumPy: (N, C) for 1 x 1 maps, else (N, H, W, C)
 *     .json   {"schema":1,"shape":[...],"logits":[[...],...]}: nested according to the shape; NaN: null
 *     .tif    maps: tiles of 256 x 256, one page per sample, BigTIFF when large
 *     .bin    only the numbers, little-endian
 *
 * Numbers are float32. With `classes` they are uint8, the index of the largest logit, or 255 where the first
 * logit is NaN; the shape then has no C.
 *
 * Boxes arrive in any order and from any rank. All ranks write to one file, PATH.part, each at the
 * positions of its boxes, so no rank holds more than its own. The file gets its final name at the very
 * end. Order of calls:
 *
 *     rank 0    hp_output_create             first; ranks then agree on its status
 *     others    hp_output_join               agree
 *     all       hp_output_write ...            those that have results
 *     all       hp_output_close              agree: all is written
 *     rank 0    hp_output_finish             PATH is complete; PATH.part is removed
 *     rank 0    hp_output_discard            instead, when any rank failed
 *
 * All ranks' nodes must share the folder. */
#ifndef HP_OUTPUT_H
#define HP_OUTPUT_H

#include "base/status.h"
#include "plan/tiles/tile.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_output_spec {
    const char *path;
    int64_t n;       /* samples */
    int32_t h, w, c; /* size of the logits */
    bool classes;    /* store the most likely class of every pixel instead */
} hp_output_spec;

typedef struct hp_output hp_output;

/* Creates PATH.part, filled with zeros, with its full size reserved, and locks out other runs. Collective:
 * no. Errors: HP_EUSAGE with the fix, HP_ECREATE (PATH is a folder or a device; PATH.part is a link, or
 * another run's), HP_EIO (no space). */
hp_status hp_output_create(const hp_output_spec *s, hp_output **o, hp_error *err);
/* Opens the file that rank 0 created. Errors: HP_ECREATE (not found: is the folder shared between nodes?). */
hp_status hp_output_join(const hp_output_spec *s, hp_output **o, hp_error *err);

/* Writes the logits of `box`, dense; its samples are indices into the whole output. With `classes` the box
 * contains all channels. Collective: no. Errors: HP_EIO. */
hp_status hp_output_write(hp_output *o, const hp_box *box, const float *data, hp_error *err);

/* Closes this rank's handle and frees o, whatever the status. Accepts NULL. Errors: HP_EIO. */
hp_status hp_output_close(hp_output *o, hp_error *err);

/* Converts PATH.part and renames the result to PATH; on an error removes both. Call after all ranks have
 * closed. Memory: at most about 64 MB, or one tile of a TIFF. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_output_finish(const hp_output_spec *s, hp_error *err);
/* Removes PATH.part. */
void hp_output_discard(const hp_output_spec *s);

#endif
