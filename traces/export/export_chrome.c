/* export_chrome.c - Chrome trace JSON, streamed; jansson escapes texts, once per task. */
#include "traces/export/trace_export.h"
#include "traces/export/flights.h"
#include "traces/trace_lanes.h"
#include "traces/outfile.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

enum {
    QUEUES = 4,      /* hp_queue_kind */
    FIRST_TRACK = 10 /* above the processes' numbers: a thread of its process' number is the main one */
};

typedef struct writer {
    hp_arena *arena;
    FILE *f;
    bool any;
    int64_t flows; /* numbers of flows, over all sides */
    int64_t next_track;
    /* of the side that is being written: */
    const hp_trace *t;
    int pid;
    int64_t base_ns;    /* time 0 of the file */
    int32_t *lane;      /* per span */
    int64_t *track;     /* per rank and queue kind: tid of its lane 0 */
    const char **label; /* per task */
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

/* Numbers the tracks in use by rank, queue kind and lane; no two in the file are equal. */
static void number_tracks(writer *w) {
    const hp_trace *t = w->t;
    const int64_t n = (int64_t)t->ranks * QUEUES;
    int32_t *lanes = HP_NEW(w->arena, int32_t, n);
    for (int64_t i = 0; i < t->n_span; i++) {
        int32_t *k = &lanes[(int64_t)t->span[i].rank * QUEUES + hp_trace_span_queue(t, &t->span[i])];
        if (w->lane[i] + 1 > *k) *k = w->lane[i] + 1;
    }
    w->track = HP_NEW(w->arena, int64_t, n + 1);
    w->track[0] = w->next_track;
    for (int64_t i = 0; i < n; i++) w->track[i + 1] = w->track[i] + lanes[i];
    w->next_track = w->track[n];
}

static int64_t track_of(const writer *w, int64_t span) {
    const hp_trace_span *s = &w->t->span[span];
    return w->track[(int64_t)s->rank * QUEUES + hp_trace_span_queue(w->t, s)] + w->lane[span];
}

static void write_process_name(writer *w) {
    const hp_trace *t = w->t;
    next_event(w);
    fprintf(w->f, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"%s\"}}",
            w->pid, strcmp(t->kind, "sim") == 0 ? "predicted" : "measured");
    next_event(w);
    fprintf(
        w->f,
        "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"tid\":0,\"args\":{\"sort_index\":%d}}",
        w->pid, w->pid);
    next_event(w);
    fprintf(w->f, "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"tid\":0,\"args\":{\"labels\":%s}}",
            w->pid, quoted(w->arena, t->strategy));
}

static void write_track_names(writer *w) {
    for (int64_t i = 0; i < (int64_t)w->t->ranks * QUEUES; i++)
        for (int64_t tid = w->track[i]; tid < w->track[i + 1]; tid++) {
            const int64_t lane = tid - w->track[i];
            next_event(w);
            fprintf(w->f,
                    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%" PRId64
                    ",\"args\":{\"name\":\"rank %" PRId64 " %s",
                    w->pid, tid, i / QUEUES, hp_queue_names[i % QUEUES]);
            if (lane) fprintf(w->f, " %" PRId64, lane + 1);
            fputs("\"}}", w->f);
            next_event(w);
            fprintf(w->f,
                    "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%" PRId64
                    ",\"args\":{\"sort_index\":%" PRId64 "}}",
                    w->pid, tid, tid);
        }
}

static void write_span(writer *w, int64_t index) {
    const hp_trace_span *s = &w->t->span[index];
    const bool eval = s->task < 0;
    const hp_trace_task *k = eval ? NULL : &w->t->task[s->task];
    next_event(w);
    fprintf(w->f, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRId64 ",\"name\":", w->pid, track_of(w, index));
    if (eval)
        fprintf(w->f, "\"eval task %d\",\"cat\":\"eval\"", s->eval_task);
    else
        fprintf(w->f, "%s,\"cat\":\"%s\"", w->label[s->task], hp_phase_names[k->phase]);
    write_us(w, "ts", s->t0_ns - w->base_ns);
    write_us(w, "dur", s->t1_ns - s->t0_ns);
    fprintf(w->f, ",\"args\":{\"rank\":%d,\"task\":%d,\"iter\":%d", s->rank, s->eval_task, s->iter);
    if (!eval && k->bytes) fprintf(w->f, ",\"bytes\":%" PRId64, k->bytes);
    fputs("}}", w->f);
}

static void write_flow_end(writer *w, const char *what, int64_t span, int64_t t_ns) {
    next_event(w);
    fprintf(w->f,
            "{%s,\"id\":%" PRId64 ",\"name\":\"message\",\"cat\":\"message\",\"pid\":%d,\"tid\":%" PRId64,
            what, w->flows, w->pid, track_of(w, span));
    write_us(w, "ts", t_ns - w->base_ns);
    fputs("}", w->f);
}

static void write_flow(writer *w, const hp_flight *f) {
    w->flows++;
    write_flow_end(w, "\"ph\":\"s\"", f->from, f->t0_ns);
    write_flow_end(w, "\"ph\":\"f\",\"bp\":\"e\"", f->to, f->t1_ns);
}

static void write_value(writer *w, const char *name, int64_t t_ns, double value) {
    if (!isfinite(value)) return; /* JSON has no NaN or infinity */
    next_event(w);
    fprintf(w->f, "{\"ph\":\"C\",\"pid\":%d,\"tid\":0,\"name\":\"%s\"", w->pid, name);
    write_us(w, "ts", t_ns - w->base_ns);
    fprintf(w->f, ",\"args\":{\"value\":%.17g}}", value);
}

static void write_counter(writer *w, const hp_export_counter *c) {
    for (int64_t i = 0; i < c->n; i++) {
        char name[96];
        snprintf(name, sizeof name, "%.60s rank %d", c->name, c->value[i].rank);
        write_value(w, name, c->value[i].t_ns, c->value[i].value);
    }
}

static void write_flights(writer *w) {
    int64_t n_flight = 0, n = 0;
    const hp_flight *flight = hp_trace_flights(w->arena, w->t, &n_flight);
    for (int64_t i = 0; i < n_flight; i++)
        if (flight[i].from != flight[i].to) write_flow(w, &flight[i]);
    const hp_trace_value *v = hp_flights_bytes(w->arena, flight, n_flight, &n);
    for (int64_t i = 0; i < n; i++) write_value(w, "bytes in flight", v[i].t_ns, v[i].value);
}

static void write_side(writer *w, const hp_export_side *s) {
    w->t = &s->trace;
    w->lane = hp_trace_lanes(w->arena, w->t);
    w->label = HP_NEW(w->arena, const char *, w->t->n_task);
    for (int i = 0; i < w->t->n_task; i++) w->label[i] = quoted(w->arena, w->t->task[i].label);
    number_tracks(w);
    write_process_name(w);
    write_track_names(w);
    for (int64_t i = 0; i < w->t->n_span; i++) write_span(w, i);
    write_flights(w);
    for (int i = 0; i < s->n_counter; i++) write_counter(w, &s->counter[i]);
}

/* Time 0 of the prediction beside a measurement: so that it begins with the first step that counts. */
static int64_t base_beside(const hp_trace *prediction, const hp_trace *measured) {
    hp_trace counted = *measured;
    hp_trace_drop_warmup(&counted);
    if (counted.n_iter == 0) return earliest(prediction);
    return earliest(prediction) - (counted.iter[0].t0_ns - earliest(measured));
}

static void write_head(writer *w, const hp_trace *t) {
    fprintf(w->f,
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"kind\":%s,\"strategy\":%s,\"machine\":%s,\"hplan\":"
            "%s},",
            quoted(w->arena, t->kind), quoted(w->arena, t->strategy), quoted(w->arena, t->machine),
            quoted(w->arena, t->version));
    fputs("\"traceEvents\":[", w->f);
}

hp_status hp_export_chrome(hp_arena *arena, const hp_export_side *side, int n_side, const char *path,
                           hp_error *err) {
    hp_outfile o;
    HP_TRY(hp_outfile_open(path, &o, err));
    const hp_trace *last = &side[n_side - 1].trace; /* the measurement, where there is one */
    writer w = {.arena = arena, .f = o.f, .next_track = FIRST_TRACK};
    write_head(&w, last);
    for (int i = 0; i < n_side; i++) {
        const hp_trace *t = &side[i].trace;
        w.pid = i + 1;
        w.base_ns = i < n_side - 1 ? base_beside(t, last) : earliest(t);
        write_side(&w, &side[i]);
    }
    fputs("\n]}\n", w.f);
    return hp_outfile_commit(&o, err);
}
