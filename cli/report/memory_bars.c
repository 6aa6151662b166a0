/* memory_bars.c - what fills each rank's memory at its fullest moment, from the plan's buffers. */
#include "cli/report/memory_bars.h"

#include "cli/report/report_data.h"

enum { MOST_RANKS = 512 };

void memory_bars_read(hp_arena *arena, const char *path, hp_plot_source *s) {
    report r;
    hp_error ignored;
    if (report_read(arena, &path, 1, &r, &ignored) != HP_OK) return;
    const int ranks = hp_program_ranks(r.plan.program), roles = r.plan.program->n_role;
    if (ranks > MOST_RANKS) return;
    s->parts.capacity_bytes = report_memory_capacity(&r);
    s->parts.name = report_part_names;
    s->parts.n_name = REPORT_PARTS;
    s->parts.at = HP_NEW(arena, hp_plot_part, ranks * REPORT_PARTS);
    for (int rank = 0; rank < ranks; rank++) {
        int64_t parts[REPORT_PARTS], peaks[REPORT_PARTS];
        report_split_memory(&r, rank % roles, parts, peaks);
        for (int k = 0; k < REPORT_PARTS; k++)
            s->parts.at[s->parts.n++] = (hp_plot_part){rank, k, (double)parts[k]};
    }
}
