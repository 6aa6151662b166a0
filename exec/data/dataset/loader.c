/* loader.c - reads boxes of batches from a data set; see loader.h for which sample goes where. */
#include "exec/data/dataset/loader.h"
#include "plan/base/alloc.h"

#include "exec/data/dataset/kind.h"
#include "exec/data/dataset/shuffle.h"

#include <string.h>

struct hp_loader {
    hp_loader_options o;
    int64_t steps; /* per epoch */
};

hp_status hp_loader_open(const hp_loader_options *o, hp_loader **out, hp_error *err) {
    const int64_t count = hp_dataset_count(o->data), batch = o->program->batch;
    HP_ASSERT(o->program->dtype == HP_F32 || o->program->dtype == HP_F64);
    if (!o->eval && count < batch)
        return hp_fail(err, HP_EDATA,
                       "--data %s has %lld samples, one batch takes %lld; simulate with --batch %lld or less",
                       o->data->o.name, (long long)count, (long long)batch, (long long)count);
    hp_loader *l = hp_zeroed(1, sizeof *l);
    l->o = *o;
    l->steps = o->eval ? (count + batch - 1) / batch : count / batch;
    *out = l;
    return HP_OK;
}

void hp_loader_close(hp_loader *l) {
    free(l);
}

int64_t hp_loader_steps(const hp_loader *l) {
    return l->steps;
}

/* Index of the sample, or -1 past the end in evaluation. */
static int64_t sample_at(const hp_loader *l, int64_t step, int64_t offset) {
    const int64_t batch = l->o.program->batch, count = hp_dataset_count(l->o.data);
    if (l->o.eval) {
        const int64_t position = step * batch + offset;
        return position < count ? position : -1;
    }
    const int64_t position = step % l->steps * batch + offset;
    return l->o.shuffle ? hp_shuffle(l->o.seed, step / l->steps, position, count) : position;
}

/* Index of sample `i` of a micro-batch, or -1. */
static int64_t index_of(const hp_loader *l, int64_t step, int32_t micro, int32_t i) {
    const hp_program *p = l->o.program;
    return sample_at(l, step, ((int64_t)l->o.replica * p->micro + micro) * p->micro_batch + i);
}

static hp_status read_images(hp_loader *l, int64_t step, int32_t micro, unsigned char *x, hp_dtype dtype,
                             const hp_box *box, hp_error *err) {
    if (hp_box_empty(box)) return HP_OK;
    const size_t n = (size_t)(hp_box_elems(box) / hp_box_len(box, HP_AXIS_N)),
                 bytes = n * (size_t)hp_dtype_bytes(dtype);
    for (int32_t i = box->lo[HP_AXIS_N]; i < box->hi[HP_AXIS_N]; i++, x += bytes) {
        const int64_t index = index_of(l, step, micro, i);
        if (index < 0)
            memset(x, 0, bytes);
        else
            HP_TRY(hp_dataset_read(l->o.data, index, box, dtype, x, err));
    }
    return HP_OK;
}

static hp_status read_labels(hp_loader *l, int64_t step, int32_t micro, int32_t *labels, const hp_box *box,
                             hp_error *err) {
    if (hp_box_empty(box)) return HP_OK;
    const int64_t n = hp_dataset_label_count(l->o.data, box);
    for (int32_t i = box->lo[HP_AXIS_N]; i < box->hi[HP_AXIS_N]; i++, labels += n) {
        const int64_t index = index_of(l, step, micro, i);
        if (index >= 0) HP_TRY(hp_dataset_labels(l->o.data, index, box, labels, err));
        for (int64_t k = 0; index < 0 && k < n; k++) labels[k] = HP_LABEL_IGNORED;
    }
    return HP_OK;
}

hp_status hp_loader_read_typed(hp_loader *l, int64_t step, int32_t micro, void *x, hp_dtype dtype,
                               const hp_box *x_box, int32_t *labels, const hp_box *label_box, hp_error *err) {
    if (x) HP_TRY(read_images(l, step, micro, x, dtype, x_box, err));
    return labels ? read_labels(l, step, micro, labels, label_box, err) : HP_OK;
}

hp_status hp_loader_read(hp_loader *l, int64_t step, int32_t micro, void *x, const hp_box *x_box,
                         int32_t *labels, const hp_box *label_box, hp_error *err) {
    return hp_loader_read_typed(l, step, micro, x, (hp_dtype)l->o.program->dtype, x_box, labels, label_box,
                                err);
}
