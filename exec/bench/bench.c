/* bench.c - the order in which series are timed; see bench.h. */
#include "exec/bench/answer.h"
#include "exec/bench/bench_room.h"

#include "exec/yardstick/survey.h"

#include <stdlib.h>

typedef struct bench {
    hp_bench_setup setup;
    hp_bench_room room;
    hp_yard_survey *survey;
    int64_t done, of; /* visits to a size: finished, in all */
} bench;

/* The series of one operation, and their rows: [series * n_count + size]. */
typedef struct operation {
    const hp_bench_run *series;
    int n_series, n_count;
    int64_t count[HP_BENCH_MOST_SIZES];
    hp_bench_row *row;
    double *samples;
} operation;

static operation open_operation(const bench *b, int first) {
    const hp_bench_request *r = b->setup.r;
    const hp_bench_run *series = &b->setup.series[first];
    operation o = {.series = series};
    while (first + o.n_series < b->setup.n_series && series[o.n_series].what == series->what) o.n_series++;
    o.n_count = hp_bench_counts(&b->setup, series->what, o.count);
    const int64_t rows = (int64_t)o.n_series * o.n_count,
                  each = HP_BENCH_PLACES *
                         (hp_bench_samples(r, HP_BENCH_PIPELINED) + hp_bench_samples(r, HP_BENCH_BARRIERED));
    o.row = calloc((size_t)rows, sizeof *o.row);
    o.samples = calloc((size_t)(rows * each), sizeof *o.samples);
    HP_ASSERT(o.row && o.samples);
    double *at = o.samples;
    for (int64_t i = 0; i < rows; i++)
        for (int place = 0; place < HP_BENCH_PLACES; place++)
            for (int mode = 0; mode < HP_BENCH_MODES; mode++) {
                o.row[i].sample[place][mode] = at;
                at += hp_bench_samples(r, mode);
            }
    return o;
}

static void close_operation(operation *o) {
    free(o->row);
    free(o->samples);
}

/* Reverses the order in odd turns, so that drift does not favour the first. */
static int turned(int64_t turn, int i, int n) {
    return turn % 2 ? n - 1 - i : i;
}

static hp_status check_all(const bench *b, const operation *o, hp_error *err) {
    for (int i = 0; i < o->n_series * o->n_count; i++)
        for (int place = 0; place < HP_BENCH_PLACES; place++)
            HP_TRY(hp_bench_check(&b->room, &o->series[i / o->n_count], o->count[i % o->n_count], place,
                                  &o->row[i].wrong[place], err));
    return HP_OK;
}

/* Times all series at one size, side by side, in every mode. */
static hp_status time_size(const bench *b, const operation *o, int64_t turn, int size, hp_error *err) {
    for (int place = 0; place < HP_BENCH_PLACES; place++)
        for (int mode = 0; mode < HP_BENCH_MODES; mode++)
            for (int i = 0; i < o->n_series; i++) {
                const int s = turned(turn, i, o->n_series);
                double *sample = o->row[s * o->n_count + size].sample[place][mode] +
                                 turn * (mode == HP_BENCH_PIPELINED ? 1 : b->setup.r->iterations);
                HP_TRY(hp_bench_turn(&b->room, &o->series[s], o->count[size], place, mode, sample, err));
            }
    return HP_OK;
}

static hp_status sample_machine(const bench *b, hp_error *err) {
    double nothing = 0;
    HP_TRY(hp_yard_line_up(b->room.w, &nothing, 1, err));
    return hp_yard_survey_take(b->survey, 1, true, err);
}

static hp_status time_all(bench *b, const operation *o, hp_error *err) {
    for (int64_t turn = 0; turn < b->setup.r->turns; turn++)
        for (int i = 0; i < o->n_count; i++) {
            HP_TRY(sample_machine(b, err));
            HP_TRY(time_size(b, o, turn, turned(turn, i, o->n_count), err));
            HP_TRY(hp_bench_print_progress(b->room.w, ++b->done, b->of, err));
        }
    return HP_OK;
}

static hp_status print_all(const bench *b, const operation *o, hp_error *err) {
    for (int i = 0; i < o->n_series * o->n_count; i++)
        HP_TRY(hp_bench_print_row(&b->room, &o->series[i / o->n_count], o->count[i % o->n_count], &o->row[i],
                                  err));
    return HP_OK;
}

static hp_status measure(bench *b, int first, int *next, hp_error *err) {
    operation o = open_operation(b, first);
    hp_status s = check_all(b, &o, err);
    if (s == HP_OK) s = time_all(b, &o, err);
    if (s == HP_OK) s = print_all(b, &o, err);
    *next = first + o.n_series;
    close_operation(&o);
    return s;
}

static int64_t visits(const hp_bench_setup *s) {
    int64_t count[HP_BENCH_MOST_SIZES], n = 0;
    for (int i = 0; i < s->n_series; i++)
        if (i == 0 || s->series[i].what != s->series[i - 1].what)
            n += s->r->turns * hp_bench_counts(s, s->series[i].what, count);
    return n;
}

static hp_status open_room(bench *b, hp_error *err) {
    bool shared;
    HP_TRY(hp_bench_room_open(&b->room, &shared, err));
    if (shared) return HP_OK;
    hp_bench_setup_drop(&b->setup, HP_BACKEND_SHM);
    if (b->setup.n_series == 0)
        return hp_fail(err, HP_EUNAVAIL,
                       "back end shm: the ranks cannot read each other's memory; choose another one");
    if (b->room.w->comm->rank == 0)
        fprintf(stderr, "note: without back end shm: the ranks cannot read each other's memory\n");
    return HP_OK;
}

static hp_status measure_all(bench *b, hp_error *err) {
    json_t *speed = NULL;
    HP_TRY(hp_bench_print_start(b->room.w, err));
    HP_TRY(open_room(b, err));
    b->of = visits(&b->setup);
    for (int first = 0; first < b->setup.n_series;) HP_TRY(measure(b, first, &first, err));
    HP_TRY(hp_yard_survey_answer(b->survey, &speed, err));
    return speed ? hp_bench_print(speed, err) : HP_OK;
}

hp_status hp_bench_comm(const hp_bench_request *r, const hp_yard_waiter *w, bool crowded, hp_error *err) {
    bench b = {.room = {.setup = &b.setup, .w = w, .crowded = crowded}};
    HP_TRY(hp_bench_setup_make(r, w->comm->size, &b.setup, err));
    b.survey = hp_yard_survey_open(w);
    const hp_status s = measure_all(&b, err);
    hp_yard_survey_close(b.survey);
    if (s == HP_OK) w->comm->ops->close(w->comm); /* peers may read the room until then */
    hp_bench_room_close(&b.room);
    return s;
}
