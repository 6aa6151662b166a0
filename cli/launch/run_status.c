/* run_status.c - the status object, written as JSON and as metrics. */
#include "cli/launch/run_status.h"

#include "base/clock.h"
#include "base/new_file.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double EVERY_S = 1;

/* Replaces the file atomically, without a sync, because its content is short-lived. Reports a failure once;
 * the run continues without it. */
static void write_text(run_status *s, const char *path, const char *text) {
    char temporary[HP_NEW_FILE_TEMPORARY];
    hp_error err = {.code = HP_OK, .text = ""};
    int fd = -1;
    if (hp_new_file_create(path, temporary, &fd, &err) == HP_OK) {
        const ssize_t n = (ssize_t)strlen(text);
        const bool whole = write(fd, text, (size_t)n) == n;
        if (close(fd) == 0 && whole && rename(temporary, path) == 0) return;
        hp_fail(&err, HP_EIO, "%s: %s", path, strerror(errno));
        unlink(temporary);
    }
    if (!s->failed) fprintf(stderr, "hplan: note: the run's status is not written: %s\n", err.text);
    s->failed = true;
}

static double number(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

/* https://prometheus.io/docs/instrumenting/exposition_formats: text, version 0.0.4 */
static const struct {
    const char *metric, *key, *type, *help;
} METRICS[] = {
    {"hplan_steps_total", "step", "counter", "Optimiser steps done."},
    {"hplan_steps_planned", "steps", "gauge", "Optimiser steps that the run was asked for."},
    {"hplan_loss", "loss", "gauge", "Mean loss of the last step."},
    {"hplan_images_per_second", "images_per_s", "gauge", "Images of the last step by its time."},
    {"hplan_step_seconds", "step_s", "gauge", "Time of the last step."},
    {"hplan_step_predicted_seconds", "predicted_s", "gauge", "Time of a step as predicted."},
    {"hplan_run_start_time_seconds", "started", "gauge", "When the run began, seconds since 1970."},
    {"hplan_run_up", "up", "gauge", "1 while the run goes on."},
};

static void write_metrics(run_status *s) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    HP_ASSERT(f);
    for (size_t i = 0; i < sizeof METRICS / sizeof *METRICS; i++) {
        if (!json_is_number(json_object_get(s->o, METRICS[i].key))) continue;
        fprintf(f, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", METRICS[i].metric, METRICS[i].help,
                METRICS[i].metric, METRICS[i].type, METRICS[i].metric, number(s->o, METRICS[i].key));
    }
    fclose(f);
    write_text(s, s->metrics, text);
    free(text);
}

static void write_all(run_status *s) {
    s->written_s = hp_now_s();
    json_object_set_new(s->o, "updated", json_integer((json_int_t)time(NULL)));
    char *text = json_dumps(s->o, JSON_COMPACT);
    HP_ASSERT(text);
    write_text(s, s->json, text);
    free(text);
    if (s->metrics) write_metrics(s);
}

hp_status run_status_begin(run_status *s, const workspace *w, const hp_plan *plan, const char *checkpoint,
                           const char *metrics, hp_error *err) {
    char strategy[HP_STRATEGY_TEXT], host[256] = "";
    *s = (run_status){.metrics = metrics};
    if (metrics) HP_TRY(hp_new_file_check_plain(metrics, err));
    gethostname(host, sizeof host - 1);
    snprintf(s->json, sizeof s->json, "%s/status.json", w->dir);
    s->o = json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:s*}", "schema", 1, "up", 1,
                     "pid", (int)getpid(), "host", host, "trace", w->final, "net", plan->net, "strategy",
                     hp_strategy_text(&plan->strategy, strategy), "device", plan->device->name, "ranks",
                     hp_program_ranks(plan->program), "step", 0, "predicted_s", plan->step_s, "checkpoint",
                     checkpoint);
    HP_ASSERT(s->o);
    json_object_set_new(s->o, "batch", json_integer((json_int_t)plan->batch));
    json_object_set_new(s->o, "started", json_integer((json_int_t)time(NULL)));
    write_all(s);
    return HP_OK;
}

void run_status_note(run_status *s, const json_t *line) {
    static const char *const KEYS[] = {"step", "loss", "step_s", "images_per_s"};
    const json_t *planned = json_object_get(line, "planned_steps");
    if (!s->o) return;
    if (planned) json_object_set_new(s->o, "steps", json_integer(json_integer_value(planned)));
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS && json_object_get(line, "step"); i++)
        if (json_object_get(line, KEYS[i])) json_object_set(s->o, KEYS[i], json_object_get(line, KEYS[i]));
    if (json_is_number(json_object_get(line, "step_s")) && json_object_get(line, "step")) {
        s->steps_s += number(line, "step_s");
        json_object_set_new(s->o, "mean_step_s", json_real(s->steps_s / (double)++s->n_step));
    }
    if (planned || s->n_step == 1 || hp_now_s() >= s->written_s + EVERY_S) write_all(s);
}

void run_status_end(run_status *s, hp_status outcome) {
    if (!s->o) return;
    json_object_set_new(s->o, "up", json_integer(0));
    json_object_set_new(s->o, "exit_code", json_integer((json_int_t)outcome));
    write_all(s);
    json_decref(s->o);
    s->o = NULL;
}
