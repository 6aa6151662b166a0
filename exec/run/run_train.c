/* run_train.c - runs the steps of a job and reports them. */
#include "exec/run/run_train.h"

#include "exec/data/slide/votes.h"
#include "exec/run/run_gather.h"
#include "exec/run/nonfinite.h"
#include "exec/run/report.h"
#include "base/hash.h"
#include "networks/graph/precision.h"
#include "traces/bits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, int64_t n) {
    if (n == 0) return 0;
    qsort(value, (size_t)n, sizeof *value, ascending);
    return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

static void sample(const hp_job *j, hp_counter name, int32_t iter, double value) {
    if (!j->timing.ring) return;
    hp_ring_sample(
        j->timing.ring,
        (hp_sample){.name = name, .iter = iter, .t_ns = hp_clock_now_ns(&j->timing.clock), .value = value});
}

/* A program without a metric (benchmarks of messages) has no samples: its loss is 0. */
static double mean(const double *metric, int which) {
    return metric[HP_METRIC_COUNTED] > 0 ? metric[which] / metric[HP_METRIC_COUNTED] : 0;
}

/* Over all foreground classes: correctly predicted foreground pixels over pixels that are or are predicted as
 * foreground. */
static double foreground_iou(const hp_job *j, const double *metric) {
    const double hit = metric[HP_METRIC_HIT],
                 either = metric[HP_METRIC_PREDICTED] + metric[HP_METRIC_LABELLED] - hit;
    return hp_job_logits(j)->h * (int64_t)hp_job_logits(j)->w > 1 && either > 0 ? hit / either : NAN;
}

static double cpu_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every rank has the same metric, and so makes the same decision. */
static hp_status scale_loss(hp_job *j, int32_t iter, hp_error *err) {
    const bool overflowed = hp_interp_metric(j->train.interp)[HP_METRIC_OVERFLOW] > 0;
    if (j->scores.loss_scale.value <= 0) return HP_OK;
    if (overflowed && hp_loss_scale_is_minimal(j->scores.loss_scale))
        return hp_fail(
            err, HP_EPLAN,
            "step %d overflows fp16 at the smallest loss scale, so its maps overflow; use prec=bf16, or "
            "a lower --lr",
            iter + 1);
    j->scores.loss_scale = hp_loss_scale_next(j->scores.loss_scale, overflowed);
    return HP_OK;
}

/* The gradients' norm before clipping; negative: nobody asked for it. */
static double gradient_norm(const hp_job *j, const hp_step *s) {
    const double *metric = hp_interp_metric(j->train.interp);
    const double labels = metric[HP_METRIC_COUNTED],
                 rows = (double)j->plan.batch * hp_job_logits(j)->h * hp_job_logits(j)->w;
    if (!j->plan.graph->clips) return -1;
    const double factor = rows > (double)j->plan.batch && labels > 0 ? rows / labels : 1;
    return factor * sqrt(metric[HP_METRIC_SQUARES]) / hp_step_loss_scale(s);
}

static hp_status run_step(hp_job *j, int32_t iter, double *step_s, hp_error *err) {
    hp_step step = {.step = iter,
                    .replica = j->replica,
                    .seed = j->plan.seed,
                    .dropout = j->options->dropout,
                    .updates = iter - j->scores.loss_scale.skipped,
                    .loss_scale = j->scores.loss_scale.value,
                    .ask = hp_checkpoint_ask(j->saved.checkpoint)};
    hp_rates_set(&j->rates, j->steps, &step);
    HP_TRY(hp_job_nonfinite_keep(j, err));
    const double cpu0_s = cpu_now_s();
    const int64_t t0 = hp_clock_now_ns(&j->timing.clock);
    HP_TRY(hp_interp_step(j->train.interp, &step, iter, hp_patience_limit_s(&j->timing.patience), err));
    *step_s = 1e-9 * (double)(hp_clock_now_ns(&j->timing.clock) - t0);
    const double step_cpu_s = cpu_now_s() - cpu0_s;
    if (*step_s > j->timing.patience.longest_s) j->timing.patience.longest_s = *step_s;
    const double loss = mean(hp_interp_metric(j->train.interp), HP_METRIC_LOSS),
                 norm = gradient_norm(j, &step);
    for (int m = 0; m < HP_METRICS; m++) j->scores.sum[m] += hp_interp_metric(j->train.interp)[m];
    HP_TRY(hp_job_nonfinite_look(j, &step, loss, err));
    if (!j->strange.skipped) j->scores.loss = loss;
    HP_TRY(scale_loss(j, iter, err));
    sample(j, HP_COUNTER_STEP, iter, *step_s);
    sample(j, HP_COUNTER_STEP_CPU, iter, step_cpu_s);
    if (j->comm->rank > 0) return HP_OK;
    if (!j->strange.skipped) sample(j, HP_COUNTER_LOSS, iter, loss);
    const hp_report_step_of r = {.step = iter + 1,
                                 .loss = loss,
                                 .step_s = *step_s,
                                 .step_cpu_s = step_cpu_s,
                                 .images_per_s = (double)j->plan.batch / *step_s,
                                 .lr = step.lr,
                                 .norm = norm,
                                 .loss_scale = step.loss_scale,
                                 .skipped = j->strange.skipped,
                                 .strange = j->strange.first};
    return hp_report_step(&r, err);
}

