/* report_memory.c - what fills a rank's memory at its fullest moment, by what it is for, against the memory
 * that a rank has. */
#include "cli/report/report_data.h"

#include "cli/show/explain.h"

#include <math.h>

enum { MOST_BARS = 32 };

/* The most that a rank of the role was seen to use; NaN: it was not observed. */
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
    int64_t parts[REPORT_PARTS], peaks[REPORT_PARTS];
    char place[256], plain[256];
    report_split_memory(r, role, parts, peaks);
    explain_place(&r->plan, role, place, sizeof place);
    return json_pack("{s:i, s:i, s:s, s:I, s:o, s:o, s:o}", "rank", row->rank, "ranks", row->ranks, "place",
                     cli_plain(place, plain, sizeof plain), "planned",
                     (json_int_t)r->plan.program->role[role].arena_bytes, "observed",
                     cli_json_number(observed(r, role)), "parts", numbers_json(parts, REPORT_PARTS), "peaks",
                     numbers_json(peaks, REPORT_PARTS));
}

json_t *report_memory(const report *r) {
    report_row *row;
    int left_out;
    json_t *bars = json_array();
    const int n = report_rows(r, r->plan.program->n_role, MOST_BARS, &row, &left_out);
    for (int i = 0; i < n; i++) json_array_append_new(bars, bar_json(r, &row[i]));
    return json_pack("{s:o, s:o, s:o, s:i, s:b, s:s}", "parts", report_names(report_part_names, REPORT_PARTS),
                     "bars", bars, "capacity", cli_json_number(report_memory_capacity(r)), "left_out",
                     left_out, "eager", (int)r->setup.eager, "command",
                     report_command(r, "explain", r->path));
}
