/* read_sample.c - reads a whole sample of a data set, or a box of one. */
#include "tests/support/exec/read_sample.h"

hp_box whole_image(const hp_dataset *d) {
    return (hp_box){{0}, {1, d->o.image_h, d->o.image_w, d->o.image_c}};
}

static hp_box whole_map(const hp_dataset *d) {
    return (hp_box){{0}, {1, d->o.label_h, d->o.label_w, 1}};
}

hp_status read_sample(hp_dataset *d, int64_t i, float *x, int32_t *label, hp_error *err) {
    const hp_box image = whole_image(d), map = whole_map(d);
    if (label) HP_TRY(hp_dataset_labels(d, i, &map, label, err));
    return x ? hp_dataset_read(d, i, &image, HP_F32, x, err) : HP_OK;
}
