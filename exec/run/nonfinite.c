/* nonfinite.c - steps whose loss or gradients are not finite; see nonfinite.h. */
#include "exec/run/nonfinite.h"

#include "exec/run/run_gather.h"
#include "networks/graph/precision.h"
#include "plan/program/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of numbers that were not finite, in the order in which they follow from each other: per layer in the
 * forward pass its parameters, then its output; the loss; per layer in the backward pass the gradients of its
 * parameters, then the gradient that it hands on. */
typedef enum place_kind { PARAMETER, OUTPUT, OF_LOSS, GRADIENT, HANDED_ON } place_kind;
typedef struct place {
    int64_t order; /* INT64_MAX: nothing */
    int32_t kind, layer, param, micro;
} place;

static const place NOWHERE = {.order = INT64_MAX};

typedef struct finder {
    const hp_job *j;
    place first;
} finder;

/* --- numbers --- */

static bool any_strange16(const uint16_t *x, uint16_t exponent, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if ((x[i] & exponent) == exponent) return true;
    return false;
}

static bool any_strange(const void *data, hp_dtype dtype, int64_t first, int64_t n) {
    if (dtype == HP_BF16) return any_strange16((const uint16_t *)data + first, 0x7f80, n);
    if (dtype == HP_F16) return any_strange16((const uint16_t *)data + first, 0x7c00, n);
    for (int64_t i = first; i < first + n; i++)
        if ((dtype == HP_F32 && !isfinite(((const float *)data)[i])) ||
            (dtype == HP_F64 && !isfinite(((const double *)data)[i])))
            return true;
    return false;
}

/* The part `made` of a buffer. */
static bool any_strange_in(const hp_job *j, const hp_buffer *b, const hp_box *made) {
    const int64_t row = hp_box_len(&b->box, HP_AXIS_W) * (int64_t)hp_box_len(&b->box, HP_AXIS_C);
    const int64_t h = hp_box_len(&b->box, HP_AXIS_H);
    for (int32_t n = 0; n < hp_box_len(&b->box, HP_AXIS_N); n++)
        if (any_strange(j->device.arena + b->offset, (hp_dtype)b->dtype,
                        (n * h + made->lo[HP_AXIS_H] - b->box.lo[HP_AXIS_H]) * row,
                        hp_box_len(made, HP_AXIS_H) * row))
            return true;
    return false;
}

/* --- one task --- */

static void note(finder *f, place_kind kind, int32_t layer, int32_t param, int32_t micro) {
    const int64_t n = f->j->plan.graph->n_layer;
    const int64_t order = kind < OF_LOSS    ? 2 * (int64_t)layer + kind
                          : kind == OF_LOSS ? 2 * n
                                            : 2 * n + 1 + 2 * (n - layer) + (kind - GRADIENT);
    if (order >= f->first.order) return;
    f->first = (place){.order = order, .kind = (int32_t)kind, .layer = layer, .param = param, .micro = micro};
}

/* Looks at the parameters of the task's layer, or at their gradients; skips those of which the rank has only
 * a part. */
static void look_at_params(finder *f, const hp_task *t, hp_buffer_kind kind) {
    const hp_job *j = f->j;
    const hp_role *r = j->train.role;
    const hp_layer *l = &j->plan.graph->layer[t->layer];
    const hp_buffer *b = &r->buffer[kind];
    for (int i = 0; i < l->n_param && !hp_keeps_parts(j->plan.program, (int)kind); i++) {
        const hp_param_place *at = &r->place[l->param[i]];
        if (at->here && hp_param_trained(&j->plan.graph->param[l->param[i]]) &&
            any_strange(j->device.arena + b->offset, (hp_dtype)b->dtype, at->offset, at->count))
            note(f, kind == HP_BUF_WEIGHTS ? PARAMETER : GRADIENT, t->layer, l->param[i], t->micro);
    }
}

static void look_at_box(finder *f, const hp_task *t, int32_t buffer, place_kind kind) {
    if (buffer < 0) return;
    const hp_buffer *b = &f->j->train.role->buffer[buffer];
    const hp_box made = kind == OUTPUT ? hp_task_box(t, &b->box) : b->box;
    const int32_t layer = t->op == HP_TASK_LOAD ? 0 : t->layer;
    if (any_strange_in(f->j, b, &made)) note(f, kind, layer, -1, t->micro);
}

