/* comm_predict.c - predicts with nccl-tests' sizes and hp_cost_collective's times. */
#include "cli/bench/comm_predict.h"

#include "base/units.h"
#include "networks/graph/dtype.h"

#include <string.h>

/* --- where the ranks are --- */

static int32_t usual_ranks(const hp_machine *m) {
    return m->devices_per_node > 1 ? m->devices_per_node : hp_machine_devices(m);
}

hp_status comm_predict_place(const hp_machine *m, comm_request *r, hp_error *err) {
    if (r->ranks == 0) r->ranks = usual_ranks(m);
    if (r->per_node == 0) r->per_node = m->devices_per_node;
    if (r->ranks < 2)
        return hp_fail(err, HP_EPLAN, "machine %s has one device, which has nobody to communicate with",
                       m->name);
    if (r->per_node > m->devices_per_node)
        return hp_fail(err, HP_EUSAGE, "--ranks-per-node %lld: a node of %s has %d devices",
                       (long long)r->per_node, m->name, m->devices_per_node);
    const int64_t most = r->per_node * (int64_t)m->nodes;
    if (r->ranks > most && !m->any_size)
        return hp_fail(
            err, HP_EPLAN, "--gpus %lld: %s has room for %lld ranks, %lld on each node; give --gpus %lld",
            (long long)r->ranks, m->name, (long long)most, (long long)r->per_node, (long long)most);
    if (r->per_node > r->ranks) r->per_node = r->ranks;
    return HP_OK;
}

/* --- what is asked --- */

typedef struct series {
    int what; /* hp_collective; -1: messages to the next rank */
    int32_t backend;
    hp_algorithm algorithm;
    char op[24], way[24];
} series;

/* "allreduce:own.ring", as comm_series_list writes it. */
static series series_of(const char *text) {
    series s = {0};
    char algorithm[24] = "";
    const int n = sscanf(text, "%23[^:]:%23[^.,].%23[^,]", s.op, s.way, algorithm);
    HP_ASSERT(n >= 2);
    s.what = hp_collective_find(s.op);
    while (hp_backend_names[s.backend] && strcmp(hp_backend_names[s.backend], s.way) != 0) s.backend++;
    if (n == 3) s.algorithm = (hp_algorithm)hp_algorithm_find(algorithm);
    return s;
}

static hp_dtype dtype_of(const char *name) {
    int t = 0;
    while (t < HP_DTYPES - 1 && strcmp(hp_dtype_names[t], name) != 0) t++;
    return (hp_dtype)t;
}

static bool is_integer(hp_dtype t) {
    return t == HP_I32 || t == HP_U8 || t == HP_I8;
}

/* NVSwitches sum floats (NVLS); NCCL sums integers in rings. */
static hp_algorithm algorithm_of(const series *s, hp_dtype type) {
    const bool nccl = s->backend == HP_BACKEND_NCCL && s->algorithm == HP_ALGORITHM_LIBRARY;
    return nccl && hp_collective_infos[s->what].adds && is_integer(type) ? HP_ALGORITHM_RING : s->algorithm;
}

/* Number of elements, at least one in each member's part; rounds like nccl-tests. */
static int64_t count_of(const series *s, const comm_request *r, int64_t bytes, int elem_bytes) {
    if (s->what == HP_COLLECTIVE_BARRIER) return 0;
    const int64_t parts = s->what >= 0 && hp_collective_parts((hp_collective)s->what) ? r->ranks : 1,
                  each = bytes / elem_bytes / parts;
    return parts * (each > 0 ? each : 1);
}

static hp_cost cost_of(const hp_cost_table *t, const hp_machine *m, const comm_request *r, const series *s,
                       int64_t bytes) {
    const bool one_node = r->per_node >= r->ranks;
    const int32_t kind = m->device.is_cpu ? HP_DEVICE_CPU : HP_DEVICE_CUDA;
    if (s->what < 0) return hp_cost_p2p(t, m, hp_wire_of(m, kind, s->backend), one_node, (double)bytes);
    const hp_collective_call c = {.by = hp_wire_of_collective(m, kind, s->backend),
                                  .algorithm = algorithm_of(s, dtype_of(r->dtype)),
                                  .what = (hp_collective)s->what,
                                  .ranks = (int32_t)r->ranks,
                                  .per_node = (int32_t)r->per_node};
    return hp_cost_collective(t, m, &c, (double)bytes);
}

/* --- the answer --- */

static json_t *times_of(const hp_cost *c, const char *op, int64_t bytes, int64_t ranks) {
    json_t *o = json_pack("{s:f, s:f, s:f, s:s, s:n}", "time_s", c->seconds, "low_s", c->low, "high_s",
                          c->high, "source", hp_source_names[c->source], "wrong");
    comm_add_rates(o, op, (double)bytes, (int32_t)ranks);
    return o;
}

static void add_rows(const hp_cost_table *t, const hp_machine *m, const comm_request *r, const series *s,
                     json_t *rows) {
    const int elem_bytes = hp_dtype_bytes(dtype_of(r->dtype));
    int64_t before = -1;
    for (int64_t size = r->from_bytes; size <= r->to_bytes; size *= r->factor) {
        const int64_t count = count_of(s, r, size, elem_bytes), bytes = count * elem_bytes;
        if (count > before) {
            const hp_cost c = cost_of(t, m, r, s, bytes);
            json_t *row = times_of(&c, s->op, bytes, r->ranks);
            json_object_set_new(row, "bytes", json_integer(bytes));
            json_object_set_new(row, "count", json_integer(count));
            json_object_set_new(row, "in_place", times_of(&c, s->op, bytes, r->ranks));
            json_array_append_new(rows, row);
        }
        before = count;
        if (size > r->to_bytes / r->factor) break;
    }
}

static json_t *hosts_of(const comm_request *r) {
    json_t *hosts = json_array();
    char name[32];
    for (int64_t rank = 0; rank < r->ranks; rank++) {
        snprintf(name, sizeof name, "node%lld", (long long)(rank / r->per_node));
        json_array_append_new(hosts, json_string(name));
    }
    return hosts;
}

void comm_predict(const hp_cost_table *t, const hp_machine *m, const comm_request *r, json_t **result) {
    json_t *all = json_array();
    for (const char *at = r->series; *at; at += strcspn(at, ","), at += *at == ',') {
        const series s = series_of(at);
        json_t *rows = json_array();
        add_rows(t, m, r, &s, rows);
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s?, s:s, s:s, s:o}", "op", s.op, "backend", s.way,
                                        "algorithm", s.algorithm ? hp_algorithms[s.algorithm]->name : NULL,
                                        "mode", "pipelined", "dtype", r->dtype, "rows", rows));
    }
    *result = json_pack("{s:i, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:o, s:o}", "schema", 1,
                        "predicted", 1, "machine", m->name, "device", m->device.name, "table",
                        hp_cost_origin(t), "library", "predicted", "ranks", (json_int_t)r->ranks, "per_node",
                        (json_int_t)r->per_node, "reduction", r->reduction, "root", (json_int_t)r->root,
                        "factor", (json_int_t)r->factor, "hosts", hosts_of(r), "series", all);
    HP_ASSERT(*result);
}
