/* report_timeline.c - one step as it was predicted and as it was measured: rows of ranks, their spans, when
 * those moved that first waited, and what each task is. The page draws it. */
#include "cli/report/report_data.h"

#include "cli/show/explain.h"
#include "costmodels/table.h"
#include "traces/trace_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 32,
    MOST_SPANS = 10000, /* of a side: what keeps the page under 3 MB and quick to draw */
    UNKNOWN = -1
};

/* A side of the timeline, while it is written. */
typedef struct side {
    const report *r;
    const hp_trace *t;
    const hp_trace_iter *it;
    bool of_plan; /* its tasks are those of the plan's program */
    report_row *row;
    int n_row, more_rows;
    int32_t *row_of;     /* per rank: its row, or UNKNOWN */
    int32_t *task_of;    /* per task of the trace: its number on the page, or UNKNOWN */
    int64_t shortest_ns; /* spans below it are left out */
    int64_t dropped, dropped_ns, shown_ns;
    json_t *tasks;
} side;

/* --- which spans --- */

static int64_t length_of(const hp_trace_span *s) {
    return s->t1_ns - s->t0_ns;
}

static int longest_first(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static bool has_row(const side *s, const hp_trace_span *span) {
    return span->task >= 0 && span->rank < s->t->ranks && s->row_of[span->rank] != UNKNOWN;
}

/* The length below which spans are left out, so that MOST_SPANS are left. */
static int64_t shortest_shown(const side *s) {
    int64_t *length = HP_NEW(s->r->arena, int64_t, s->it->last - s->it->first + 1), n = 0;
    for (int64_t i = s->it->first; i < s->it->last; i++)
        if (has_row(s, &s->t->span[i])) length[n++] = length_of(&s->t->span[i]);
    if (n <= MOST_SPANS) return 0;
    qsort(length, (size_t)n, sizeof *length, longest_first);
    return length[MOST_SPANS - 1] + 1;
}

/* --- tasks --- */

/* The task in the program; NULL: the trace is not of this plan. */
static const hp_task *planned_task(const side *s, const hp_trace_task *k) {
    const hp_program *p = s->r->plan.program;
    if (!s->of_plan || k->role < 0 || k->role >= p->n_role || k->task < 0 ||
        k->task >= p->role[k->role].n_task)
        return NULL;
    const hp_task *t = &p->role[k->role].task[k->task];
    return t->op == k->op ? t : NULL;
}

/* [label, phase, queue, layer, micro-batch, bytes, source of the cost, meeting]; -1: none */
static json_t *task_json(const side *s, const hp_trace_task *k) {
    const hp_task *t = planned_task(s, k);
    return json_pack("[s, i, i, i, i, I, i, i]", k->label, (int)k->phase, (int)k->queue,
                     t ? (int)t->layer : UNKNOWN, t ? (int)t->micro : UNKNOWN, (json_int_t)k->bytes,
                     t ? (int)s->r->costs->cost[k->role][k->task].source : UNKNOWN, (int)k->meeting);
}

static int number_of(side *s, int32_t task) {
    if (s->task_of[task] == UNKNOWN) {
        s->task_of[task] = (int32_t)json_array_size(s->tasks);
        json_array_append_new(s->tasks, task_json(s, &s->t->task[task]));
    }
    return s->task_of[task];
}

/* --- rows --- */

static json_t *row_json(const side *s, const report_row *row) {
    const hp_program *p = s->r->plan.program;
    char place[256] = "", plain[256];
    if (s->of_plan) explain_place(&s->r->plan, row->rank % p->n_role, place, sizeof place);
    return json_pack("{s:i, s:i, s:i, s:s, s:[], s:[]}", "rank", row->rank, "ranks", row->ranks, "replica",
                     row->rank / (s->t->n_role ? s->t->n_role : 1), "place",
                     cli_plain(place, plain, sizeof plain), "spans", "waits");
}

static void append(json_t *row, const char *list, int64_t number) {
    json_array_append_new(json_object_get(row, list), json_integer(number));
}

/* A row while its spans are added, in the order of their starts. */
typedef struct cursor {
    int64_t before_ns; /* start of the span before */
    int64_t idle_ns;   /* end of the compute tasks so far */
} cursor;

/* The compute queue waits from idle_ns to `until`: [start, length] from the start of the step. */
static void add_wait(const side *s, json_t *row, const cursor *c, int64_t until) {
    if (until - c->idle_ns <= s->shortest_ns) return;
    append(row, "waits", c->idle_ns - s->it->t0_ns);
    append(row, "waits", until - c->idle_ns);
}

/* [task, start after the span before, length, waiting] */
static void add_span(side *s, json_t *row, cursor *c, const hp_trace_span *span, int64_t met_ns) {
    const bool shown = length_of(span) >= s->shortest_ns;
    if (s->t->task[span->task].queue == HP_QUEUE_COMPUTE) {
        add_wait(s, row, c, span->t0_ns);
        if (span->t1_ns > c->idle_ns) c->idle_ns = span->t1_ns;
    }
    *(shown ? &s->shown_ns : &s->dropped_ns) += length_of(span);
    s->dropped += !shown;
    if (!shown) return;
    append(row, "spans", number_of(s, span->task));
    append(row, "spans", span->t0_ns - c->before_ns);
    append(row, "spans", length_of(span));
    append(row, "spans", met_ns - span->t0_ns);
    c->before_ns = span->t0_ns;
}

/* All in nanoseconds. */
static json_t *rows_json(side *s) {
    const int64_t *met = hp_trace_met(s->r->arena, s->t, s->it);
    cursor *c = HP_NEW(s->r->arena, cursor, s->n_row + 1);
    json_t *rows = json_array();
    for (int i = 0; i < s->n_row; i++) {
        json_array_append_new(rows, row_json(s, &s->row[i]));
        c[i] = (cursor){s->it->t0_ns, s->it->t0_ns};
    }
    for (int64_t i = s->it->first; i < s->it->last; i++) {
        const hp_trace_span *span = &s->t->span[i];
        if (!has_row(s, span)) continue;
        const int row = s->row_of[span->rank];
        add_span(s, json_array_get(rows, (size_t)row), &c[row], span, met[i - s->it->first]);
    }
    for (int i = 0; i < s->n_row; i++) add_wait(s, json_array_get(rows, (size_t)i), &c[i], s->it->t1_ns);
    return rows;
}

static void number_rows(side *s) {
    s->n_row = report_rows(s->r, s->t->n_rank, MOST_ROWS, &s->row, &s->more_rows);
    s->row_of = HP_NEW(s->r->arena, int32_t, s->t->ranks + 1);
    s->task_of = HP_NEW(s->r->arena, int32_t, s->t->n_task + 1);
    for (int i = 0; i < s->t->ranks; i++) s->row_of[i] = UNKNOWN;
    for (int i = 0; i < s->t->n_task; i++) s->task_of[i] = UNKNOWN;
    for (int i = 0; i < s->n_row; i++)
        if (s->row[i].rank < s->t->ranks) s->row_of[s->row[i].rank] = i;
}

static json_t *side_json(const report *r, const char *name, const hp_trace *t) {
    side s = {.r = r,
              .t = t,
              .it = hp_plot_typical_iter(r->arena, t),
              .of_plan = strcmp(t->plan_hash, r->plan.hash.hex) == 0,
              .tasks = json_array()};
    number_rows(&s);
    s.shortest_ns = shortest_shown(&s);
    json_t *rows = rows_json(&s);
    const double all_ns = (double)(s.shown_ns + s.dropped_ns);
    return json_pack("{s:s, s:o, s:f, s:i, s:i, s:s, s:i, s:I, s:I, s:f, s:o, s:o}", "name", name, "step_s",
                     report_known(s.it->step_s), "extent_s", (double)(s.it->t1_ns - s.it->t0_ns) * 1e-9,
                     "step", s.it->iter + 1, "ranks", (int)t->ranks, "host", t->host, "more_rows",
                     s.more_rows, "dropped", (json_int_t)s.dropped, "shortest_ns", (json_int_t)s.shortest_ns,
                     "dropped_share", all_ns > 0 ? (double)s.dropped_ns / all_ns : 0, "tasks", s.tasks,
                     "rows", rows);
}

static json_t *layers_json(const report *r) {
    json_t *list = json_array();
    for (int i = 0; i < r->plan.graph->n_layer; i++)
        json_array_append_new(list, report_text(r, r->plan.graph->layer[i].name));
    return list;
}

json_t *report_timeline(const report *r) {
    if (!r->sim && !r->exec) return report_absent("No step is recorded.", report_command(r, "run", r->path));
    json_t *sides = json_array();
    if (r->sim) json_array_append_new(sides, side_json(r, "predicted", r->sim));
    if (r->exec) json_array_append_new(sides, side_json(r, "measured", r->exec));
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o}", "layers", layers_json(r), "phases",
                     report_names(hp_phase_names, HP_PHASES), "sources",
                     report_names(hp_source_names, HP_SOURCE_GUESS + 1), "sides", sides, "command",
                     report_command(r, "plot timeline", r->exec ? r->exec_path : r->path), "to_measure",
                     r->exec ? json_null() : json_string(report_command(r, "run", r->path)));
}
