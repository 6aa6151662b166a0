/* dataset.h - labelled images by name: --data
 * synthetic|fashion-mnist|DIR|FILE[,FILE]...|slide:FILE|patches:FILE|text:PATH[,PATH]...
 *
 * DIR holds IDX files ({train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, plain or .gz), class folders
 * ({train,test}/CLASS/ with PNG, JPEG, TIFF), or images with masks ({train,test}/{images,masks}/, with a mask
 * masks/NAME.png for every images/NAME.png|jpg|tif: class numbers, 255 = ignored). FILE is an IDX images file
 * with its labels beside it (any split), one image without a label, or several (test split only: inference).
 * slide:FILE[,level=N] is opened with OpenSlide; patches:FILE[,KEY=NUMBER]... are patches of one image
 * (slide/slide_dataset.c); text:PATH is bytes of text (dataset_text.c).
 *
 * Every kind provides pixels, with samples as wide as the file's (image/image_samples.h). All are processed
 * alike: bilinear resize if the sizes differ, conversion of channels, x/255 (16 bits: x/65535; floats: x), (v
 * - mean) / std. Masks are resized to the nearest pixel. Reading a box of a sample gives the same values as
 * reading the whole sample, and keeps no more of the image than the box needs. Opening and reading never
 * write anything, so any number of ranks may share the files. */
#ifndef HP_DATASET_H
#define HP_DATASET_H

#include "exec/data/image/image.h"
#include "exec/data/image/pulse.h"
#include "base/status.h"
#include "plan/program/program.h"
#include "plan/tiles/tile.h"

#include <stdint.h>

typedef struct hp_dataset hp_dataset;

typedef enum hp_split { HP_SPLIT_TRAIN, HP_SPLIT_TEST } hp_split;

enum { HP_DATA_CHANNELS = HP_MAX_BANDS /* maximum number of channels of an image */ };
enum { HP_LABEL_IGNORED = -1 /* label of a pixel or image without one */ };

typedef struct hp_data_options {
    const char *name;                  /* --data */
    int32_t split;                     /* hp_split */
    int32_t image_h, image_w, image_c; /* the network's input size */
    int32_t label_h, label_w;          /* size of the map of logits: 1 x 1 for a class per image */
    int32_t classes;                   /* number of classes; labels lie in [0, classes) */
    int32_t channels;                  /* --channels: 0 keeps the file's, 1 converts to grey first, 3 to
                                        * colour; then to image_c */
    int32_t n_band; /* --bands: bands to read from image files, in this order, counted from 1; 0: see
                     * image/reader_kind.h */
    int32_t band[HP_MAX_BANDS];
    int32_t resize; /* --resize S: scales the shorter side to S, then crops the centre; 0: scales directly
                     * to image_h x image_w */
    double mean[HP_DATA_CHANNELS], std[HP_DATA_CHANNELS];
    bool ids;       /* the network reads ids, not pixels: numbers as in the data */
    uint64_t seed;  /* seed of synthetic images */
    hp_pulse pulse; /* called while a sample is read */
    struct hp_decoders
        *decoders; /* decoders of image files (exec/data/image/decoder.h); NULL: decoded in this process */
} hp_data_options;

/* mean = std = 0.5, a class per image, everything else zero. */
hp_data_options hp_data_options_default(void);

/* Parses one number for all channels, or a comma-separated list with one per channel: "0.485,0.456,0.406".
 * `what` names the option. Errors: HP_EUSAGE. */
hp_status hp_data_parse_channels(const char *text, const char *what, double value[HP_DATA_CHANNELS],
                                 hp_error *err);

/* Parses band numbers: "4,3,2". Errors: HP_EUSAGE. */
hp_status hp_data_parse_bands(const char *text, hp_data_options *o, hp_error *err);

/* Checks options that already have the plan's sizes. Errors: HP_EUSAGE. */
hp_status hp_data_options_check(const hp_data_options *o, hp_error *err);