/* Samples the machine's speed between steps, where that is asked for. */
static hp_status sample_speed(hp_job *j, int64_t done, hp_error *err) {
    if (!j->timing.sampler) return HP_OK;
    const double limit_s = hp_patience_limit_s(&j->timing.patience);
    return hp_sampler_visit(j->timing.sampler, done, done == j->steps, limit_s, err);
}

/* Samples the time for which a save holds the run up; the sample belongs to the step before it. */
static hp_status visit_checkpoint(hp_job *j, int64_t done, hp_error *err) {
    if (!j->saved.checkpoint) return HP_OK;
    HP_TRY(hp_job_checkpoint_visit(j, done, err));
    const hp_checkpoint_cost cost = hp_checkpoint_cost_of(j->saved.checkpoint);
    if (cost.last_s > 0) sample(j, HP_COUNTER_CHECKPOINT, (int32_t)done - 1, cost.last_s);
    return HP_OK;
}

/* Room for one more; grows, since a run may be asked for more steps than it will do. */
static double *make_room(double *step_s, int64_t done) {
    if (done & (done - 1)) return step_s; /* full at powers of two */
    step_s = realloc(step_s, sizeof *step_s * (size_t)(done ? 2 * done : 1));
    HP_ASSERT(step_s);
    return step_s;
}

static void sample_hash(const hp_job *j, int32_t iter, int64_t what, const void *data, int64_t bytes) {
    sample(j, HP_COUNTER_BITS, iter, hp_bits_value(what, hp_hash64(data, (size_t)bytes, 0)));
}

/* Samples the hash of each parameter of a buffer, or of the whole buffer as number n_param or n_param + 1
 * (traces/bits.h). */
static hp_status hash_buffer(const hp_job *j, int32_t iter, hp_buffer_kind kind, hp_error *err) {
    const hp_role *r = j->train.role;
    const hp_buffer *b = &r->buffer[kind];
    const hp_graph *g = j->plan.graph;
    const int64_t elem = hp_dtype_bytes((hp_dtype)b->dtype);
    unsigned char *view = NULL;
    if (b->bytes == 0) return HP_OK;
    HP_TRY(hp_memory_view(&j->device.memory, j->device.arena + b->offset, b->bytes, (void **)&view, err));
    if (!j->hashes.by_param) sample_hash(j, iter, g->n_param + (kind == HP_BUF_STATE), view, b->bytes);
    for (int p = 0; p < g->n_param && j->hashes.by_param; p++) {
        const hp_param_place *at = &r->place[p];
        if (at->here && hp_param_trained(&g->param[p]) == (kind == HP_BUF_WEIGHTS))
            sample_hash(j, iter, p, view + at->offset * elem, at->count * elem);
    }
    return hp_memory_view_end(&j->device.memory, j->device.arena + b->offset, b->bytes, view, false, err);
}

static hp_status hash_weights(const hp_job *j, int32_t iter, hp_error *err) {
    if (!j->timing.ring || !j->hashes.wanted) return HP_OK;
    HP_TRY(hash_buffer(j, iter, HP_BUF_WEIGHTS, err));
    return hash_buffer(j, iter, HP_BUF_STATE, err);
}

void hp_job_note_images(const hp_job *j) {
    char text[512];
    if (j->comm->rank > 0 || !j->train.data || !hp_dataset_describe(j->train.data, text, sizeof text)) return;
    fprintf(stderr, "note: %s: %s\n", j->options->data.input ? j->options->data.input : j->options->data.name,
            text);
}

