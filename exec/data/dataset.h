/* dataset.h - labelled images by name: --data synthetic|fashion-mnist|DIR|FILE.
 *
 * DIR holds IDX files ({train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, plain or .gz) or class folders
 * ({train,test}/CLASS/ with PNG, JPEG, TIFF). FILE is an IDX images file with its labels beside it (whatever
 * the split), or one image without a label (test split only: inference).
 *
 * Every kind gives 8-bit pixels; from there all go one way: bilinear resize when the sizes differ, channels,
 * x/255, (v - mean) / std. Opening and reading never write anything, so that any number of ranks may share
 * the files. */
#ifndef HP_DATASET_H
#define HP_DATASET_H

#include "plan/base/status.h"

#include <stdint.h>

typedef struct hp_dataset hp_dataset;

typedef enum hp_split { HP_SPLIT_TRAIN, HP_SPLIT_TEST } hp_split;

enum { HP_DATA_CHANNELS = 4 /* most channels of an image */ };

typedef struct hp_data_options {
    const char *name;                  /* --data */
    int32_t split;                     /* hp_split */
    int32_t image_h, image_w, image_c; /* what the network takes */
    int32_t classes;                   /* labels lie in [0, classes) */
    int32_t channels; /* --channels: 0 as the file has them, 1 to grey first, 3 colour; then to image_c */
    int32_t resize;   /* --resize S: shorter side to S, then the centre; 0: straight to image_h x image_w */
    double mean[HP_DATA_CHANNELS], std[HP_DATA_CHANNELS];
    uint64_t seed; /* of synthetic images */
} hp_data_options;

/* mean = std = 0.5, everything else zero. */
hp_data_options hp_data_options_default(void);

/* One number for all channels, or a list with commas, one per channel: "0.485,0.456,0.406". `what` names the
 * option. Errors: HP_EUSAGE. */
hp_status hp_data_parse_channels(const char *text, const char *what, double value[HP_DATA_CHANNELS],
                                 hp_error *err);

/* Opens the data; IDX files are read into memory here, image files when they are asked for.
 * Errors: HP_EDATA with file, reason and fix; HP_EUSAGE for a std of 0 or more channels than
 * HP_DATA_CHANNELS. */
hp_status hp_dataset_open(const hp_data_options *o, hp_dataset **d, hp_error *err);

int64_t hp_dataset_count(const hp_dataset *d);

/* Sample `index` in [0, count). x: (image_h, image_w, image_c), or NULL: labels alone cost no decoding.
 * label: in [0, classes), -1 for an image without one; or NULL. Errors: HP_EDATA (the file cannot be
 * decoded). */
hp_status hp_dataset_read(hp_dataset *d, int64_t index, float *x, int32_t *label, hp_error *err);

void hp_dataset_close(hp_dataset *d); /* NULL is fine */

#endif
