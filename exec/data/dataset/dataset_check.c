/* dataset_check.c - checks that a sample can be read: its whole image and labels, a few million pixels at a
 * time. Also replaces samples that cannot: see dataset.h. */
#include "exec/data/dataset/dataset_kind.h"
#include "base/alloc.h"

/* 16 MiB of labels; a second or two of pixels from the slowest decoder (exec/data/image/decoder.h). */
enum { STEP_PIXELS = 1 << 22 };

bool hp_dataset_may_leave_out(const hp_dataset *d) {
    return d->kind == &hp_dataset_folder || d->kind == &hp_dataset_masks;
}

/* The end of a step that begins at row `y`. */
static int32_t step_end(int32_t y, int32_t h, int32_t w) {
    const int32_t rows = STEP_PIXELS / w > 0 ? STEP_PIXELS / w : 1;
    return h - y > rows ? y + rows : h;
}

static hp_status read_labels(hp_dataset *d, int64_t index, const hp_crop *rows, hp_error *err) {
    int32_t *label = hp_alloc(sizeof *label * (size_t)hp_crop_rows(rows) * (size_t)d->o.label_w);
    const hp_status s = d->kind->map(d, index, rows, label, err);
    free(label);
    return s;
}

hp_status hp_dataset_check(hp_dataset *d, int64_t index, int32_t *row, hp_error *err) {
    HP_ASSERT(index >= 0 && index < d->count);
    const int32_t labels = hp_dataset_maps(d) ? d->o.label_h : 0;
    hp_pixels view;
    HP_TRY(d->kind->size(d, index, &view, err));
    const int32_t h = view.h, w = view.w;
    if (*row < h) {
        const hp_crop rows = {*row, 0, step_end(*row, h, w), w};
        HP_TRY(d->kind->pixels(d, index, &rows, &view, err));
        *row = rows.y1;
    } else {
        const hp_crop rows = {*row - h, 0, step_end(*row - h, labels, d->o.label_w), d->o.label_w};
        HP_TRY(read_labels(d, index, &rows, err));
        *row = h + rows.y1;
    }
    if (*row == h + labels) *row = 0;
    return HP_OK;
}

void hp_dataset_leave_out(hp_dataset *d, int64_t index) {
    HP_ASSERT(index >= 0 && index < d->count && hp_dataset_may_leave_out(d));
    if (!d->broken) d->broken = HP_NEW(d->arena, bool, d->count);
    d->broken[index] = true;
}

int64_t hp_dataset_stands_in(const hp_dataset *d, int64_t index) {
    for (int64_t tried = 0; d->broken && d->broken[index]; tried++) {
        HP_ASSERT(tried < d->count);
        index = index + 1 < d->count ? index + 1 : 0;
    }
    return index;
}
