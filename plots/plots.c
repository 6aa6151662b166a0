/* plots.c - the table of plot kinds, and loading their sources. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <string.h>

const hp_plot_kind hp_plot_kinds[] = {
    {.name = "timeline",
     .meaning = "what every rank does during one step",
     .draw = hp_plot_timeline,
     .load = hp_plot_load,
     .max_files = 1,
     .width = 1100,
     .height = 620},
    {.name = "scaling",
     .meaning = "images/s against the number of devices",
     .draw = hp_plot_scaling,
     .load = hp_plot_load_scaling,
     .max_files = 16,
     .width = 900,
     .height = 600},
    {.name = "memory",
     .meaning = "planned and observed bytes by rank and purpose, and over the step",
     .draw = hp_plot_memory,
     .load = hp_plot_load,
     .max_files = 1,
     .width = 900,
     .height = 640},
    {.name = "error",
     .meaning = "predicted against measured seconds, task by task, or run by run of the history",
     .draw = hp_plot_error,
     .load = hp_plot_load,
     .max_files = 1,
     .width = 760,
     .height = 700},
    {.name = "comm",
     .meaning = "time of collectives by size, and which back end and algorithm is the fastest",
     .max_files = 1,
     .width = 1200,
     .height = 1150},
    {.name = "precision",
     .meaning = "throughput, memory and latency by precision and image size",
     .draw = hp_plot_precision,
     .load = hp_plot_load,
     .max_files = 16,
     .width = 1200,
     .height = 800},
    {.name = "pareto",
     .meaning = "images/s against memory and device hours, strategy by strategy",
     .draw = hp_plot_pareto,
     .load = hp_plot_load,
     .max_files = 16,
     .width = 1000,
     .height = 640},
    {.name = "size",
     .meaning = "time of a step and memory by the size of a sample, strategy by strategy",
     .draw = hp_plot_size,
     .load = hp_plot_load,
     .max_files = 16,
     .width = 900,
     .height = 900},
    {.name = NULL},
};

/* Colours of Okabe and Ito 2008, distinguishable for the colour-blind, in the order of hp_phase. */
const char hp_plot_phases[] = "phase_name = 'load pack forward backward optimizer transfer reduce'\n"
                              "phase_color = '#999999 #F0E442 #0072B2 #E69F00 #009E73 #CC79A7 #D55E00'\n";
_Static_assert(HP_PHASES == 7, "hp_plot_phases has a name and a colour for each phase");

