/* slide_job.c - a run over the patches of one image: sums their votes and writes their heat map. */
#include "exec/run/slide_job.h"

#include "exec/data/slide/patches.h"
#include "exec/data/slide/votes.h"

static const hp_patches *patches_of(const hp_job *j) {
    return j->train.data ? hp_dataset_patches(j->train.data) : NULL;
}

static hp_output_spec heat_spec(const hp_job *j) {
    return hp_patches_heat_spec(patches_of(j), j->options->output.heatmap, j->plan.classes,
                                j->options->output.argmax);
}

static hp_status check_options(const hp_job *j, hp_error *err) {
    const hp_tensor *y = hp_job_logits(j);
    if (j->options->output.heatmap && !patches_of(j))
        return hp_fail(err, HP_EUSAGE, "--heatmap needs --data patches:IMAGE");
    if (patches_of(j) && (int64_t)y->h * y->w > 1)
        return hp_fail(err, HP_EUSAGE, "%s gives a map: run it on the whole image, --input IMAGE",
                       j->plan.net);
    return HP_OK;
}

hp_status hp_job_slide_open(hp_job *j, hp_error *err) {
    HP_TRY(hp_job_agree(j, check_options(j, err), err));
    if (!patches_of(j)) return HP_OK;
    j->sink.votes = HP_NEW(j->memory, hp_votes, 1);
    *j->sink.votes = hp_votes_new(j->memory, j->plan.classes);
    if (!j->options->output.heatmap) return HP_OK;
    const hp_output_spec spec = heat_spec(j);
    hp_status s =
        j->comm->rank == 0 ? hp_patches_heat_create(patches_of(j), &spec, &j->sink.heat, err) : HP_OK;
    HP_TRY(hp_job_agree(j, s, err));
    s = j->comm->rank > 0 ? hp_output_join(&spec, &j->sink.heat, err) : HP_OK;
    return hp_job_agree(j, s, err);
}

void hp_job_slide_discard(hp_job *j) {
    if (!j->sink.heat) return;
    const hp_output_spec spec = heat_spec(j);
    hp_output_close(j->sink.heat, &(hp_error){0});
    j->sink.heat = NULL;
    if (j->comm->rank == 0) hp_output_discard(&spec);
}

hp_status hp_job_slide_write(hp_job *j, int64_t first, int64_t n, const float *logits, hp_error *err) {
    if (!j->sink.votes) return HP_OK;
    for (int64_t i = 0; i < n; i++) hp_votes_add(j->sink.votes, logits + i * j->sink.votes->classes);
    if (!j->sink.heat) return HP_OK;
    return hp_patches_heat_write(patches_of(j), j->sink.heat, (int32_t)first, (int32_t)n,
                                 j->sink.votes->classes, logits, err);
}

static hp_status sum_votes(hp_job *j, hp_error *err) {
    static const double LIMIT_S = 120;
    const hp_comm_op sum = {.kind = HP_COMM_COLLECTIVE,
                            .group = HP_COMM_WORLD,
                            .dtype = HP_F64,
                            .count = j->sink.votes->n_sum,
                            .data = j->sink.votes->sum};
    return hp_comm_run(j->comm, &sum, LIMIT_S, "the votes of all ranks' patches", err);
}

hp_status hp_job_slide_finish(hp_job *j, hp_error *err) {
    if (!j->sink.votes) return HP_OK;
    HP_TRY(sum_votes(j, err));
    if (!j->sink.heat) return HP_OK;
    const hp_output_spec spec = heat_spec(j);
    hp_status s = hp_output_close(j->sink.heat, err);
    j->sink.heat = NULL;
    HP_TRY(hp_job_agree(j, s, err));
    s = j->comm->rank == 0 ? hp_output_finish(&spec, err) : HP_OK;
    return hp_job_agree(j, s, err);
}