/* Step `done`, and what comes between it and the next. */
static hp_status train_one(hp_job *j, int64_t *done, double *step_s, hp_error *err) {
    HP_TRY(run_step(j, (int32_t)*done, step_s, err));
    if (*done == j->begin.step) hp_job_note_images(j);
    HP_TRY(hash_weights(j, (int32_t)*done, err));
    ++*done;
    HP_TRY(hp_job_nonfinite_judge(j, *done, err));
    HP_TRY(visit_checkpoint(j, *done, err));
    return sample_speed(j, *done, err);
}

hp_status hp_job_train(hp_job *j, hp_error *err) {
    double *step_s = NULL;
    const int64_t first = j->begin.step;
    sample(j, HP_COUNTER_PLANNED, 0, (double)j->device.arena_bytes);
    if (j->comm->rank == 0 && j->options->data.broken_percent >= 0)
        sample(j, HP_COUNTER_LEFT_OUT, 0, (double)(j->left_out[0] + j->left_out[1]));
    if (hp_graph_scales_loss(j->plan.graph) && j->scores.loss_scale.value <= 0)
        j->scores.loss_scale = hp_loss_scale_start();
    hp_status s = hp_job_nonfinite_open(j, err);
    if (s == HP_OK && j->comm->rank == 0) s = hp_report_begin(j->steps, err);
    int64_t done = first;
    if (s == HP_OK) s = sample_speed(j, first, err);
    while (s == HP_OK && done < j->steps && !j->saved.leaves) {
        step_s = make_room(step_s, done - first);
        s = train_one(j, &done, &step_s[done - first], err);
    }
    hp_job_nonfinite_close(j);
    j->steps = done;
    const int64_t n = done - first,
                  warm_up = n >= 3 ? 1 : 0; /* the first step touches its memory for the first time */
    j->scores.step_s = n > 0 ? median(step_s + warm_up, n - warm_up) : 0;
    free(step_s);
    return s;
}

static hp_status eval_batches(hp_job *j, hp_error *err) {
    const int64_t n = hp_loader_steps(j->eval.loader);
    hp_patience patience = {.fixed_s = j->options->deadline_s};
    double sum[HP_METRICS] = {0};
    for (int64_t b = 0; b < n; b++) {
        const hp_step step = {.step = b, .replica = j->replica, .seed = j->plan.seed};
        const int64_t t0 = hp_clock_now_ns(&j->timing.clock);
        HP_TRY(hp_interp_step(j->eval.interp, &step, (int32_t)(-1 - b), hp_patience_limit_s(&patience), err));
        const double took_s = 1e-9 * (double)(hp_clock_now_ns(&j->timing.clock) - t0);
        if (took_s > patience.longest_s) patience.longest_s = took_s;
        for (int m = 0; m < HP_METRICS; m++) sum[m] += hp_interp_metric(j->eval.interp)[m];
    }
    j->scores.accuracy = mean(sum, HP_METRIC_CORRECT);
    j->scores.eval_loss = mean(sum, HP_METRIC_LOSS);
    j->scores.eval_labels = (int64_t)sum[HP_METRIC_COUNTED];
    j->scores.iou = foreground_iou(j, sum);
    if (j->comm->rank == 0) sample(j, HP_COUNTER_ACCURACY, (int32_t)j->steps, j->scores.accuracy);
    return HP_OK;
}

hp_status hp_job_eval(hp_job *j, hp_error *err) {
    unsigned char *own = malloc((size_t)hp_job_state_bytes(j) + 1);
    HP_ASSERT(own);
    hp_status s = hp_job_state_sum(j, own, err);
    if (s == HP_OK) s = j->comm->ops->join(j->comm, j->plan.eval, err);
    if (s == HP_OK) s = eval_batches(j, err);
    if (s == HP_OK) s = j->comm->ops->join(j->comm, j->plan.program, err);
    if (s == HP_OK) s = hp_job_state_restore(j, own, err);
    free(own);
    return s;
}

static double rss_bytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? 1024.0 * (double)u.ru_maxrss : 0;
}

static int64_t peak_bytes(const hp_job *j) {
    const int64_t train = hp_interp_peak_bytes(j->train.interp);
    const int64_t eval = j->eval.interp ? hp_interp_peak_bytes(j->eval.interp) : 0;
    return train > eval ? train : eval;
}

/* A deployed network's steps are its evaluation if samples have labels. */
static bool score_steps(hp_job *j) {
    if (j->scores.sum[HP_METRIC_COUNTED] <= 0) return false;
    j->scores.accuracy = mean(j->scores.sum, HP_METRIC_CORRECT);
    j->scores.eval_loss = mean(j->scores.sum, HP_METRIC_LOSS);
    j->scores.eval_labels = (int64_t)j->scores.sum[HP_METRIC_COUNTED];
    j->scores.iou = foreground_iou(j, j->scores.sum);
    return true;
}

