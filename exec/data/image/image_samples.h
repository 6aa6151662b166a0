/* image_samples.h - samples of an image in memory, as wide as in the file, so that no bit is lost on the
 * way to the network.
 *
 * Only dataset/dataset_read.c makes the network's numbers: hp_sample_real of each sample,
 * then (v - mean) / std. */
#ifndef HP_IMAGE_SAMPLES_H
#define HP_IMAGE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

typedef enum hp_pixel_type {
    HP_SAMPLE_U8,  /* v / 255; 1, 2 and 4 bits are scaled to 8 */
    HP_SAMPLE_U16, /* v / 65535 */
    HP_SAMPLE_F32, /* the file's floats as they are; its other integers divided by the
                    * largest of their type */
    HP_SAMPLES
} hp_pixel_type;

static inline size_t hp_sample_bytes(hp_pixel_type s) {
    return s == HP_SAMPLE_U8 ? 1 : s == HP_SAMPLE_U16 ? 2 : 4;
}

/* Sample i of px as stored, */
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
