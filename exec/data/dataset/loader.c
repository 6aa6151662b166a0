/* loader.c - reads boxes of batches from a data set; loader.h defines which sample goes where.
 *
 * Samples are independent: several threads read those of one call, each with its own handle of the data.
 * If threads outnumber samples and a pixel costs nothing but itself, a thread reads some rows of a
 * sample. The sample's position in the batch selects the handle, so that successive strips of an image
 * find its file open. */
#include "exec/data/dataset/loader.h"

#include "exec/data/dataset/dataset_kind.h"
#include "exec/data/dataset/dataset_shuffle.h"
#include "base/alloc.h"
#include "base/parallel.h"

#include <string.h>

/* Result of a handle's samples. */
typedef struct outcome {
    hp_status status;
    hp_error err;
    int32_t sample; /* that failed */
} outcome;

struct hp_loader {
    hp_loader_options o;
    int64_t steps; /* per epoch */
    int32_t n;     /* handles, each for one thread at a time */
    hp_dataset **handle;
    outcome *outcome;
};

hp_status hp_loader_open(const hp_loader_options *o, hp_loader **out, hp_error *err) {
    const int64_t count = hp_dataset_count(o->data), batch = o->program->batch;
    HP_ASSERT(o->program->dtype == HP_F32 || o->program->dtype == HP_F64);
    if (!o->eval && count < batch)
        return hp_fail(err, HP_EDATA,
                       "--data %s has %lld samples, one batch takes %lld; simulate with --batch %lld or less",
                       o->data->o.name, (long long)count, (long long)batch, (long long)count);
    hp_loader *l = hp_zeroed(1, sizeof *l);
    const int64_t samples = o->program->micro * o->program->micro_batch; /* samples of this replica */
    const bool share = o->data->kind->computed || o->threads < samples;
    const int32_t most = share ? o->threads : (int32_t)samples, threads = most > 1 ? most : 1;
    l->o = *o;
    l->steps = o->eval ? (count + batch - 1) / batch : count / batch;
    l->handle = hp_zeroed((size_t)threads, sizeof *l->handle);
    l->outcome = hp_zeroed((size_t)threads, sizeof *l->outcome);
    l->n = hp_dataset_handles(o->data, threads, l->handle);
    *out = l;
    return HP_OK;
}

void hp_loader_close(hp_loader *l) {
    if (!l) return;
    for (int32_t i = 1; i < l->n; i++) hp_dataset_close(l->handle[i]);
    free(l->handle);
    free(l->outcome);
    free(l);
}

int64_t hp_loader_steps(const hp_loader *l) {
    return l->steps;
}

int32_t hp_loader_handles(hp_loader *l, hp_dataset *const **handle) {
    *handle = l->handle;
    return l->n;
}

/* Index of the sample; -1: past the end of an evaluation, or left out. */
static int64_t sample_at(const hp_loader *l, int64_t step, int64_t offset) {
    const int64_t batch = l->o.program->batch, count = hp_dataset_count(l->o.data);
    if (l->o.eval) {
        const int64_t position = step * batch + offset;
        return position < count && hp_dataset_stands_in(l->o.data, position) == position ? position : -1;
    }
    const int64_t position = step % l->steps * batch + offset;
    return hp_dataset_stands_in(
        l->o.data, l->o.shuffle ? hp_shuffle(l->o.seed, step / l->steps, position, count) : position);
}

/* One call: reads a box of each sample, `bytes` bytes, in pieces of some rows. */
typedef struct reading {
    hp_loader *l;
    hp_status (*read)(const struct reading *r, hp_dataset *d, int64_t index, int32_t piece, unsigned char *to,
                      hp_error *err);
    const hp_box *box;
    hp_dtype dtype; /* type of the images */
    int64_t step;
    int64_t first; /* position of the micro-batch's sample 0 among this replica's samples of the batch */
    unsigned char *to;
    size_t bytes;
    int32_t pieces; /* per sample */
    int32_t lanes;  /* threads that share the pieces */
} reading;

