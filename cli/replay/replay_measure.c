/* replay_measure.c - runs the rounds, then counts what was sent. */
#include "cli/replay/cli_replay.h"
#include "traces/trace.h"

#include <math.h>

/* Odd rounds run in reverse order, so that drift (heat, other users) does not favour the first. */
static hp_status run_rounds(hp_arena *arena, const replay_request *r, replay_result *x, hp_error *err) {
    const race_options o = {.launcher = r->launcher, .hostfile = r->hostfile};
    cli_progress bar;
    cli_progress_start(&bar, "turn", (long)r->rounds * x->n);
    hp_status s = HP_OK;
    for (int round = 0; round < x->n_round && s == HP_OK; round++)
        for (int i = 0; i < x->n && s == HP_OK; i++) {
            const int k = round % 2 ? x->n - 1 - i : i;
            replay_series *one = &x->series[k];
            cli_progress_update(&bar, (long)round * x->n + i, one->comm);
            if (one->entry.out == RACE_IN)
                s = race_round(arena, &o, &one->entry, r->seconds, &x->step_s[round * x->n + k], err);
        }
    cli_progress_end(&bar);
    return s;
}

/* Runs a few steps with a trace, which records the bytes of every message. */
static hp_status count(hp_arena *arena, const replay_request *r, replay_series *s, hp_error *err) {
    enum { STEPS = 3 };
    bool recorded = false;
    hp_db db = {0};
    int64_t run = -1, n_sent;
    hp_trace t;
    hp_trace_value *sent;
    cli_launch l = {.threads = 1, .launcher = r->launcher, .hostfile = r->hostfile};
    l.option[l.n_option++] = hp_arena_printf(arena, "--steps=%d", STEPS);
    HP_TRY(workspace_run(&s->entry.work, &s->entry.plan, &l, &recorded, err));
    HP_TRY(hp_db_open(s->entry.work.db, &db, err));
    hp_status status = hp_trace_find(&db, "exec", &run, err);
    if (status == HP_OK) status = hp_trace_load(arena, &db, run, false, &t, err);
    if (status == HP_OK)
        status = hp_trace_counter(arena, &db, run, hp_counter_names[HP_COUNTER_SENT], &sent, &n_sent, err);
    if (status == HP_OK)
        hp_comm_log(arena, &t, s->entry.plan.program, sent, n_sent, STEPS, &s->row, &s->n_row);
    hp_db_close(&db);
    return status;
}

static void find_single(replay_result *x) {
    hp_arena *scratch = hp_arena_new();
    const hp_pairs p = {x->n, x->n_round, x->step_s};
    bool *live = HP_NEW(scratch, bool, x->n);
    for (int i = 0; i < x->n; i++) live[i] = !x->series[i].mix && x->series[i].entry.out == RACE_IN;
    x->single = hp_race_best(&p, live);
    for (int i = 0; i < x->n; i++) {
        const int to = x->single < 0 ? i : x->single;
        x->series[i].entry.measured = hp_pairs_measured(&p, to, i);
    }
    hp_arena_free(scratch);
}

hp_status replay_measure(hp_arena *arena, const replay_request *r, replay_result *x, hp_error *err) {
    x->n_round = (int)r->rounds;
    x->step_s = HP_NEW(arena, double, x->n_round * x->n);
    for (int i = 0; i < x->n_round * x->n; i++) x->step_s[i] = NAN;
    HP_TRY(run_rounds(arena, r, x, err));
    for (int i = 0; i < x->n; i++)
        if (x->series[i].entry.out == RACE_IN) HP_TRY(count(arena, r, &x->series[i], err));
    find_single(x);
    return HP_OK;
}
