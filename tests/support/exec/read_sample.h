/* read_sample.h - reads a whole sample of a data set, or a box of one. */
#ifndef HP_TESTS_READ_SAMPLE_H
#define HP_TESTS_READ_SAMPLE_H

#include "exec/data/dataset/dataset_kind.h"

hp_box whole_image(const hp_dataset *d);

/* Either may be NULL. */
hp_status read_sample(hp_dataset *d, int64_t i, float *x, int32_t *label, hp_error *err);

#endif
