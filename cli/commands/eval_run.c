/* eval_run.c - a plan by precision, hplan-exec over the test split with --output, and what its logits say. */
#include "cli/commands/eval_run.h"
#include "cli/cli.h"
#include "cli/commands/run_here.h"
#include "cli/commands/command_weights.h"
#include "traces/logits.h"
#include "traces/trace_text.h"

#include <math.h>
#include <string.h>

static double field(const json_t *final, const char *key) {
    const json_t *v = json_object_get(final, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static double largest(const json_t *array) {
    double most = NAN;
    for (size_t i = 0; i < json_array_size(array); i++)
        most = fmax(most, json_number_value(json_array_get(array, i))); /* fmax ignores NaN */
    return most;
}

static hp_status read_line(void *self, const char *line, hp_error *err) {
    eval_result *r = self;
    json_t *o = json_loads(line, 0, NULL);
    const bool object = json_is_object(o);
    if (json_object_get(o, "final")) {
        r->accuracy = field(o, "accuracy");
        r->images_per_s = field(o, "images_per_s");
        r->peak_bytes = largest(json_object_get(o, "peak_bytes"));
    }
    json_decref(o);
    return object
               ? HP_OK
               : hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", line);
}

/* Adds hplan-exec's options: the test split once, in file order, its logits to `logits`. */
static hp_status add_options(hp_arena *arena, const eval_setup *s, const hp_plan *plan, const workspace *w,
                             const char *prec, const char *logits, cli_launch *l, hp_error *err) {
    const char *given = s->quant && !strcmp(prec, "int8") ? s->quant : s->weights, *weights = NULL;
    HP_TRY(cli_weights_file(arena, given, plan->image_h, plan->image_w, w->dir, &weights, err));
    l->option[l->n_option++] = "--eval";
    l->option[l->n_option++] = hp_arena_printf(arena, "--data=%s", s->data);
    l->option[l->n_option++] = hp_arena_printf(arena, "--output=%s", logits);
    if (weights) l->option[l->n_option++] = hp_arena_printf(arena, "--init=%s", weights);
    for (int i = 0; i < s->n_pass; i++) l->option[l->n_option++] = s->pass[i];
    return HP_OK;
}

static hp_status launch(hp_arena *arena, const eval_setup *s, const workspace *w, const char *prec,
                        eval_result *r, hp_error *err) {
    serve_request request = s->request;
    hp_plan plan;
    const char *path = hp_arena_printf(arena, "%s/plan-%s.db", w->dir, prec),
               *logits = hp_arena_printf(arena, "%s/logits-%s.npy", w->dir, prec);
    request.prec = prec;
    if (s->quant && !strcmp(prec, "int8"))
        HP_TRY(cli_weights_float_layers(arena, s->quant, &request.float_layers, err));
    if (request.float_layers && !request.float_layers[0]) request.float_layers = NULL;
    HP_TRY(serve_plan_write(arena, &request, path, &plan, err));
    const run_here here = {.path = plan.net, .force = true, .smaller = "give a smaller --batch or --image"};
    HP_TRY(run_here_check(arena, &plan, &here, err));
    cli_launch l = {.plan = path,
                    .scratch = w->dir,
                    .ranks = hp_program_ranks(plan.program),
                    .on_gpus = hp_device_on_gpu(plan.device),
                    .threads = (int)s->threads,
                    .line = read_line,
                    .self = r};
    HP_TRY(add_options(arena, s, &plan, w, prec, logits, &l, err));
    HP_TRY(cli_launch_run(&l, err));
    return hp_npy_read(arena, logits, &r->logits, err);
}

hp_status eval_run(hp_arena *arena, const eval_setup *s, const workspace *w, const char *prec, eval_result *r,
                   hp_error *err) {
    *r = (eval_result){.name = prec, .accuracy = NAN, .peak_bytes = NAN, .images_per_s = NAN};
    const hp_status status = launch(arena, s, w, prec, r, err);
    if (!serve_impossible(status)) return status == HP_OK ? HP_OK : hp_fail_in(err, prec);
    r->why = hp_text_clean(arena, err->text);
    return HP_OK;
}

static bool same_shape(const hp_npy *a, const hp_npy *b) {
    bool same = a->n_dim == b->n_dim;
    for (int i = 0; i < a->n_dim && same; i++) same = a->dim[i] == b->dim[i];
    return same;
}

hp_status eval_compare(const eval_result *reference, eval_result *r, hp_error *err) {
    const hp_npy *x = &reference->logits, *y = &r->logits;
    if (y->n_dim < 2 || y->count == 0)
        return hp_fail(err, HP_EDATA, "%s: logits are an array of at least (images, classes)", r->name);
    if (!same_shape(x, y))
        return hp_fail(err, HP_EDATA, "%s and %s: the logits have different shapes", reference->name,
                       r->name);
    const int64_t classes = y->dim[y->n_dim - 1];
    r->agreement = hp_logits_agreement(x->data, y->data, y->count / classes, classes);
    r->sqnr_db = hp_logits_sqnr_db(x->data, y->data, y->count);
    return HP_OK;
}
