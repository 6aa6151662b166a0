/* report_memory.c - what fills a rank's memory at its fullest moment, by what it is for, against the memory
 * that a rank has. */
#include "cli/report/report_data.h"

#include "cli/show/explain.h"
#include "sim/memory/sim_memory_fit.h"

#include <math.h>
#include <string.h>

enum { MOST_BARS = 32, ALIGN = 64 /* as lowering places buffers */ };

typedef enum part { WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS, HALOS, WORKSPACE, GAPS, PARTS } part;

static const part part_of[HP_BUF_KINDS] = {
    [HP_BUF_WEIGHTS] = WEIGHTS,  [HP_BUF_GRADS] = GRADIENTS,    [HP_BUF_OPTIMIZER] = OPTIMIZER,
    [HP_BUF_STATE] = WEIGHTS,    [HP_BUF_METRIC] = WORKSPACE,   [HP_BUF_SCRATCH] = WORKSPACE,
    [HP_BUF_PACK] = WORKSPACE,   [HP_BUF_TENSOR] = ACTIVATIONS, [HP_BUF_GRADIENT] = ACTIVATIONS,
    [HP_BUF_SAVE] = ACTIVATIONS, [HP_BUF_LABELS] = ACTIVATIONS, [HP_BUF_MESSAGE] = HALOS,
    [HP_BUF_SUMS] = WORKSPACE,   [HP_BUF_BLOCK] = WORKSPACE,    [HP_BUF_CODE] = HALOS,
    [HP_BUF_CARRY] = WORKSPACE};

static int64_t aligned(int64_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Bytes that come (first task) and go (after the last) with each task, by part. */
static int64_t *changes(hp_arena *arena, const hp_role *r) {
    int64_t *change = HP_NEW(arena, int64_t, (int64_t)(r->n_task + 2) * PARTS);
    for (int b = 0; b < r->n_buffer; b++) {
        const hp_buffer *f = &r->buffer[b];
        const bool fixed = b < HP_BUF_FIXED;
        const int first = fixed ? 0 : f->first, last = fixed ? r->n_task : f->last;
        if (first < 0 || first > r->n_task || last < first || last > r->n_task) continue;
        change[first * PARTS + part_of[f->kind]] += aligned(f->bytes);
        change[(last + 1) * PARTS + part_of[f->kind]] -= aligned(f->bytes);
    }
    return change;
}

/* The parts at the moment when most is in use, where the rest of the arena are gaps of its placement; and the
 * most of each part at any moment. */
static void split_memory(const hp_role *r, int64_t parts[PARTS], int64_t peaks[PARTS]) {
    hp_arena *scratch = hp_arena_new();
    const int64_t *change = changes(scratch, r);
    int64_t now[PARTS] = {0}, most = -1;
    memset(parts, 0, PARTS * sizeof *parts);
    memset(peaks, 0, PARTS * sizeof *peaks);
    for (int t = 0; t <= r->n_task; t++) {
        int64_t sum = 0;
        for (int k = 0; k < PARTS; k++) {
            sum += now[k] += change[(int64_t)t * PARTS + k];
            if (now[k] > peaks[k]) peaks[k] = now[k];
        }
        if (sum <= most) continue;
        most = sum;
        memcpy(parts, now, sizeof now);
    }
    parts[GAPS] = peaks[GAPS] = r->arena_bytes > most ? r->arena_bytes - most : 0;
    hp_arena_free(scratch);
}

/* The most that a rank of the role was seen to use; NaN: nobody looked. */
static double observed(const report *r, int role) {
    const hp_plot_source *s = NULL;
    double most = NAN;
    for (int i = 0; i < r->n && r->exec; i++)
        if (r->exec == &r->source[i].exec) s = &r->source[i];
    for (int64_t i = 0; s && i < s->n_peak; i++)
        if (s->peak[i].rank % r->plan.program->n_role == role) most = fmax(most, s->peak[i].value);
    return most;
}

static json_t *numbers_json(const int64_t *number, int n) {
    json_t *list = json_array();
    for (int k = 0; k < n; k++) json_array_append_new(list, json_integer(number[k]));
    return list;
}

static json_t *bar_json(const report *r, const report_row *row) {
    const int role = row->rank % r->plan.program->n_role;
    int64_t parts[PARTS], peaks[PARTS];
    char place[256], plain[256];
    split_memory(&r->plan.program->role[role], parts, peaks);
    explain_place(&r->plan, role, place, sizeof place);
    return json_pack("{s:i, s:i, s:s, s:I, s:o, s:o, s:o}", "rank", row->rank, "ranks", row->ranks, "place",
                     cli_plain(place, plain, sizeof plain), "planned",
                     (json_int_t)r->plan.program->role[role].arena_bytes, "observed",
                     cli_json_number(observed(r, role)), "parts", numbers_json(parts, PARTS), "peaks",
                     numbers_json(peaks, PARTS));
}

/* The memory of a rank; on a CPU machine its share of the node's. */
static double capacity(const report *r) {
    const hp_machine *m = &r->plan.machine;
    const hp_memory_limit l =
        hp_memory_limit_of(m, r->setup.memory_limit, r->plan.program->clients, r->setup.eager);
    const int ranks = hp_program_ranks(r->plan.program),
              most = m->devices_per_node * r->plan.program->clients;
    const double shared = l.node_bytes ? (double)l.node_bytes / (ranks < most ? ranks : most) : INFINITY;
    return fmin((double)l.rank_bytes, shared);
}

json_t *report_memory(const report *r) {
    report_row *row;
    int left_out;
    json_t *bars = json_array();
    const int n = report_rows(r, r->plan.program->n_role, MOST_BARS, &row, &left_out);
    for (int i = 0; i < n; i++) json_array_append_new(bars, bar_json(r, &row[i]));
    return json_pack("{s:[s,s,s,s,s,s,s], s:o, s:o, s:i, s:b, s:s}", "parts", "weights", "gradients",
                     "optimiser", "activations", "halos and messages", "workspace", "gaps between buffers",
                     "bars", bars, "capacity", cli_json_number(capacity(r)), "left_out", left_out, "eager",
                     (int)r->setup.eager, "command", report_command(r, "explain", r->path, NULL));
}
