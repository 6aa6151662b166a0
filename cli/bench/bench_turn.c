/* bench_turn.c - one turn of a series: starts hplan-exec for some queries and reads its output. */
#include "cli/bench/bench_job.h"
#include "cli/cli.h"
#include "cli/commands/serve_plan.h"
#include "traces/trace_text.h"

#include <math.h>

enum { WARM_UP = 1 }; /* the first query touches its memory for the first time */

typedef struct listener {
    hp_arena *arena;
    bench_job *job;
    int round;
} listener;

static int64_t largest(const json_t *final, const char *key) {
    const json_t *array = json_object_get(final, key);
    double most = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        most = fmax(most, json_number_value(json_array_get(array, i)));
    return most < 1 ? 1 : (int64_t)most;
}

static void keep_most(int64_t *have, int64_t value) {
    if (value > *have) *have = value;
}

static void read_final(hp_bench_series *s, const json_t *final) {
    keep_most(&s->planned_bytes, largest(final, "planned_bytes"));
    keep_most(&s->peak_bytes, largest(final, "peak_bytes"));
    keep_most(&s->rss_bytes, largest(final, "rss_bytes"));
}

static void read_query(const listener *l, const json_t *step) {
    hp_bench_series *s = &l->job->series;
    const int64_t number = json_integer_value(json_object_get(step, "step"));
    const double ns = 1e9 * json_number_value(json_object_get(step, "step_s"));
    if (number <= WARM_UP) return;
    int n = (int)s->n_query;
    HP_ROOM(l->arena, s->query, n, l->job->capacity);
    s->query[s->n_query++] = (hp_bench_query){l->round, ns < 1 ? 1 : llround(ns)};
}

static hp_status read_line(void *self, const char *line, hp_error *err) {
    const listener *l = self;
    json_t *o = json_loads(line, 0, NULL);
    const bool object = json_is_object(o);
    if (json_object_get(o, "final"))
        read_final(&l->job->series, o);
    else if (json_object_get(o, "step"))
        read_query(l, o);
    json_decref(o);
    return object
               ? HP_OK
               : hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", line);
}

/* Queries in this round: an equal share of --queries, or as many as --seconds allows. */
static int64_t queries_of(const bench_setup *s, const bench_job *job, int round) {
    static const double MOST = 1e5;
    if (s->queries) return (s->queries + s->rounds - 1 - round) / s->rounds;
    const double n = s->seconds / (double)s->rounds / job->expected_s;
    return n < 1 ? 1 : n > MOST ? (int64_t)MOST : (int64_t)n;
}

hp_status bench_job_turn(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job *job, int round,
                         hp_error *err) {
    listener self = {arena, job, round};
    const int64_t before = job->series.n_query;
    cli_launch l = {.plan = job->plan,
                    .scratch = w->dir,
                    .ranks = job->series.ranks,
                    .on_gpus = job->on_gpus,
                    .threads = (int)s->threads,
                    .line = read_line,
                    .self = &self};
    l.option[l.n_option++] =
        hp_arena_printf(arena, "--steps=%lld", (long long)queries_of(s, job, round) + WARM_UP);
    const hp_status status = cli_launch_run(&l, err);
    if (serve_impossible(status) || status == HP_EDEAD) { /* killed, most likely out of memory */
        job->why = hp_text_clean(arena, err->text);
        job->series.n_query = 0;
        return HP_OK;
    }
    if (status != HP_OK) {
        job->series.n_query = before; /* discards an incomplete round */
        return hp_fail_in(err, job->text);
    }
    if (job->series.n_query == before)
        return hp_fail(err, HP_EINTERNAL, "%s: hplan-exec reported no query", job->text);
    job->expected_s = hp_bench_median(&job->series).p50_s;
    return HP_OK;
}