static hp_status look_at_task(void *self, int32_t task, hp_error *err) {
    finder *f = self;
    const hp_graph *g = f->j->plan.graph;
    const hp_role *r = f->j->train.role;
    const hp_task *t = &r->task[task];
    (void)err;
    if (t->op != HP_TASK_LOAD && t->op != HP_TASK_LOSS && !hp_task_is_layer(t)) return HP_OK;
    const hp_operands o = hp_operands_of(g, r, t);
    if (t->op == HP_TASK_LOAD) look_at_box(f, t, o.x[0], OUTPUT);
    if (t->op == HP_TASK_LOSS) look_at_box(f, t, o.dx[0], OF_LOSS);
    if (t->op == HP_TASK_FWD) {
        look_at_params(f, t, HP_BUF_WEIGHTS);
        look_at_box(f, t, o.y, OUTPUT);
    }
    if (hp_task_is_layer(t) && hp_task_gradient(g, r, t)) look_at_params(f, t, HP_BUF_GRADS);
    for (int i = 0; t->op == HP_TASK_BWD && i < o.n_in; i++) look_at_box(f, t, o.dx[i], HANDED_ON);
    return HP_OK;
}

/* --- the first place --- */

/* All that is left of a step whose weights have changed: the last layers' gradients come first. */
static hp_status look_at_gradients(hp_job *j, finder *f, hp_error *err) {
    const hp_role *r = j->train.role;
    const hp_buffer *b = &r->buffer[HP_BUF_GRADS];
    void *view = NULL;
    if (b->bytes == 0 || hp_keeps_parts(j->plan.program, HP_BUF_GRADS)) return HP_OK;
    HP_TRY(hp_memory_view(&j->device.memory, j->device.arena + b->offset, b->bytes, &view, err));
    for (int p = 0; p < j->plan.graph->n_param; p++) {
        const hp_param *param = &j->plan.graph->param[p];
        const hp_param_place *at = &r->place[p];
        if (at->here && hp_param_trained(param) &&
            any_strange(view, (hp_dtype)b->dtype, at->offset, at->count))
            note(f, GRADIENT, param->layer, p, -1);
    }
    return hp_memory_view_end(&j->device.memory, j->device.arena + b->offset, b->bytes, view, false, err);
}

static hp_status first_of_all_ranks(const hp_job *j, place *first, hp_error *err) {
    place *all = calloc((size_t)j->comm->size, sizeof *all);
    HP_ASSERT(all);
    const place mine = *first;
    const hp_status s = hp_comm_share_bytes(j->comm, &mine, sizeof mine, all,
                                            "where the other ranks' numbers are not finite", err);
    for (int r = 0; s == HP_OK && r < j->comm->size; r++)
        if (all[r].order < first->order || r == 0) *first = all[r];
    free(all);
    return s;
}

static void say_place(const hp_job *j, const place *p, bool exact, char *out, size_t n) {
    const hp_graph *g = j->plan.graph;
    const char *layer = p->order < INT64_MAX ? g->layer[p->layer].name : "";
    char micro[40] = "";
    if (p->micro > 0 || (p->micro == 0 && j->plan.program->micro > 1))
        snprintf(micro, sizeof micro, " (micro-batch %d)", p->micro + 1);
    if (p->order == INT64_MAX)
        snprintf(out, n, exact ? "a sum of gradients over micro-batches or ranks" : "not known");
    else if (!exact)
        snprintf(out, n, "of all gradients, from the last layer on, that of %s of layer %s",
                 g->param[p->param].name, layer);
    else if (p->kind == PARAMETER)
        snprintf(out, n, "%s of layer %s, before the step", g->param[p->param].name, layer);
    else if (p->kind == OUTPUT)
        snprintf(out, n, p->layer == 0 ? "the input %s%s" : "the output of layer %s in the forward pass%s",
                 layer, micro);
    else if (p->kind == OF_LOSS)
        snprintf(out, n, "the gradient of the loss%s", micro);
    else if (p->kind == GRADIENT)
        snprintf(out, n, "the gradient of %s of layer %s in the backward pass%s", g->param[p->param].name,
                 layer, micro);
    else
        snprintf(out, n, "the gradient that layer %s hands on in the backward pass%s", layer, micro);
}

static hp_status find_first(hp_job *j, const hp_step *step, bool again, hp_error *err) {
    finder f = {.j = j, .first = NOWHERE};
    const double limit_s = hp_patience_limit_s(&j->timing.patience);
    HP_TRY(again ? hp_interp_again(j->train.interp, step, (int32_t)step->step, limit_s, look_at_task, &f, err)
                 : look_at_gradients(j, &f, err));
    HP_TRY(first_of_all_ranks(j, &f.first, err));
    say_place(j, &f.first, again, j->strange.first, sizeof j->strange.first);
    return HP_OK;
}

/* --- steps --- */

static bool program_has(const hp_program *p, bool (*is)(const hp_role *r)) {
    for (int i = 0; i < p->n_role; i++)
        if (is(&p->role[i])) return true;
    return false;
}

