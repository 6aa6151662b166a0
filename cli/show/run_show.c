/* run_show.c - shows a run's lines as text or as JSON. */
#include "cli/show/run_show.h"
#include "cli/show/next.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

void run_show_start(run_show *s, bool json) {
    *s = (run_show){.json = json, .first_loss = NAN};
}

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* A cross-entropy is larger than 0, so a loss of 0 means images without labels. */
static bool no_labels(double loss) {
    return loss == 0;
}

static void show_step(run_show *s, const json_t *o) {
    char detail[80], time[32];
    s->steps_s += number(o, "step_s");
    if (isnan(s->first_loss)) s->first_loss = number(o, "loss");
    hp_format_seconds(number(o, "step_s"), time);
    if (no_labels(number(o, "loss")))
        snprintf(detail, sizeof detail, "%s", time);
    else
        snprintf(detail, sizeof detail, "loss %.4f  %s", number(o, "loss"), time);
    cli_progress_update(&s->bar, (long)json_integer_value(json_object_get(o, "step")), detail);
}

static hp_status print_unchanged(const char *line, hp_error *err) {
    puts(line);
    return cli_finish_stdout(err);
}

hp_status run_show_line(void *self, const char *line, hp_error *err) {
    run_show *s = self;
    json_t *o = json_loads(line, 0, NULL);
    if (!json_is_object(o)) {
        json_decref(o);
        return hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", line);
    }
    hp_status status = HP_OK;
    if (s->status) run_status_note(s->status, o);
    const json_t *plan = json_object_get(o, "planned_steps");
    if (plan) { /* for the progress bar only */
        s->started = !s->json;
        if (s->started) cli_progress_start(&s->bar, "step", (long)json_integer_value(plan));
    } else {
        if (json_object_get(o, "final"))
            s->final = json_incref(o);
        else if (s->json)
            status = print_unchanged(line, err);
        else
            show_step(s, o);
    }
    json_decref(o);
    return status;
}

void run_show_end(run_show *s) {
    if (s->started) cli_progress_end(&s->bar);
}

static double largest(const json_t *array) {
    double most = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        most = fmax(most, json_number_value(json_array_get(array, i)));
    return most;
}

static double total(const json_t *array) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(array); i++) sum += json_number_value(json_array_get(array, i));
    return sum;
}

/* The bytes sent, by route if there were two. */
static void show_messages(const json_t *f) {
    char all[32], straight[32];
    const double direct = total(json_object_get(f, "direct_bytes"));
    if (!(direct > 0)) return;
    printf("messages: %s sent, %s of them straight from one rank's memory into another's\n",
           hp_format_bytes(total(json_object_get(f, "sent_bytes")), all), hp_format_bytes(direct, straight));
}

static void show_text(const json_t *f) {
    printf("%.4f bits per byte on %.0f bytes of text that were held out, perplexity %.4f, loss %.4f nats; "
           "the next byte "
           "was right in %.2f%%\n",
           number(f, "bits_per_byte"), number(f, "eval_bytes"), number(f, "perplexity"),
           number(f, "eval_loss"), 100 * number(f, "accuracy"));
}

static void show_accuracy(const json_t *f) {
    const double images = number(f, "eval_images"), all = number(f, "test_images");
    printf("accuracy %.4f on ", number(f, "accuracy"));
    if (images < all) printf("%.0f of the %.0f images of ", images, all);
    printf("the test split, loss %.4f\n", number(f, "eval_loss"));
}

/* Prints the cost of saving, as a part of the steps' time. */
static void show_checkpoints(const json_t *c, double steps_s) {
    char bytes[32], time[32];
    if (!c) return;
    printf("checkpoints: %.0f of %s; saving held steps up for %s (%.2g %% of their time)\n",
           number(c, "saves"), hp_format_bytes(number(c, "bytes"), bytes),
           hp_format_seconds(number(c, "held_up_s"), time),
           steps_s > 0 ? 100 * number(c, "held_up_s") / steps_s : 0.0);
}

