/* image_samples.h - how an image's samples are held: as wide as the file's, so that no bit of them is lost on the way to the network.
 *
 * The network's number is made in one place (dataset/dataset_read.c): hp_sample_real of each sample, then (v - mean) / std. */
#ifndef HP_IMAGE_SAMPLES_H
#define HP_IMAGE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

typedef enum hp_pixel_type {
    HP_SAMPLE_U8,  /* v / 255; of 1, 2, 4 bits too, spread over all 8 */
    HP_SAMPLE_U16, /* v / 65535 */
    HP_SAMPLE_F32, /* as it is: the file's floats; its other integers, divided by the largest of their kind */
    HP_SAMPLES
} hp_pixel_type;

static inline size_t hp_sample_bytes(hp_pixel_type s) {
    return s == HP_SAMPLE_U8 ? 1 : s == HP_SAMPLE_U16 ? 2 : 4;
}

/* Sample i of px as it is held, */
static inline double hp_sample_held(hp_pixel_type s, const void *px, size_t i) {
    return s == HP_SAMPLE_U8    ? (double)((const uint8_t *)px)[i]
           : s == HP_SAMPLE_U16 ? (double)((const uint16_t *)px)[i]
                                : (double)((const float *)px)[i];
}

/* divided by this. */
static inline double hp_sample_full(hp_pixel_type s) {
    return s == HP_SAMPLE_U8 ? 255.0 : s == HP_SAMPLE_U16 ? 65535.0 : 1.0;
}

#endif