/* Images of the test split that were looked at, and all of them; synthetic ones have no end. */
static void report_images(const hp_job *j, hp_report_final *f) {
    const hp_job_pass *pass = j->plan.graph->deployed ? &j->train : &j->eval;
    const int64_t steps = pass == &j->eval && pass->loader ? hp_loader_steps(pass->loader) : j->steps;
    const int64_t done = steps * pass->program->batch, all = hp_dataset_count(pass->data);
    const bool endless = !j->options->data.input && strcmp(j->options->data.name, "synthetic") == 0;
    f->eval.text_bytes = hp_dataset_is_text(pass->data) ? j->scores.eval_labels : 0;
    f->eval.has_iou = f->eval.has_iou && !f->eval.text_bytes;
    f->eval.images = endless || done < all ? done : all - j->left_out[pass == &j->eval];
    f->eval.test_images = endless ? done : all;
}

static void sample_sent(const hp_job *j) {
    const hp_role *r = &j->plan.program->role[j->role];
    const int64_t *sent = hp_interp_sent_bytes(j->train.interp);
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].queue != 0) sample(j, HP_COUNTER_SENT, t, (double)sent[t]);
}

static void report_slide(const hp_job *j, hp_report_final *f) {
    const hp_vote v = hp_votes_verdict(j->sink.votes);
    f->slide.has = true;
    f->slide.patches = v.patches;
    f->slide.mean_class = v.mean_class;
    f->slide.majority_class = v.majority_class;
    f->slide.mean_share = v.mean_share;
    f->slide.majority_share = v.majority_share;
}

hp_status hp_job_report(hp_job *j, hp_error *err) {
    const int n = j->comm->size;
    const hp_sampler *sampler = j->timing.sampler;
    const bool scored = j->plan.graph->deployed ? score_steps(j) : j->options->eval;
    const double mine[] = {(double)peak_bytes(j),
                           (double)j->device.arena_bytes,
                           rss_bytes(),
                           (double)(j->comm->sent_bytes - (sampler ? hp_sampler_sent_bytes(sampler) : 0)),
                           (double)j->comm->direct_bytes,
                           sampler ? (double)hp_sampler_bytes(sampler) : 0};
    enum { FIGURES = sizeof mine / sizeof *mine };
    static const hp_counter COUNTERS[] = {HP_COUNTER_PEAK, HP_COUNTER_PLANNED, HP_COUNTER_RSS};
    for (int i = 0; i < 3; i++) sample(j, COUNTERS[i], (int32_t)j->steps, mine[i]);
    sample_sent(j);
    double *all = calloc((size_t)n * FIGURES, sizeof *all);
    HP_ASSERT(all);
    hp_status s = HP_OK;
    for (int i = 0; i < FIGURES && s == HP_OK; i++)
        s = hp_comm_share(j->comm, mine[i], all + i * n, "the other ranks' figures", err);
    hp_report_final f = {.steps = j->steps,
                         .loss = j->scores.loss,
                         .step_s = j->scores.step_s,
                         .images_per_s = j->scores.step_s > 0 ? (double)j->plan.batch / j->scores.step_s : 0,
                         .eval.has = scored,
                         .eval.accuracy = j->scores.accuracy,
                         .eval.loss = j->scores.eval_loss,
                         .eval.has_iou = scored && j->options->eval && !isnan(j->scores.iou),
                         .eval.iou = j->scores.iou,
                         .loss_scale = j->scores.loss_scale.value,
                         .skips = j->options->nan.skips > 0,
                         .skipped = j->scores.loss_scale.skipped,
                         .leaves_out = j->options->data.broken_percent >= 0,
                         .left_out = j->left_out[0] + j->left_out[1],
                         .ranks.n = n,
                         .ranks.peak_bytes = all,
                         .ranks.planned_bytes = all + n,
                         .ranks.rss_bytes = all + 2 * n,
                         .ranks.yardstick_bytes = all + 5 * n,
                         .ranks.sent_bytes = all + 3 * n,
                         .ranks.direct_bytes = all + 4 * n};
    if (j->saved.checkpoint) f.checkpoint = hp_checkpoint_cost_of(j->saved.checkpoint);
    if (scored) report_images(j, &f);
    if (j->sink.votes) report_slide(j, &f);
    if (s == HP_OK && j->comm->rank == 0) s = hp_report_end(&f, err);
    free(all);
    return s;
}
