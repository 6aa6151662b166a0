/* loader.c - batches out of a data set; see loader.h for who gets which sample. */
#include "exec/data/loader.h"

#include "exec/data/dataset_kind.h"
#include "exec/data/shuffle.h"

#include <string.h>

struct hp_loader {
    hp_loader_options o;
    int64_t steps; /* per epoch */
    size_t elems;  /* of one sample */
    float *sample; /* (h, w, c): a float64 program reads the same float32 pixels */
};

hp_status hp_loader_open(const hp_loader_options *o, hp_loader **out, hp_error *err) {
    const int64_t count = hp_dataset_count(o->data), batch = o->program->batch;
    HP_ASSERT(o->program->dtype == HP_F32 || o->program->dtype == HP_F64);
    if (!o->eval && count < batch)
        return hp_fail(err, HP_EDATA,
                       "--data %s has %lld samples, one batch takes %lld; simulate with --batch %lld or less",
                       o->data->o.name, (long long)count, (long long)batch, (long long)count);
    hp_loader *l = calloc(1, sizeof *l);
    HP_ASSERT(l);
    l->o = *o;
    l->steps = o->eval ? (count + batch - 1) / batch : count / batch;
    l->elems = (size_t)o->data->o.image_h * (size_t)o->data->o.image_w * (size_t)o->data->o.image_c;
    if (o->program->dtype == HP_F64) {
        l->sample = malloc(l->elems * sizeof *l->sample);
        HP_ASSERT(l->sample);
    }
    *out = l;
    return HP_OK;
}

void hp_loader_close(hp_loader *l) {
    if (!l) return;
    free(l->sample);
    free(l);
}

int64_t hp_loader_steps(const hp_loader *l) {
    return l->steps;
}

/* Index of the sample, or -1 past the end of an evaluation. */
static int64_t sample_at(const hp_loader *l, int64_t step, int64_t offset) {
    const int64_t batch = l->o.program->batch, count = hp_dataset_count(l->o.data);
    if (l->o.eval) {
        const int64_t position = step * batch + offset;
        return position < count ? position : -1;
    }
    const int64_t position = step % l->steps * batch + offset;
    return l->o.shuffle ? hp_shuffle(l->o.seed, step / l->steps, position, count) : position;
}

static hp_status fill_one(hp_loader *l, int64_t index, void *x, int32_t *label, hp_error *err) {
    const bool wide = l->o.program->dtype == HP_F64;
    if (index < 0) {
        if (x) memset(x, 0, l->elems * (wide ? sizeof(double) : sizeof(float)));
        if (label) *label = -1;
        return HP_OK;
    }
    HP_TRY(hp_dataset_read(l->o.data, index, x && wide ? l->sample : x, label, err));
    if (x && wide)
        for (size_t i = 0; i < l->elems; i++) ((double *)x)[i] = (double)l->sample[i];
    return HP_OK;
}

hp_status hp_loader_fill(hp_loader *l, int64_t step, int32_t micro, void *x, int32_t *labels, hp_error *err) {
    const hp_program *p = l->o.program;
    const size_t bytes = l->elems * (p->dtype == HP_F64 ? sizeof(double) : sizeof(float));
    const int64_t first = ((int64_t)l->o.replica * p->micro + micro) * p->micro_batch;
    for (int64_t i = 0; i < p->micro_batch; i++) {
        void *to = x ? (unsigned char *)x + (size_t)i * bytes : NULL;
        HP_TRY(fill_one(l, sample_at(l, step, first + i), to, labels ? labels + i : NULL, err));
    }
    return HP_OK;
}
