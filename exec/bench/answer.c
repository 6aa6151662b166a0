/* answer.c - gathers the ranks' results and prints them as JSON; see bench.h. */
#include "exec/bench/answer.h"
#include "base/alloc.h"

#include "exec/bench/bench_figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

hp_status hp_bench_print(json_t *o, hp_error *err) {
    HP_ASSERT(o);
    json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(o);
    if (fflush(stdout) == 0 && !ferror(stdout)) return HP_OK;
    return hp_fail(err, HP_EIO, "cannot write to stdout: %s", strerror(errno));
}

/* --- the first line, and those between --- */

typedef struct whereabouts {
    int32_t pid;
    char host[60];
} whereabouts;

hp_status hp_bench_print_start(const hp_yard_waiter *w, hp_error *err) {
    char library[80];
    whereabouts mine = {.pid = (int32_t)getpid()}, *all = hp_zeroed((size_t)w->comm->size, sizeof *all);
    gethostname(mine.host, sizeof mine.host - 1);
    const hp_status s = hp_comm_share_bytes(w->comm, &mine, sizeof mine, all, "the other ranks' names", err);
    json_t *hosts = json_array(), *pids = json_array();
    for (int r = 0; r < w->comm->size && s == HP_OK; r++) {
        json_array_append_new(hosts, json_string(all[r].host));
        json_array_append_new(pids, json_integer(all[r].pid));
    }
    json_t *o = json_pack("{s:s, s:o, s:o}", "library", hp_comm_mpi_version(library, sizeof library), "hosts",
                          hosts, "pids", pids);
    free(all);
    if (s == HP_OK && w->comm->rank == 0) return hp_bench_print(o, err);
    json_decref(o);
    return s;
}

hp_status hp_bench_print_progress(const hp_yard_waiter *w, int64_t done, int64_t of, hp_error *err) {
    if (w->comm->rank > 0) return HP_OK;
    return hp_bench_print(json_pack("{s:I, s:I}", "done", (json_int_t)done, "of", (json_int_t)of), err);
}

/* --- rows --- */

/* all[ranks * n]. */
static hp_status gather(const hp_yard_waiter *w, const double *mine, int64_t n, double *all, hp_error *err) {
    memset(all, 0, sizeof *all * (size_t)(n * w->comm->size));
    memcpy(all + n * w->comm->rank, mine, sizeof *all * (size_t)n);
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = n * w->comm->size,
                           .data = all};
    return hp_yard_wait(w, &op, err);
}

static json_t *whole(double v) {
    return isfinite(v) ? json_integer((json_int_t)v) : json_null();
}

static json_t *turns_of(const double *all, int ranks, int64_t n, int64_t turns, bool last) {
    json_t *list = json_array();
    for (int64_t t = 0; t < turns; t++)
        json_array_append_new(list,
                              json_real(hp_bench_time(all, ranks, n, t * (n / turns), n / turns, last)));
    return list;
}

/* Pipelined: reports the last rank's time. A rank that only sends may finish all its iterations while
 * their data waits in the library; repeated operations end with the last rank. Barriered: reports the
 * mean, as OSU does. */
static json_t *times_of(const double *all, int ranks, int64_t n, int64_t turns, int mode, double wrong) {
    const bool last = mode == HP_BENCH_PIPELINED;
    const hp_bench_figures f = hp_bench_figures_of(all, ranks, n, last);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "time_s", f.time_s, "min_s", f.min_s, "median_s",
                     f.median_s, "p99_s", f.p99_s, "max_s", f.max_s, "turns_s",
                     turns_of(all, ranks, n, turns, last), "wrong", whole(wrong));
}

static json_t *line_of(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int mode, json_t *out,
                       json_t *in) {
    const bool chosen = s->algorithm != HP_ALGORITHM_LIBRARY;
    json_t *row = json_pack("{s:I, s:I}", "bytes", (json_int_t)(count * hp_dtype_bytes(room->setup->dtype)),
                            "count", (json_int_t)count);
    json_object_update(row, out);
    json_decref(out);
    json_object_set_new(row, "in_place", in);
    return json_pack("{s:s, s:s, s:s?, s:s, s:o}", "op", hp_bench_name(s->what), "backend",
                     hp_backend_names[s->backend], "algorithm",
                     chosen ? hp_algorithms[s->algorithm]->name : NULL, "mode", hp_bench_mode_names[mode],
                     "row", row);
}

/* Sums the wrong elements over all ranks. */
static hp_status sum_wrong(const hp_bench_room *room, const hp_bench_row *row, double wrong[HP_BENCH_PLACES],
                           hp_error *err) {
    for (int place = 0; place < HP_BENCH_PLACES; place++) wrong[place] = row->wrong[place];
    const hp_comm_op op = {.kind = HP_COMM_COLLECTIVE,
                           .group = HP_COMM_WORLD,
                           .dtype = HP_F64,
                           .count = HP_BENCH_PLACES,
                           .data = wrong};
    return hp_yard_wait(room->w, &op, err);
}

static hp_status print_mode(const hp_bench_room *room, const hp_bench_run *s, int64_t count, int mode,
                            const hp_bench_row *row, const double wrong[HP_BENCH_PLACES], double *all,
                            hp_error *err) {
    const int64_t turns = room->setup->r->turns, n = hp_bench_samples(room->setup->r, mode);
    const bool speaks = room->w->comm->rank == 0;
    json_t *times[HP_BENCH_PLACES] = {NULL};
    hp_status status = HP_OK;
    for (int place = 0; place < HP_BENCH_PLACES && status == HP_OK; place++) {
        status = gather(room->w, row->sample[place][mode], n, all, err);
        if (speaks) times[place] = times_of(all, room->setup->ranks, n, turns, mode, wrong[place]);
    }
    json_t *line = speaks ? line_of(room, s, count, mode, times[0], times[1]) : NULL;
    if (status == HP_OK && speaks) return hp_bench_print(line, err);
    json_decref(line);
    return status;
}

hp_status hp_bench_print_row(const hp_bench_room *room, const hp_bench_run *s, int64_t count,
                             const hp_bench_row *row, hp_error *err) {
    double wrong[HP_BENCH_PLACES];
    HP_TRY(sum_wrong(room, row, wrong, err));
    double *all = hp_alloc(
        sizeof *all * (size_t)(room->setup->ranks * hp_bench_samples(room->setup->r, HP_BENCH_BARRIERED)));
    hp_status status = HP_OK;
    for (int mode = 0; mode < HP_BENCH_MODES && status == HP_OK; mode++)
        status = print_mode(room, s, count, mode, row, wrong, all, err);
    free(all);
    return status;
}
