/* export_chrome.c - Chrome trace JSON, streamed; jansson escapes texts, once per task. */
#include "traces/export/trace_export.h"
#include "traces/trace_lanes.h"
#include "traces/outfile.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

enum { LANES_PER_QUEUE = 1000 }; /* tid = queue kind * this + lane: keeps the tracks in order */

typedef struct writer {
    hp_arena *arena;
    const hp_trace *t;
    FILE *f;
    int64_t base_ns; /* earliest start: time 0 of the file */
    bool any;
} writer;

/* A JSON string with its quotes. */
static const char *quoted(hp_arena *arena, const char *text) {
    json_t *s = json_string(text);
    HP_ASSERT(s != NULL); /* texts are cleaned: valid UTF-8 */
    char *dump = json_dumps(s, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    HP_ASSERT(dump != NULL);
    const char *copy = hp_arena_strdup(arena, dump);
    free(dump);
    json_decref(s);
    return copy;
}

static void next_event(writer *w) {
    fputs(w->any ? ",\n" : "\n", w->f);
    w->any = true;
}

static int64_t earliest(const hp_trace *t) {
    int64_t base = INT64_MAX;
    for (int64_t i = 0; i < t->n_span; i++)
        if (t->span[i].t0_ns < base) base = t->span[i].t0_ns;
    return t->n_span ? base : 0;
}

/* Nanoseconds as microseconds with three decimals, exactly. */
static void write_us(writer *w, const char *key, int64_t ns) {
    fprintf(w->f, ",\"%s\":%s%" PRId64 ".%03d", key, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000,
            (int)((ns < 0 ? -ns : ns) % 1000));
}

/* Names the tracks in use: one process per rank, one thread per queue kind and lane. */
static void write_names(writer *w, const int32_t *lane) {
    const hp_trace *t = w->t;
    int32_t *lanes =
        HP_NEW(w->arena, int32_t, (int64_t)t->ranks * 4); /* per rank and queue kind: number of lanes */
    for (int64_t i = 0; i < t->n_span; i++) {
        int32_t *n = &lanes[t->span[i].rank * 4 + hp_trace_span_queue(t, &t->span[i])];
        if (lane[i] + 1 > *n) *n = lane[i] + 1;
    }
    for (int rank = 0; rank < t->ranks; rank++) {
        next_event(w);
        fprintf(
            w->f,
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"rank %d\"}}",
            rank, rank);
        for (int q = 0; q < 4; q++)
            for (int k = 0; k < lanes[rank * 4 + q]; k++) {
                next_event(w);
                fprintf(
                    w->f,
                    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s",
                    rank, q * LANES_PER_QUEUE + k, hp_queue_names[q]);
                if (k) fprintf(w->f, " %d", k + 1);
                fputs("\"}}", w->f);
            }
    }
}

static void write_span(writer *w, const hp_trace_span *s, int lane, const char *const *label) {
    const bool eval = s->task < 0;
    const hp_trace_task *k = eval ? NULL : &w->t->task[s->task];
    next_event(w);
    fprintf(w->f, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":", s->rank,
            hp_trace_span_queue(w->t, s) * LANES_PER_QUEUE + lane);
    if (eval)
        fprintf(w->f, "\"eval task %d\",\"cat\":\"eval\"", s->eval_task);
    else
        fprintf(w->f, "%s,\"cat\":\"%s\"", label[s->task], hp_phase_names[k->phase]);
    write_us(w, "ts", s->t0_ns - w->base_ns);
    write_us(w, "dur", s->t1_ns - s->t0_ns);
    fprintf(w->f, ",\"args\":{\"task\":%d,\"iter\":%d", s->eval_task, s->iter);
    if (!eval && k->bytes) fprintf(w->f, ",\"bytes\":%" PRId64, k->bytes);
    fputs("}}", w->f);
}

static void write_counter(writer *w, const hp_export_counter *c) {
    const char *name = quoted(w->arena, c->name);
    for (int64_t i = 0; i < c->n; i++) {
        if (!isfinite(c->value[i].value)) continue; /* JSON has no NaN or infinity */
        next_event(w);
        fprintf(w->f, "{\"ph\":\"C\",\"pid\":%d,\"tid\":0,\"name\":%s", c->value[i].rank, name);
        write_us(w, "ts", c->value[i].t_ns - w->base_ns);
        fprintf(w->f, ",\"args\":{\"value\":%.17g}}", c->value[i].value);
    }
}

static void write_trace(writer *w, const hp_export_counter *counters, int n_counter) {
    const hp_trace *t = w->t;
    const int32_t *lane = hp_trace_lanes(w->arena, t);
    const char **label = HP_NEW(w->arena, const char *, t->n_task);
    for (int i = 0; i < t->n_task; i++) label[i] = quoted(w->arena, t->task[i].label);
    fprintf(w->f,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"kind\":%s,\"strategy\":%s,\"machine\":%s,\"hplan\":"
            "%s},",
            quoted(w->arena, t->kind), quoted(w->arena, t->strategy), quoted(w->arena, t->machine),
            quoted(w->arena, t->version));
    fputs("\"traceEvents\":[", w->f);
    write_names(w, lane);
    for (int64_t i = 0; i < t->n_span; i++) write_span(w, &t->span[i], lane[i], label);
    for (int i = 0; i < n_counter; i++) write_counter(w, &counters[i]);
    fputs("\n]}\n", w->f);
}

hp_status hp_export_chrome(hp_arena *arena, const hp_trace *t, const hp_export_counter *counters,
                           int n_counter, const char *path, hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    writer w = {arena, t, o.f, earliest(t), false};
    write_trace(&w, counters, n_counter);
    return hp_outfile_commit(&o, err);
}