/* Does data of this name have image files to decode? */
bool hp_data_name_has_images(const char *name);

/* Opens the data. IDX files are read into memory here, image files when needed. Errors: HP_EDATA with file,
 * reason and fix (also where the data has a class per image and the network predicts one per pixel, or vice
 * versa); HP_EUSAGE for a std of 0 or more channels than HP_DATA_CHANNELS. */
hp_status hp_dataset_open(const hp_data_options *o, hp_dataset **d, hp_error *err);

/* Number of samples. */
int64_t hp_dataset_count(const hp_dataset *d);

/* Number of files among the images that are not readable images by their names, such as .bmp and .webp;
 * *example: one of them, or NULL. */
int64_t hp_dataset_left_out(const hp_dataset *d, const char **example);

/* Describes what happens to images without the user having asked for it: how samples are scaled, what is
 * left out (HP_SAID_), the size without --resize. Reads nothing itself. NULL: nothing to tell, or no
 * image was read yet. */
const char *hp_dataset_describe(const hp_dataset *d, char *text, size_t bytes);

/* Are samples bytes of text, and labels the bytes that follow? */
bool hp_dataset_is_text(const hp_dataset *d);

/* Positions of the samples of patches:IMAGE in the image; NULL: samples are not patches. */
struct hp_patches;
const struct hp_patches *hp_dataset_patches(const hp_dataset *d);

/* Reads rows, columns and channels of `box` of sample `index` in [0, count) into x, dense (the box's samples
 * axis is ignored). dtype is the type of x. HP_F32 and HP_F64 give the same normalised values. HP_U8 gives
 * bytes before normalisation, after resizing and with the network's channels: 16 bits are rounded to 8, float
 * samples, whose range nobody knows, are an error. Errors: HP_EDATA (the file cannot be decoded). */
hp_status hp_dataset_read(hp_dataset *d, int64_t index, const hp_box *box, hp_dtype dtype, void *x,
                          hp_error *err);

/* Labels of the sample: one (for any box), or those of `box` in its label map. Each is in [0, classes) or
 * HP_LABEL_IGNORED. Does not decode the image. Errors: HP_EDATA. */
hp_status hp_dataset_labels(hp_dataset *d, int64_t index, const hp_box *box, int32_t *label, hp_error *err);

/* Number of labels of one sample in `box`. */
int64_t hp_dataset_label_count(const hp_dataset *d, const hp_box *box);

/* --- unreadable samples: dataset_check.c --- */

/* Is the data a folder of images, from which some may be left out? */
bool hp_dataset_may_leave_out(const hp_dataset *d);

/* Reads a few million pixels of the sample's files from `*row` on, which starts at 0. Sets *row to where to
 * continue, 0 once all is read. Errors: HP_EDATA, for the sample; the decoder's. */
hp_status hp_dataset_check(hp_dataset *d, int64_t index, int32_t *row, hp_error *err);

/* Leaves a sample out, in all handles. Nobody may be reading. */
void hp_dataset_leave_out(hp_dataset *d, int64_t index);

/* The sample itself; if that is left out, the next one that is not, wrapping around at the end. */
int64_t hp_dataset_stands_in(const hp_dataset *d, int64_t index);

/* A number that changes when samples, their order or how they are read change
 * (fingerprint.c). Errors: HP_EDATA. */
hp_status hp_dataset_fingerprint(hp_dataset *d, uint64_t *fingerprint, hp_error *err);

/* Makes handles of the same samples for n threads, because a handle serves one thread at a time; the first is
 * d itself. Handles share what opening read. Each has its own open files and buffers, all together within the
 * limits of one. Returns the number of handles: n, or 1 if all samples come from one file that is read from
 * top to bottom. Close the others before d. */
int32_t hp_dataset_handles(hp_dataset *d, int32_t n, hp_dataset **handle);

void hp_dataset_close(hp_dataset *d); /* NULL is fine */

#endif
