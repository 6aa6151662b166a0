/* dataset.h - labelled images by name: --data
 * synthetic|fashion-mnist|DIR|FILE[,FILE]...|slide:FILE|patches:FILE.
 *
 * DIR holds IDX files ({train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, plain or .gz), class folders
 * ({train,test}/CLASS/ with PNG, JPEG, TIFF), or images with masks ({train,test}/{images,masks}/, a mask
 * masks/NAME.png for every images/NAME.png|jpg|tif: class numbers, 255 = not to be counted). FILE is an IDX
 * images file with its labels beside it (whatever the split), or one image without a label, or several (test
 * split only: inference). slide:FILE[,level=N] is one that OpenSlide reads, patches:FILE[,KEY=NUMBER]... the
 * patches of one (slide/dataset.c).
 *
 * Every kind gives 8-bit pixels; from there all go one way: bilinear resize when the sizes differ, channels,
 * x/255, (v - mean) / std. Masks are resized to the nearest pixel. Whatever box of a sample is asked for, its
 * values are those of the whole sample's, and no more of the image is kept than the box needs. Opening and
 * reading never write anything, so that any number of ranks may share the files. */
#ifndef HP_DATASET_H
#define HP_DATASET_H

#include "plan/base/status.h"
#include "plan/program/program.h"
#include "plan/tiles/tile.h"

#include <stdint.h>

typedef struct hp_dataset hp_dataset;

typedef enum hp_split { HP_SPLIT_TRAIN, HP_SPLIT_TEST } hp_split;

enum { HP_DATA_CHANNELS = 4 /* most channels of an image */ };
enum { HP_LABEL_IGNORED = -1 /* the label of what has none */ };

typedef struct hp_data_options {
    const char *name;                  /* --data */
    int32_t split;                     /* hp_split */
    int32_t image_h, image_w, image_c; /* what the network takes */
    int32_t label_h, label_w;          /* the map of its logits: 1 x 1 for a class per image */
    int32_t classes;                   /* labels lie in [0, classes) */
    int32_t channels; /* --channels: 0 as the file has them, 1 to grey first, 3 colour; then to image_c */
    int32_t resize;   /* --resize S: shorter side to S, then the centre; 0: straight to image_h x image_w */
    double mean[HP_DATA_CHANNELS], std[HP_DATA_CHANNELS];
    uint64_t seed; /* of synthetic images */
} hp_data_options;

/* mean = std = 0.5, a class per image, everything else zero. */
hp_data_options hp_data_options_default(void);

/* One number for all channels, or a list with commas, one per channel: "0.485,0.456,0.406". `what` names the
 * option. Errors: HP_EUSAGE. */
hp_status hp_data_parse_channels(const char *text, const char *what, double value[HP_DATA_CHANNELS],
                                 hp_error *err);

/* Opens the data; IDX files are read into memory here, image files when they are asked for.
 * Errors: HP_EDATA with file, reason and fix (also where the data have a class per image and the network
 * wants one per pixel, or the other way round); HP_EUSAGE for a std of 0 or more channels than
 * HP_DATA_CHANNELS. */
hp_status hp_dataset_open(const hp_data_options *o, hp_dataset **d, hp_error *err);

int64_t hp_dataset_count(const hp_dataset *d);

/* Does a single image become the network's by stretching: no --resize, and another ratio of its sides, more
 * than rounding to whole pixels makes? h, w: its size. */
bool hp_dataset_stretches(hp_dataset *d, int32_t *h, int32_t *w);

/* Where the samples of patches:IMAGE lie in it, and how many fit; NULL: samples are no patches. */
struct hp_patches;
const struct hp_patches *hp_dataset_patches(const hp_dataset *d);

/* Rows, columns and channels of `box` of sample `index` in [0, count), to x, dense (the box's samples do not
 * matter). Errors: HP_EDATA (the file cannot be decoded). */
hp_status hp_dataset_pixels(hp_dataset *d, int64_t index, const hp_box *box, float *x, hp_error *err);

/* The same before normalisation: 8 bits, after resizing and with the network's channels. */
hp_status hp_dataset_bytes(hp_dataset *d, int64_t index, const hp_box *box, uint8_t *px, hp_error *err);

/* Either, by the type of x: HP_F32, HP_F64 (the same values) or HP_U8 (bytes). */
hp_status hp_dataset_read(hp_dataset *d, int64_t index, const hp_box *box, hp_dtype dtype, void *x,
                          hp_error *err);

/* Labels of the sample: one (whatever the box), or a map's rows and columns of `box`. Each in [0, classes),
 * or HP_LABEL_IGNORED. Costs no decoding of the image. Errors: HP_EDATA. */
hp_status hp_dataset_labels(hp_dataset *d, int64_t index, const hp_box *box, int32_t *label, hp_error *err);

/* Labels of one sample in `box`. */
int64_t hp_dataset_label_count(const hp_dataset *d, const hp_box *box);

void hp_dataset_close(hp_dataset *d); /* NULL is fine */

#endif
