/* output.h - what inference gives, in a file: logits of classes or maps by the name's end.
 *
 *     .npy    NumPy: (N, C) where the maps are 1 x 1, else (N, H, W, C)
 *     .json   {"schema":1,"shape":[...],"logits":[[...],...]}: nested as the shape says; no number: null
 *     .tif    maps: tiles of 256 x 256, a page per sample, BigTIFF when large
 *     .bin    the numbers alone, little-endian
 *
 * Numbers are float32, or with `classes` the index of the largest logit, uint8, and the shape loses C; 255
 * where the first logit is no number.
 *
 * Boxes arrive in any order and from any rank. All ranks write into one file, PATH.part, at the places where
 * their boxes lie, so that no rank holds more than its own; the finished file gets its name at the very end.
 * Who calls what:
 *
 *     rank 0    hp_output_create             before the others: agree on its status
 *     others    hp_output_join               agree
 *     all       hp_output_put ...            those that have results
 *     all       hp_output_close              agree: all is written
 *     rank 0    hp_output_finish             PATH is there, whole; PATH.part is not
 *     rank 0    hp_output_discard            instead, when any rank failed
 *
 * The folder must be one that all ranks' nodes share. */
#ifndef HP_OUTPUT_H
#define HP_OUTPUT_H

#include "plan/base/status.h"
#include "plan/tiles/tile.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hp_output_spec {
    const char *path;
    int64_t n;       /* samples */
    int32_t h, w, c; /* of the logits */
    bool classes;    /* keep the most likely class of every pixel instead */
} hp_output_spec;

typedef struct hp_output hp_output;

/* Can this be written under this name? Touches no file. Errors: HP_EUSAGE with the fix. */
hp_status hp_output_check(const hp_output_spec *s, hp_error *err);

/* Makes PATH.part with room for everything, zeros so far. Collective: no. Errors: hp_output_check's,
 * HP_ECREATE, HP_EIO (no space). */
hp_status hp_output_create(const hp_output_spec *s, hp_output **o, hp_error *err);
/* Opens what rank 0 made. Errors: HP_ECREATE (not there: another node's folder?). */
hp_status hp_output_join(const hp_output_spec *s, hp_output **o, hp_error *err);

/* Logits of `box`, dense; samples of the box are counted over the whole output. With `classes` the box holds
 * all channels. Collective: no. Errors: HP_EIO. */
hp_status hp_output_put(hp_output *o, const hp_box *box, const float *data, hp_error *err);

/* Ends this rank's part; o is gone whatever the status. NULL is fine. Errors: HP_EIO. */
hp_status hp_output_close(hp_output *o, hp_error *err);

/* Once all ranks have closed: converts PATH.part and renames the result to PATH; on an error removes both.
 * Memory: at most about 64 MB, or one tile of a TIFF. Errors: HP_ECREATE, HP_EIO. */
hp_status hp_output_finish(const hp_output_spec *s, hp_error *err);
/* Removes PATH.part. */
void hp_output_discard(const hp_output_spec *s);

#endif