const hp_plot_kind *hp_plot_find(const char *name) {
    for (const hp_plot_kind *k = hp_plot_kinds; k->name; k++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

static hp_status load_net(hp_arena *arena, hp_db *db, hp_plot_source *s, hp_error *err) {
    static const char query[] = "SELECT (SELECT value FROM meta WHERE key = 'net'),"
                                " (SELECT value FROM meta WHERE key = 'image_h'),"
                                " (SELECT value FROM meta WHERE key = 'image_w'),"
                                " (SELECT value FROM meta WHERE key = 'batch')";
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(db, query, &st, err));
    bool row = false;
    const hp_status status = hp_db_next(db, st, &row, err);
    s->net = hp_text_clean(arena, row ? hp_db_text(st, 0) : "");
    s->height = row ? sqlite3_column_int(st, 1) : 0;
    s->width = row ? sqlite3_column_int(st, 2) : 0;
    s->batch = row ? sqlite3_column_int(st, 3) : 0;
    sqlite3_finalize(st);
    return status;
}

static hp_status load_candidates(hp_arena *arena, hp_db *db, hp_plot_source *s, hp_error *err) {
    sqlite3_stmt *st = NULL;
    HP_TRY(hp_db_prepare(
        db,
        "SELECT strategy, rank, gpus, step_s, step_low_s, step_high_s, images_per_s, memory_bytes, batch"
        " FROM candidate ORDER BY rank",
        &st, err));
    int capacity = 0;
    bool row = true;
    hp_status status = HP_OK;
    while ((status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, s->candidate, s->n_candidate, capacity);
        s->candidate[s->n_candidate++] = (hp_plot_candidate){hp_text_clean(arena, hp_db_text(st, 0)),
                                                             sqlite3_column_int(st, 1),
                                                             sqlite3_column_int(st, 2),
                                                             sqlite3_column_double(st, 3),
                                                             sqlite3_column_double(st, 4),
                                                             sqlite3_column_double(st, 5),
                                                             sqlite3_column_double(st, 6),
                                                             sqlite3_column_double(st, 7),
                                                             sqlite3_column_double(st, 8)};
    }
    sqlite3_finalize(st);
    return status;
}

/* Reads the file's curves: each row has a curve's name and one of its strategies, sorted by curve. */
static hp_status load_curves(hp_arena *arena, hp_db *db, hp_plot_source *s, hp_error *err) {
    static const char query[] =
        "SELECT c.key, e.value FROM meta m, json_each(m.value) c, json_each(c.value) e"
        " WHERE m.key = 'curves' AND json_valid(m.value) AND c.type = 'array' AND e.type = 'text'";
    sqlite3_stmt *st = NULL;
    int room = 0, strategies = 0;
    bool row = true;
    hp_status status = HP_OK;
    HP_TRY(hp_db_prepare(db, query, &st, err));
    while ((status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        const char *name = hp_text_clean(arena, hp_db_text(st, 0));
        if (!s->n_curve || strcmp(s->curve[s->n_curve - 1].name, name) != 0) {
            HP_ROOM(arena, s->curve, s->n_curve, room);
            s->curve[s->n_curve++] = (hp_plot_curve){.name = name};
            strategies = 0;
        }
        hp_plot_curve *c = &s->curve[s->n_curve - 1];
        HP_ROOM(arena, c->strategy, c->n, strategies);
        c->strategy[c->n++] = hp_text_clean(arena, hp_db_text(st, 1));
    }
    sqlite3_finalize(st);
    return status;
}

static hp_status load_front(hp_arena *arena, hp_db *db, hp_plot_source *s, hp_error *err) {
    static const char query[] = "SELECT e.value FROM meta m, json_each(m.value) e"
                                " WHERE m.key = 'front' AND json_valid(m.value) AND e.type = 'integer'";
    sqlite3_stmt *st = NULL;
    int room = 0;
    bool row = true;
    hp_status status = HP_OK;
    HP_TRY(hp_db_prepare(db, query, &st, err));
    while ((status = hp_db_next(db, st, &row, err)) == HP_OK && row) {
        HP_ROOM(arena, s->front, s->n_front, room);
        s->front[s->n_front++] = sqlite3_column_int(st, 0);
    }
    sqlite3_finalize(st);
    return status;
}

static hp_status load_counters(hp_arena *arena, hp_db *db, int64_t sim, int64_t exec, hp_plot_source *s,
                               hp_error *err) {
    const int64_t run = exec >= 0 ? exec : sim;
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_PLANNED], &s->planned, &s->n_planned,
                            err));
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_PEAK], &s->peak, &s->n_peak, err));
    HP_TRY(hp_trace_counter(arena, db, sim, hp_counter_names[HP_COUNTER_MEMORY], &s->memory[0],
                            &s->n_memory[0], err));
    return hp_trace_counter(arena, db, exec, hp_counter_names[HP_COUNTER_MEMORY], &s->memory[1],
                            &s->n_memory[1], err);
}

static hp_status load_all(hp_arena *arena, hp_db *db, hp_plot_source *s, hp_error *err) {
    int64_t sim = -1, exec = -1;
    HP_TRY(hp_trace_find_pair(db, &sim, &exec, err));
    HP_TRY(load_net(arena, db, s, err));
    HP_TRY(load_candidates(arena, db, s, err));
    HP_TRY(load_curves(arena, db, s, err));
    HP_TRY(load_front(arena, db, s, err));
    HP_TRY(load_counters(arena, db, sim, exec, s, err));
    HP_TRY(hp_bench_read(arena, db, &s->bench, &s->n_bench, err));
    s->has_sim = sim >= 0;
    s->has_exec = exec >= 0;
    if (s->has_sim) HP_TRY(hp_trace_load(arena, db, sim, false, &s->sim, err));
    return s->has_exec ? hp_trace_load(arena, db, exec, false, &s->exec, err) : HP_OK;
}

hp_status hp_plot_load(hp_arena *arena, const char *path, hp_plot_source *s, hp_error *err) {
    memset(s, 0, sizeof *s);
    s->path = hp_text_clean(arena, path);
    hp_db db;
    HP_TRY(hp_db_open(path, &db, err));
    const hp_status status = load_all(arena, &db, s, err);
    hp_db_close(&db);
    return status;
}