/* Results of classification by patches. */
static void show_slide(const json_t *s) {
    if (!s) return;
    printf("%.0f patches: class %.0f by mean probability (%.3f), class %.0f by majority (%.3f of them)\n",
           number(s, "patches"), number(s, "mean_class"), number(s, "mean_share"),
           number(s, "majority_class"), number(s, "majority_share"));
}

static void show_step_time(const json_t *f, const run_outcome *r, const char *samples) {
    char text[RUN_OUTCOME_TEXT], time[32];
    const double batch = number(f, "images_per_s") * number(f, "step_s");
    if (!r->known)
        printf("step %s measured (median)", hp_format_seconds(number(f, "step_s"), time));
    else
        printf("%s", run_outcome_text(r, text));
    printf("; %.3g %s/s\n", r->known ? batch / r->measured_s : number(f, "images_per_s"), samples);
}

static void show_summary(const run_show *s, const run_outcome *r, const char *trace, const char *kept) {
    char a[32], b[32], c[32];
    const json_t *f = s->final;
    printf("%d step%s", (int)number(f, "steps"), number(f, "steps") == 1 ? "" : "s");
    if (!no_labels(s->first_loss) || !no_labels(number(f, "loss")))
        printf(", loss %.4f at first, %.4f at last", s->first_loss, number(f, "loss"));
    printf("\n");
    show_step_time(f, r, s->samples);
    if (json_object_get(f, "accuracy")) (json_object_get(f, "bits_per_byte") ? show_text : show_accuracy)(f);
    if (json_object_get(f, "iou"))
        printf("intersection over union of the foreground %.4f (pixels)\n", number(f, "iou"));
    show_slide(json_object_get(f, "slide"));
    if (number(f, "skipped_steps") > 0 && isnan(number(f, "loss_scale")))
        printf("steps skipped since gradients were not finite: %.0f\n", number(f, "skipped_steps"));
    else if (number(f, "skipped_steps") > 0)
        printf("%.0f steps skipped: gradients overflowed fp16; the loss's scale is now %.10g\n",
               number(f, "skipped_steps"), number(f, "loss_scale"));
    if (number(f, "images_left_out") > 0)
        printf("images left out since they cannot be read: %.0f\n", number(f, "images_left_out"));
    if (isnan(number(f, "loss"))) printf("note: the loss is not a finite number any more: lower --lr\n");
    printf("memory of the fullest rank: %s planned, %s observed; %s resident\n",
           hp_format_bytes(largest(json_object_get(f, "planned_bytes")), a),
           hp_format_bytes(largest(json_object_get(f, "peak_bytes")), b),
           hp_format_bytes(largest(json_object_get(f, "rss_bytes")), c));
    show_messages(f);
    show_checkpoints(json_object_get(f, "checkpoints"), s->steps_s);
    char plain[4096], before[4096];
    printf("wrote %s", cli_plain(trace, plain, sizeof plain));
    if (kept[0]) printf(" (the one before is now %s)", cli_plain(kept, before, sizeof before));
    printf("\n");
    next_command compare = next_start("compare"), plot = next_start("plot timeline");
    next_word(&compare, trace);
    next_word(&plot, trace);
    next_print(stdout, &compare);
    next_print(stdout, &plot);
}

/* The steps that count are the trace's, and so are the figures. */
static void show_json(json_t *f, const run_outcome *r) {
    const double batch = number(f, "images_per_s") * number(f, "step_s");
    hp_error err;
    if (r) run_outcome_json(r, f);
    if (r && r->known) json_object_set_new(f, "images_per_s", json_real(batch / r->measured_s));
    cli_print_json(json_incref(f), &err);
}

void run_show_final(run_show *s, const run_outcome *r, const char *trace, const char *kept) {
    if (s->final && s->json)
        show_json(s->final, r);
    else if (s->final && r)
        show_summary(s, r, trace, kept);
    json_decref(s->final);
    s->final = NULL;
}
