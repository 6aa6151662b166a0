/* report.c - prints the JSON lines of a run. Numbers have 17 significant digits, which reproduce the same
 * bits. */
#include "exec/run/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* JSON has no NaN or infinity: a diverged loss is null. */
static void number(const char *key, double value) {
    if (isfinite(value))
        printf(",\"%s\":%.17g", key, value);
    else
        printf(",\"%s\":null", key);
}

static void numbers(const char *key, const double *value, int n) {
    printf(",\"%s\":[", key);
    for (int i = 0; i < n; i++) printf("%s%.17g", i ? "," : "", value[i]);
    printf("]");
}

/* Layers' names may come from an ONNX file. */
static void string(const char *key, const char *s) {
    printf(",\"%s\":\"", key);
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == '"' || *s == '\\')
            printf("\\u%04x", (unsigned)(unsigned char)*s);
        else
            putchar(*s);
    printf("\"");
}

static hp_status flushed(hp_error *err) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return HP_OK;
    return hp_fail(err, HP_EIO, "cannot write to stdout: %s", strerror(errno));
}

hp_status hp_report_begin(int64_t steps, hp_error *err) {
    printf("{\"planned_steps\":%lld}\n", (long long)steps);
    return flushed(err);
}

hp_status hp_report_step(const hp_report_step_of *s, hp_error *err) {
    printf("{\"step\":%lld", (long long)s->step);
    number("loss", s->loss);
    number("step_s", s->step_s);
    number("step_cpu_s", s->step_cpu_s);
    number("images_per_s", s->images_per_s);
    if (s->lr > 0) number("lr", s->lr);
    if (s->norm >= 0) number("gradient_norm", s->norm);
    if (s->loss_scale > 0) number("loss_scale", s->loss_scale);
    if (s->skipped) printf(",\"skipped\":true");
    if (s->strange[0]) string("not_finite", s->strange);
    printf("}\n");
    return flushed(err);
}

hp_status hp_report_end(const hp_report_final *f, hp_error *err) {
    printf("{\"final\":true,\"schema\":1,\"steps\":%lld", (long long)f->steps);
    number("loss", f->loss);
    number("step_s", f->step_s);
    number("images_per_s", f->images_per_s);
    if (f->loss_scale > 0) number("loss_scale", f->loss_scale);
    if (f->loss_scale > 0 || f->skips) printf(",\"skipped_steps\":%lld", (long long)f->skipped);
    if (f->leaves_out) printf(",\"images_left_out\":%lld", (long long)f->left_out);
    if (f->checkpoint.saves > 0) {
        printf(",\"checkpoints\":{\"saves\":%lld,\"bytes\":%lld", (long long)f->checkpoint.saves,
               (long long)f->checkpoint.bytes);
        number("held_up_s", f->checkpoint.total_s);
        printf("}");
    }
    if (f->eval.has) {
        number("accuracy", f->eval.accuracy);
        if (f->eval.has_iou) number("iou", f->eval.iou);
        number("eval_loss", f->eval.loss);
        printf(",\"eval_images\":%lld,\"test_images\":%lld", (long long)f->eval.images,
               (long long)f->eval.test_images);
    }
    if (f->eval.text_bytes > 0) {
        number("perplexity", exp(f->eval.loss));
        number("bits_per_byte", f->eval.loss / log(2));
        printf(",\"eval_bytes\":%lld", (long long)f->eval.text_bytes);
    }
    if (f->slide.has) {
        printf(",\"slide\":{\"patches\":%lld,\"mean_class\":%d", (long long)f->slide.patches,
               f->slide.mean_class);
        number("mean_share", f->slide.mean_share);
        printf(",\"majority_class\":%d", f->slide.majority_class);
        number("majority_share", f->slide.majority_share);
        printf("}");
    }
    numbers("peak_bytes", f->ranks.peak_bytes, f->ranks.n);
    numbers("planned_bytes", f->ranks.planned_bytes, f->ranks.n);
    numbers("rss_bytes", f->ranks.rss_bytes, f->ranks.n);
    numbers("yardstick_bytes", f->ranks.yardstick_bytes, f->ranks.n);
    numbers("sent_bytes", f->ranks.sent_bytes, f->ranks.n);
    numbers("direct_bytes", f->ranks.direct_bytes, f->ranks.n);
    printf("}\n");
    return flushed(err);
}
