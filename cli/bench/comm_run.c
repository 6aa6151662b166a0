/* comm_run.c - starts the ranks, collects rows into series. */
#include "cli/bench/comm_run.h"

#include "cli/cli.h"
#include "cli/launch/launch.h"
#include "plan/collectives/collective.h"
#include "machines/device/device_kind.h"

#include <string.h>

typedef struct listener {
    const comm_request *r;
    json_t *result, *series; /* series: an array of `result` */
    cli_progress bar;
    bool complete;
} listener;

/* --- lines --- */

static bool same(const json_t *a, const json_t *b, const char *key) {
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Rows of a series are not adjacent, because modes alternate. */
static json_t *series_of(listener *l, const json_t *line) {
    static const char *const KEYS[] = {"op", "backend", "algorithm", "mode"};
    json_t *s;
    size_t i;
    json_array_foreach(l->series, i, s) {
        if (same(s, line, KEYS[0]) && same(s, line, KEYS[1]) && same(s, line, KEYS[2]) &&
            same(s, line, KEYS[3]))
            return s;
    }
    s = json_object();
    for (i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        json_object_set(s, KEYS[i], json_object_get(line, KEYS[i]));
    json_object_set_new(s, "dtype", json_string(l->r->dtype));
    json_object_set_new(s, "rows", json_array());
    json_array_append_new(l->series, s);
    return s;
}

void comm_add_rates(json_t *times, const char *op, double bytes, int32_t ranks) {
    const int what = hp_collective_find(op);
    const double time_s = json_number_value(json_object_get(times, "time_s")),
                 rate = time_s > 0 ? bytes / time_s : 0;
    const double factor = what < 0 ? 1 : hp_collective_bus_factor((hp_collective)what, ranks);
    json_object_set_new(times, "algbw", json_real(rate));
    json_object_set_new(times, "busbw", json_real(rate * factor));
}

/* The algorithm that the rule of plan/collectives selects if none was named. */
static const char *chosen_by_rule(const comm_request *r, const json_t *line, double bytes) {
    const int what = hp_collective_find(json_string_value(json_object_get(line, "op")));
    const char *backend = json_string_value(json_object_get(line, "backend"));
    int b = 0;
    while (hp_backend_names[b] && strcmp(hp_backend_names[b], backend) != 0) b++;
    if (what < 0 || json_is_string(json_object_get(line, "algorithm")) || !hp_backend_names[b] ||
        !hp_backend_steps(b))
        return NULL;
    const hp_collective_case c = {.what = (hp_collective)what,
                                  .size = (int32_t)r->ranks,
                                  .root = (int32_t)r->root,
                                  .per_node = (int32_t)r->per_node};
    return hp_algorithms[hp_algorithm_choose(&c, (int64_t)bytes, true)]->name;
}

static void add_row(listener *l, json_t *line) {
    json_t *row = json_object_get(line, "row"), *in_place = json_object_get(row, "in_place");
    const char *op = json_string_value(json_object_get(line, "op"));
    const double bytes = json_number_value(json_object_get(row, "bytes"));
    const char *chosen = chosen_by_rule(l->r, line, bytes);
    comm_add_rates(row, op, bytes, (int32_t)l->r->ranks);
    comm_add_rates(in_place, op, bytes, (int32_t)l->r->ranks);
    if (chosen) json_object_set_new(row, "algorithm", json_string(chosen));
    json_array_append(json_object_get(series_of(l, line), "rows"), row);
}

/* Two-level algorithms assume equally many ranks on each node. */
static void check_hosts(const comm_request *r, const json_t *hosts) {
    for (size_t i = 1; i < json_array_size(hosts); i++) {
        const bool next = !json_equal(json_array_get(hosts, i - 1), json_array_get(hosts, i));
        if (next == (i % (size_t)r->per_node == 0)) continue;
        fprintf(stderr,
                "note: rank %zu is on %s, which is not %lld ranks a node, one node after the other: "
                "algorithms of two "
                "levels are not at their best; give every node the same slots, and a slot to every rank\n",
                i, json_string_value(json_array_get(hosts, i)), (long long)r->per_node);
        return;
    }
}

static void show_progress(listener *l, const json_t *line) {
    l->bar.total = (long)json_integer_value(json_object_get(line, "of"));
    cli_progress_update(&l->bar, (long)json_integer_value(json_object_get(line, "done")), NULL);
}

static hp_status read_line(void *self, const char *text, hp_error *err) {
    listener *l = self;
    json_t *o = json_loads(text, 0, NULL);
    const bool object = json_is_object(o);
    if (json_object_get(o, "row"))
        add_row(l, o);
    else if (json_object_get(o, "done"))
        show_progress(l, o);
    else if (object)
        json_object_update(l->result, o);
    check_hosts(l->r, json_object_get(o, "hosts"));
    l->complete |= json_object_get(o, "yardsticks") != NULL;
    json_decref(o);
    return object
               ? HP_OK
               : hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", text);
}

/* --- the run --- */

static void add_option(hp_arena *arena, cli_launch *launch, const char *name, int64_t value) {
    launch->option[launch->n_option++] = hp_arena_printf(arena, "--bench-%s=%lld", name, (long long)value);
}

static cli_launch launch_of(hp_arena *arena, const comm_request *r, listener *l) {
    cli_launch launch = {.ranks = (int)r->ranks,
                         .threads = 1,
                         .launcher = r->launcher,
                         .hostfile = r->hostfile,
                         .line = read_line,
                         .self = l};
    launch.option[launch.n_option++] = hp_arena_printf(arena, "--bench-comm=%s", r->series);
    launch.option[launch.n_option++] = hp_arena_printf(arena, "--bench-dtype=%s", r->dtype);
    launch.option[launch.n_option++] = hp_arena_printf(arena, "--bench-reduction=%s", r->reduction);
    add_option(arena, &launch, "from", r->from_bytes);
    add_option(arena, &launch, "to", r->to_bytes);
    add_option(arena, &launch, "factor", r->factor);
    add_option(arena, &launch, "iterations", r->iterations);
    add_option(arena, &launch, "warmup", r->warmup);
    add_option(arena, &launch, "turns", r->turns);
    add_option(arena, &launch, "root", r->root);
    add_option(arena, &launch, "per-node", r->per_node);
    return launch;
}

hp_status comm_run(hp_arena *arena, const comm_request *r, json_t **result, hp_error *err) {
    listener l = {.r = r, .series = json_array()};
    *result = l.result = json_pack("{s:i, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "schema", 1, "ranks",
                                   (json_int_t)r->ranks, "per_node", (json_int_t)r->per_node, "reduction",
                                   r->reduction, "root", (json_int_t)r->root, "iterations",
                                   (json_int_t)r->iterations, "warmup", (json_int_t)r->warmup, "turns",
                                   (json_int_t)r->turns, "factor", (json_int_t)r->factor, "series", l.series);
    HP_ASSERT(*result);
    const cli_launch launch = launch_of(arena, r, &l);
    cli_progress_start(&l.bar, "size", 0);
    const hp_status s = cli_launch_run(&launch, err);
    cli_progress_end(&l.bar);
    if (s != HP_OK || l.complete) return s;
    return hp_fail(err, HP_EINTERNAL, "hplan-exec --bench-comm ended before it had measured everything");
}
