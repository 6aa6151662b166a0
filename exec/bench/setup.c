/* setup.c - parses "allreduce:own.ring,sendrecv:mpi", names, and sizes. */
#include "exec/bench/setup.h"

#include <string.h>

const char *hp_bench_name(int32_t what) {
    return what == HP_BENCH_SENDRECV ? "sendrecv" : hp_collective_infos[what].name;
}

/* Index of a name in a NULL-terminated list; -1: not found. */
static int find_name(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n && names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static int find_op(const char *name) {
    return strcmp(name, "sendrecv") == 0 ? (int)HP_BENCH_SENDRECV : hp_collective_find(name);
}

/* "allreduce:own.ring" */
static hp_status parse_series(char *word, hp_bench_run *s, hp_error *err) {
    char copy[64], *backend = strchr(word, ':'), *algorithm = strchr(word, '.');
    snprintf(copy, sizeof copy, "%s", word);
    if (backend) *backend++ = 0;
    if (algorithm) *algorithm++ = 0;
    s->what = find_op(word);
    s->backend = backend ? find_name(hp_backend_names, HP_BACKENDS, backend) : -1;
    s->algorithm = algorithm ? hp_algorithm_find(algorithm) : (int)HP_ALGORITHM_LIBRARY;
    if (s->what >= 0 && s->backend >= 0 && s->algorithm >= 0) return HP_OK;
    return hp_fail(err, HP_EUSAGE,
                   "--bench-comm: '%s' is not an operation and a back end, as in allreduce:own.ring", copy);
}

static hp_status parse_list(const char *list, hp_bench_setup *s, hp_error *err) {
    for (const char *at = list; *at;) {
        char word[64];
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (s->n_series == HP_BENCH_MOST_SERIES)
            return hp_fail(err, HP_EUSAGE, "--bench-comm: at most %d series at a time",
                           (int)HP_BENCH_MOST_SERIES);
        HP_TRY(parse_series(word, &s->series[s->n_series++], err));
        at += n + (at[n] == ',');
    }
    return HP_OK;
}

hp_status hp_bench_setup_make(const hp_bench_request *r, int ranks, hp_bench_setup *s, hp_error *err) {
    const int dtype = find_name(hp_dtype_names, HP_DTYPES, r->dtype),
              reduction = find_name(hp_reduction_names, HP_REDUCTIONS, r->reduction);
    *s = (hp_bench_setup){.r = r, .ranks = ranks};
    if (ranks < 2)
        return hp_fail(err, HP_EUSAGE, "--bench-comm needs at least 2 ranks: mpirun -n 2 hplan-exec ...");
    if (dtype < 0) return hp_fail(err, HP_EUSAGE, "--bench-dtype: there is no type '%.40s'", r->dtype);
    if (reduction < 0)
        return hp_fail(err, HP_EUSAGE, "--bench-reduction: there is none called '%.40s'", r->reduction);
    if (r->root >= ranks)
        return hp_fail(err, HP_EUSAGE, "--bench-root: %d is not below %d ranks", r->root, ranks);
    if (r->to_bytes < r->from_bytes) return hp_fail(err, HP_EUSAGE, "--bench-to is less than --bench-from");
    s->dtype = (hp_dtype)dtype;
    s->reduction = (hp_reduction)reduction;
    return parse_list(r->series, s, err);
}

void hp_bench_setup_drop(hp_bench_setup *s, int32_t backend) {
    int n = 0;
    for (int i = 0; i < s->n_series; i++)
        if (s->series[i].backend != backend) s->series[n++] = s->series[i];
    s->n_series = n;
}

/* --- sizes --- */

int64_t hp_bench_count(int32_t what, int64_t bytes, int elem_bytes, int ranks) {
    if (what == HP_COLLECTIVE_BARRIER) return 0;
    const int64_t parts = what != HP_BENCH_SENDRECV && hp_collective_parts((hp_collective)what) ? ranks : 1;
    const int64_t each = bytes / elem_bytes / parts;
    return parts * (each > 0 ? each : 1);
}

int hp_bench_counts(const hp_bench_setup *s, int32_t what, int64_t count[HP_BENCH_MOST_SIZES]) {
    int n = 0;
    for (int64_t bytes = s->r->from_bytes; bytes <= s->r->to_bytes && n < HP_BENCH_MOST_SIZES;
         bytes *= s->r->factor) {
        count[n] = hp_bench_count(what, bytes, hp_dtype_bytes(s->dtype), s->ranks);
        if (n == 0 || count[n] > count[n - 1]) n++;
        if (s->r->factor < 2 || bytes > s->r->to_bytes / s->r->factor) break;
    }
    return n;
}
