/* bench_comm_show.c - prints nccl-tests' columns: bytes of the whole data, elements of a rank's part where
 * data have parts, microseconds, 1e9 bytes/s. */
#include "cli/show/bench_comm_show.h"

#include "base/version.h"
#include "plan/collectives/collective.h"
#include "networks/graph/dtype.h"

#include <string.h>

static double number(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* --- nccl-tests' names --- */

static const char *program_of(const char *op) {
    static const char *const NAMES[][2] = {
        {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i][0], op) == 0) return NAMES[i][1];
    return op;
}

static const char *type_of(const char *dtype) {
    static const char *const NAMES[HP_DTYPES] = {
        [HP_F32] = "float", [HP_F64] = "double", [HP_I32] = "int32",    [HP_U8] = "uint8",
        [HP_F16] = "half",  [HP_I8] = "int8",    [HP_BF16] = "bfloat16"};
    for (int t = 0; t < HP_DTYPES; t++)
        if (strcmp(hp_dtype_names[t], dtype) == 0) return NAMES[t];
    return dtype;
}

/* --- lines --- */

static bool is_predicted(const json_t *result) {
    return json_is_true(json_object_get(result, "predicted"));
}

static void print_ranks(FILE *out, const json_t *result) {
    const json_t *hosts = json_object_get(result, "hosts"), *pids = json_object_get(result, "pids");
    const size_t on_node = is_predicted(result) ? (size_t)number(result, "per_node") : 1;
    fprintf(out, "# Using devices\n");
    for (size_t r = 0; r < json_array_size(hosts); r++)
        fprintf(out, "#  Rank %2zu Group  0 Pid %6lld on %10s device %2zu [0x00] %s\n", r,
                (long long)json_integer_value(json_array_get(pids, r)),
                json_string_value(json_array_get(hosts, r)), r % on_node,
                is_predicted(result) ? text(result, "device") : "CPU");
}

static void print_title(FILE *out) {
    fprintf(out, "#\n# %65s %35s\n", "out-of-place", "in-place");
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++) fprintf(out, "  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong");
    fprintf(out, "\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++) fprintf(out, "  %7s  %6s  %6s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    fprintf(out, "\n");
}

/* Whose times these are. */
static void print_way(FILE *out, const json_t *result, const json_t *series, const char *backend) {
    const bool pipelined = strcmp(text(series, "mode"), "pipelined") == 0;
    fprintf(out, "# back end %s, %s; ", backend, text(series, "mode"));
    if (is_predicted(result))
        fprintf(out, "predicted for machine %s by %s, nothing ran\n", text(result, "machine"),
                text(result, "table"));
    else
        fprintf(out, "medians of %lld turns of %lld iterations, %s, in turn with the other back ends\n",
                (long long)number(result, "turns"), (long long)number(result, "iterations"),
                pipelined ? "until the last rank ends" : "means over ranks");
}

static void print_head(FILE *out, const json_t *result, const json_t *series, const char *backend) {
    const json_t *rows = json_object_get(series, "rows"),
                 *last = json_array_get(rows, json_array_size(rows) - 1);
    fprintf(out, "# Collective test starting: %s_perf\n", program_of(text(series, "op")));
    fprintf(out, "# hplan bench comm %s, %s, %lld ranks\n", hp_version(), text(result, "library"),
            (long long)number(result, "ranks"));
    print_way(out, result, series, backend);
    fprintf(out,
            "# nThread 1 nGpus 1 minBytes %lld maxBytes %lld step: %lld(factor) warmup iters: %lld iters: "
            "%lld agg "
            "iters: 1 validation: 1 graph: 0\n#\n",
            (long long)number(json_array_get(rows, 0), "bytes"), (long long)number(last, "bytes"),
            (long long)number(result, "factor"), (long long)number(result, "warmup"),
            (long long)number(result, "iterations"));
    print_ranks(out, result);
    print_title(out);
}

static void print_times(FILE *out, const json_t *times) {
    const json_t *wrong = json_object_get(times, "wrong");
    char count[32] = "N/A";
    if (json_is_integer(wrong)) snprintf(count, sizeof count, "%lld", (long long)json_integer_value(wrong));
    fprintf(out, "  %7.2f  %6.2f  %6.2f %6s", 1e6 * number(times, "time_s"), 1e-9 * number(times, "algbw"),
            1e-9 * number(times, "busbw"), count);
}