static hp_status read_image(const reading *r, hp_dataset *d, int64_t index, int32_t piece, unsigned char *to,
                            hp_error *err) {
    const int64_t rows = hp_box_len(r->box, HP_AXIS_H), first = rows * piece / r->pieces,
                  end = rows * (piece + 1) / r->pieces;
    const size_t row = r->bytes / (size_t)rows;
    hp_box box = *r->box;
    box.lo[HP_AXIS_H] = r->box->lo[HP_AXIS_H] + (int32_t)first;
    box.hi[HP_AXIS_H] = r->box->lo[HP_AXIS_H] + (int32_t)end;
    to += (size_t)first * row;
    if (index >= 0) return hp_dataset_read(d, index, &box, r->dtype, to, err);
    memset(to, 0, (size_t)(end - first) * row);
    return HP_OK;
}

static hp_status read_labels(const reading *r, hp_dataset *d, int64_t index, int32_t piece, unsigned char *to,
                             hp_error *err) {
    int32_t *labels = (int32_t *)(void *)to;
    (void)piece;
    if (index >= 0) return hp_dataset_labels(d, index, r->box, labels, err);
    for (size_t k = 0; k < r->bytes / sizeof *labels; k++) labels[k] = HP_LABEL_IGNORED;
    return HP_OK;
}

/* Reads every lanes-th piece from the lane's first on, until one fails. */
static void read_lane(void *self, int thread, int lane) {
    (void)thread;
    const reading *r = self;
    const hp_loader *l = r->l;
    const int64_t replica = (int64_t)l->o.replica * l->o.program->micro * l->o.program->micro_batch;
    const int32_t begin = r->box->lo[HP_AXIS_N], all = hp_box_len(r->box, HP_AXIS_N) * r->pieces;
    outcome *o = &l->outcome[lane];
    *o = (outcome){.status = HP_OK};
    for (int32_t i = lane; i < all && o->status == HP_OK; i += r->lanes) {
        const int64_t sample = begin + i / r->pieces, handle = r->first * r->pieces + begin * r->pieces + i;
        o->sample = (int32_t)sample;
        o->status = r->read(r, l->handle[handle % l->n], sample_at(l, r->step, replica + r->first + sample),
                            i % r->pieces, r->to + (size_t)(sample - begin) * r->bytes, &o->err);
    }
}

/* Reads with up to `threads` threads. The error is that of the first sample that fails,
 * whichever thread reads it. */
static hp_status read_samples(reading *r, int32_t threads, hp_error *err) {
    const outcome *of = r->l->outcome, *first = NULL;
    const int32_t count = hp_box_len(r->box, HP_AXIS_N) * r->pieces;
    r->lanes = count < threads ? count : threads;
    hp_parallel_for(r->lanes, r->lanes, read_lane, r);
    for (int32_t k = 0; k < r->lanes; k++)
        if (of[k].status != HP_OK && (!first || of[k].sample < first->sample)) first = &of[k];
    if (!first) return HP_OK;
    if (err) *err = first->err;
    return first->status;
}

/* Pieces per sample: at least a mebibyte of pixels each, and no more than there are threads. */
static int32_t pieces_of(const hp_loader *l, const hp_box *box) {
    const int32_t samples = hp_box_len(box, HP_AXIS_N), rows = hp_box_len(box, HP_AXIS_H);
    const int64_t large = hp_box_elems(box) / samples >> 20, spare = l->n / samples,
                  most = large < spare ? large : spare, pieces = most < rows ? most : rows;
    return l->o.data->kind->computed && pieces > 1 ? (int32_t)pieces : 1;
}

hp_status hp_loader_read(hp_loader *l, int64_t step, int32_t micro, void *x, hp_dtype dtype,
                         const hp_box *x_box, int32_t *labels, const hp_box *label_box, hp_error *err) {
    reading r = {.l = l, .step = step, .first = (int64_t)micro * l->o.program->micro_batch, .pieces = 1};
    if (x && !hp_box_empty(x_box)) {
        r.read = read_image, r.box = x_box, r.dtype = dtype, r.to = x;
        r.pieces = pieces_of(l, x_box);
        r.bytes =
            (size_t)(hp_box_elems(x_box) / hp_box_len(x_box, HP_AXIS_N)) * (size_t)hp_dtype_bytes(dtype);
        HP_TRY(read_samples(&r, l->n, err));
    }
    if (!labels || hp_box_empty(label_box)) return HP_OK;
    r.read = read_labels, r.box = label_box, r.to = (unsigned char *)labels, r.pieces = 1;
    r.bytes = (size_t)hp_dataset_label_count(l->o.data, label_box) * sizeof *labels;
    /* a class is in memory, a map must be read */
    return read_samples(&r, hp_dataset_maps(l->o.data) ? l->n : 1, err);
}
