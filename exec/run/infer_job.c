/* infer_job.c - the parts of a job that only inference needs: the network's constants and the output file. */
#include "exec/run/infer_job.h"

#include "exec/data/output/output.h"
#include "exec/data/weights/constants.h"
#include "exec/run/run_calibrate.h"
#include "exec/run/slide_job.h"

#include <stdlib.h>
#include <string.h>

/* The images' mean and std; if left at their defaults, a quantised file's own apply. */
static void pixels_of(const hp_data_options *d, int channels, hp_constants_options *o) {
    const hp_data_options plain = hp_data_options_default();
    const bool said =
        memcmp(d->mean, plain.mean, sizeof d->mean) != 0 || memcmp(d->std, plain.std, sizeof d->std) != 0;
    const int most = (int)(sizeof o->mean / sizeof *o->mean);
    o->n_mean = !said ? 0 : channels <= most ? channels : 1; /* pixels of more channels are never raw */
    memcpy(o->mean, d->mean, sizeof o->mean);
    memcpy(o->std, d->std, sizeof o->std);
}

static bool is_synthetic(const hp_exec_options *o) {
    return !o->data.input && strcmp(o->data.name, "synthetic") == 0;
}

hp_status hp_job_constants_of(const hp_job *j, const hp_graph *g, hp_constants **c, hp_error *err) {
    hp_constants_options o = {.graph = g, .path = j->options->init, .seed = j->plan.seed};
    pixels_of(&j->options->data.pixels, g->image_c, &o);
    return hp_constants_open(&o, c, err);
}

hp_status hp_job_constants(hp_job *j, hp_error *err) {
    if (j->options->save)
        return hp_fail(err, HP_EUSAGE, "--save is for training: inference does not change the weights");
    HP_TRY(hp_job_constants_of(j, j->plan.graph, &j->deployed.constants, err));
    if (hp_constants_calibrated(j->deployed.constants)) return HP_OK;
    if (!is_synthetic(j->options))
        return hp_fail(
            err, HP_EDATA,
            "int8 needs the scales of every tensor, %s has none: hplan quantize computes them from images",
            j->options->init ? j->options->init : "a network without --init");
    return hp_calibrate_small(&j->plan, j->deployed.constants, err);
}

/* --- output --- */

/* Number of samples: those of the data set, or of all steps. */
static hp_output_spec spec_of(const hp_job *j) {
    const hp_tensor *y = hp_job_logits(j);
    const int64_t all = j->steps * j->plan.batch, known = hp_dataset_count(j->train.data);
    return (hp_output_spec){.path = j->options->output.file,
                            .n = is_synthetic(j->options) || all < known ? all : known,
                            .h = y->h,
                            .w = y->w,
                            .c = y->c,
                            .classes = j->options->output.argmax};
}

static hp_status check_wanted(const hp_job *j, hp_error *err) {
    if (!j->plan.graph->deployed)
        return hp_fail(err, HP_EUSAGE, "--output is for inference: plan with hplan simulate --mode infer");
    return HP_OK;
}

static hp_status create_output(hp_job *j, const hp_output_spec *spec, hp_error *err) {
    hp_status s = j->comm->rank == 0 ? hp_output_create(spec, &j->sink.file, err) : HP_OK;
    HP_TRY(hp_job_agree(j, s, err));
    s = j->comm->rank > 0 ? hp_output_join(spec, &j->sink.file, err) : HP_OK;
    return hp_job_agree(j, s, err);
}

hp_status hp_job_output_open(hp_job *j, hp_error *err) {
    HP_TRY(hp_job_slide_open(j, err));
    if (!j->options->output.file) return HP_OK;
    HP_TRY(hp_job_agree(j, check_wanted(j, err), err));
    const hp_output_spec spec = spec_of(j);
    return create_output(j, &spec, err);
}

static const float *as_float(hp_job *j, const void *data, int64_t n, hp_dtype dtype) {
    if (dtype == HP_F32) return data;
    if (n > j->sink.row_elems) {
        j->sink.row = realloc(j->sink.row, sizeof *j->sink.row * (size_t)n);
        HP_ASSERT(j->sink.row);
        j->sink.row_elems = n;
    }
    for (int64_t i = 0; i < n; i++) j->sink.row[i] = (float)((const double *)data)[i];
    return j->sink.row;
}

/* The last batch of a data set may be padded; padding is not written. */
hp_status hp_job_output_write(void *self, int32_t iter, int32_t micro, const void *data, const hp_box *box,
                              hp_dtype dtype, hp_error *err) {
    hp_job *j = self;
    const hp_program *p = j->plan.program;
    const int64_t first = iter * p->batch + ((int64_t)j->replica * p->micro + micro) * p->micro_batch,
                  end = spec_of(j).n;
    const float *from = as_float(j, data, hp_box_elems(box), dtype);
    hp_box at = *box;
    at.lo[HP_AXIS_N] = (int32_t)(first + box->lo[HP_AXIS_N]);
    at.hi[HP_AXIS_N] = (int32_t)(first + box->hi[HP_AXIS_N] < end ? first + box->hi[HP_AXIS_N] : end);
    if (at.lo[HP_AXIS_N] >= at.hi[HP_AXIS_N]) return HP_OK;
    HP_TRY(hp_job_slide_write(j, at.lo[HP_AXIS_N], hp_box_len(&at, HP_AXIS_N), from, err));
    return j->sink.file ? hp_output_write(j->sink.file, &at, from, err) : HP_OK;
}

hp_status hp_job_output_finish(hp_job *j, hp_error *err) {
    HP_TRY(hp_job_slide_finish(j, err));
    if (!j->sink.file) return HP_OK;
    const hp_output_spec spec = spec_of(j);
    hp_status s = hp_output_close(j->sink.file, err);
    j->sink.file = NULL;
    HP_TRY(hp_job_agree(j, s, err));
    s = j->comm->rank == 0 ? hp_output_finish(&spec, err) : HP_OK;
    return hp_job_agree(j, s, err);
}

void hp_job_output_discard(hp_job *j) {
    hp_job_slide_discard(j);
    if (!j->sink.file) return;
    const hp_output_spec spec = spec_of(j);
    hp_output_close(j->sink.file, &(hp_error){0});
    j->sink.file = NULL;
    if (j->comm->rank == 0) hp_output_discard(&spec);
}