/* A comment, which readers of tables pass over. */
static void print_interval(FILE *out, const json_t *times) {
    fprintf(out, "#   interval %.2f to %.2f us, %s\n", 1e6 * number(times, "low_s"),
            1e6 * number(times, "high_s"), text(times, "source"));
}

static void print_spread(FILE *out, const char *place, const json_t *times) {
    fprintf(out, "#   %-12s min %.2f  median %.2f  p99 %.2f  max %.2f us\n", place,
            1e6 * number(times, "min_s"), 1e6 * number(times, "median_s"), 1e6 * number(times, "p99_s"),
            1e6 * number(times, "max_s"));
}

static void print_row(FILE *out, const json_t *result, const json_t *series, const json_t *row, bool spread) {
    const int what = hp_collective_find(text(series, "op"));
    const hp_collective c = (hp_collective)(what < 0 ? 0 : what);
    const int64_t ranks = (int64_t)number(result, "ranks"), count = (int64_t)number(row, "count");
    const bool rooted = what >= 0 && hp_collective_rooted(c), adds = what >= 0 && hp_collective_infos[c].adds;
    fprintf(out, "%12lld  %12lld  %8s  %6s  %6lld", (long long)number(row, "bytes"),
            (long long)(what >= 0 && hp_collective_parts(c) ? count / ranks : count),
            type_of(text(series, "dtype")),
            adds && what != HP_COLLECTIVE_BARRIER ? text(result, "reduction") : "none",
            rooted ? (long long)number(result, "root") : -1LL);
    print_times(out, row);
    print_times(out, json_object_get(row, "in_place"));
    fprintf(out, "\n");
    if (spread && is_predicted(result)) print_interval(out, row);
    if (!spread || is_predicted(result)) return;
    print_spread(out, "out-of-place", row);
    print_spread(out, "in-place", json_object_get(row, "in_place"));
}

/* nccl-tests' mean over all times of the table. */
static void print_average(FILE *out, const json_t *rows, bool predicted) {
    double sum = 0, wrong = 0;
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        const json_t *in = json_object_get(row, "in_place");
        sum += number(row, "busbw") + number(in, "busbw");
        wrong += number(row, "wrong") + number(in, "wrong");
    }
    if (!predicted) fprintf(out, "# Out of bounds values : %.0f %s\n", wrong, wrong > 0 ? "FAILED" : "OK");
    fprintf(out, "# Avg bus bandwidth    : %g\n#\n", i > 0 ? 1e-9 * sum / (2 * (double)i) : 0);
}

static void print_series(FILE *out, const json_t *result, const json_t *series, bool spread) {
    const json_t *rows = json_object_get(series, "rows");
    const char *algorithm = text(series, "algorithm");
    char backend[64];
    snprintf(backend, sizeof backend, "%s%s%s", text(series, "backend"), *algorithm ? "." : "", algorithm);
    print_head(out, result, series, backend);
    for (size_t i = 0; i < json_array_size(rows); i++)
        print_row(out, result, series, json_array_get(rows, i), spread);
    print_average(out, rows, is_predicted(result));
    fprintf(out, "# Collective test concluded: %s_perf\n#\n", program_of(text(series, "op")));
}

/* --- the machine --- */

static void print_machine(FILE *out, const json_t *result) {
    const char *before = "";
    const char *name;
    json_t *y, *yards = json_object_get(result, "yardsticks");
    fprintf(out, "# machine: at ");
    json_object_foreach(yards, name, y) {
        const double quiet = number(y, "quiet_s");
        if (!json_object_get(y, "unit")) continue; /* messages between ranks that are seldom warm */
        fprintf(out, "%s%.2f x the quiet time (%s)", before, quiet > 0 ? number(y, "mean_s") / quiet : 0,
                name);
        before = ", ";
    }
    fprintf(out, ", %.0f%% of the processors\n", 100 * number(result, "availability"));
}

void bench_comm_print(FILE *out, const json_t *result, const char *mode, bool spread) {
    size_t i;
    const json_t *series;
    json_array_foreach(json_object_get(result, "series"), i, series) {
        if (strcmp(text(series, "mode"), mode) == 0) print_series(out, result, series, spread);
    }
    if (!is_predicted(result)) print_machine(out, result);
}