static bool looks_first(const hp_role *r) {
    for (int t = 0; t < r->n_task; t++)
        if (r->task[t].op == HP_TASK_FINITE) return true;
    return false;
}

static bool carries(const hp_role *r) {
    for (int b = HP_BUF_FIXED; b < r->n_buffer; b++)
        if (r->buffer[b].kind == HP_BUF_CARRY) return true;
    return false;
}

static bool scales(const hp_job *j) {
    return j->scores.loss_scale.value > 0;
}

hp_status hp_job_nonfinite_open(hp_job *j, hp_error *err) {
    const hp_program *p = j->plan.program;
    j->strange.looks_first = program_has(p, looks_first);
    if (j->options->nan.skips == 0) return HP_OK;
    if (p->mode != (int)HP_MODE_TRAIN)
        return hp_fail(err, HP_EPLAN, "--on-nan skip is for training, this plan trains nothing");
    if (!j->strange.looks_first)
        return hp_fail(
            err, HP_EPLAN,
            "--on-nan skip: the plan updates before all ranks know of the gradients: hplan simulate "
            "--clip-norm (with run --clip-norm 1e30 nothing is clipped)");
    if (program_has(p, carries))
        return hp_fail(
            err, HP_EPLAN,
            "--on-nan skip: the plan's codecs carry over what they leave out, of a skipped step too: "
            "hplan simulate without compress=");
    j->strange.kept = malloc((size_t)hp_job_state_bytes(j) + 1);
    HP_ASSERT(j->strange.kept);
    return HP_OK;
}

void hp_job_nonfinite_close(hp_job *j) {
    free(j->strange.kept);
    j->strange.kept = NULL;
}

static unsigned char *statistics(const hp_job *j) {
    return j->device.arena + j->train.role->buffer[HP_BUF_STATE].offset;
}

hp_status hp_job_nonfinite_keep(hp_job *j, hp_error *err) {
    const int64_t n = hp_job_state_bytes(j);
    if (!j->strange.kept || n == 0) return HP_OK;
    return j->device.memory.ops->get(&j->device.memory, j->strange.kept, statistics(j), n, err);
}

static hp_status skip(hp_job *j, hp_error *err) {
    j->strange.skipped = true;
    j->strange.in_row++;
    j->strange.restored++;
    if (!scales(j)) j->scores.loss_scale.skipped++;
    return hp_job_state_bytes(j) ? hp_job_state_restore(j, j->strange.kept, err) : HP_OK;
}

hp_status hp_job_nonfinite_look(hp_job *j, const hp_step *step, double loss, hp_error *err) {
    const bool overflowed = hp_interp_metric(j->train.interp)[HP_METRIC_OVERFLOW] > 0;
    const bool leaves_out = overflowed && j->options->nan.skips > 0;
    j->strange.skipped = false;
    j->strange.now = overflowed || !isfinite(loss);
    j->strange.gradient = overflowed && isfinite(loss);
    j->strange.first[0] = '\0';
    if (!j->strange.now) j->strange.in_row = 0;
    if (!j->strange.now || j->plan.program->mode != (int)HP_MODE_TRAIN || j->options->nan.goes_on)
        return HP_OK;
    /* what overflows in fp16 is found by halving the scale: no question where */
    if (!scales(j) && !(leaves_out && j->strange.in_row > 0)) {
        HP_TRY(find_first(j, step, overflowed && !j->device.memory.ops->streams, err));
        snprintf(j->strange.of_row, sizeof j->strange.of_row, "%s", j->strange.first);
    }
    return leaves_out ? skip(j, err) : HP_OK;
}

hp_status hp_job_nonfinite_judge(const hp_job *j, int64_t done, hp_error *err) {
    const hp_job_strange *s = &j->strange;
    if (!s->now || scales(j) || j->options->nan.goes_on || j->plan.program->mode != (int)HP_MODE_TRAIN)
        return HP_OK;
    if (s->skipped && s->in_row < j->options->nan.skips) return HP_OK;
    if (s->skipped)
        return hp_fail(
            err, HP_EPLAN,
            "%lld steps in a row, the last of them step %lld, were skipped since they are not finite: "
            "lower --lr, or look at the data. The first number that is not finite in the first of them: %s",
            (long long)s->in_row, (long long)done, s->of_row);
    return hp_fail(
        err, HP_EPLAN,
        "%s of step %lld is not a finite number: nothing of it is saved; lower --lr (--on-nan go-on "
        "trains on all the same, --on-nan skip leaves such steps out). The first that is not finite: %s",
        s->gradient ? "a gradient" : "the loss", (long long)done, s->first);
}
