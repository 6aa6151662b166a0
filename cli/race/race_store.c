/* race_store.c - reads plan.db before a race and writes it afterwards. */
#include "cli/race/race.h"

#include "cli/commands/run_here.h"
#include "base/units.h"
#include "sim/search/conditions.h"
#include "traces/trace_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

hp_status race_check_machine(const hp_machine *m, const char *what, hp_error *err) {
    if (hp_device_of_machine(m->name)) return HP_OK;
    return hp_fail(err, HP_EPLAN,
                   "%s runs candidates, and machine %s is not this one: plan with --machine local (%s)", what,
                   m->name, hp_device_machines);
}

/* --- before --- */

static hp_status make_plan(hp_arena *arena, hp_db *db, const hp_plan *stored, const char *path, race_entry *e,
                           hp_error *err) {
    hp_eval_setup setup;
    e->plan = *stored;
    e->plan.batch = e->candidate->batch;
    HP_TRY(hp_strategy_parse(e->candidate->strategy, &e->plan.strategy, err));
    HP_TRY(hp_conditions_read(arena, db, &e->plan, &setup, err));
    HP_TRY(hp_predict(arena, &e->plan, &setup, &e->prediction, err));
    const run_here here = {.path = path};
    HP_TRY(run_here_check(arena, &e->plan, &here, err));
    e->expected_s = e->plan.step_s > 0 ? e->plan.step_s : 1;
    return hp_predict_store(e->work.db, &e->plan, &e->prediction, NULL, err);
}

/* Index of the plan's own candidate, the best for its number of devices; none for a strategy that is not a
 * candidate (--cut by hand). */
static int find_first(const race *r, const hp_plan *plan) {
    for (int i = 0; i < r->n_candidate; i++)
        if (r->candidate[i].gpus == hp_strategy_devices(&plan->strategy) &&
            r->candidate[i].batch == plan->batch)
            return i;
    return r->n_candidate;
}

static hp_status enter(hp_arena *arena, const race_options *o, hp_db *db, race *r, const workspace *w,
                       hp_error *err) {
    hp_plan stored;
    int pick[RACE_MOST];
    HP_TRY(hp_plan_read(arena, db, &stored, err));
    HP_TRY(race_check_machine(&stored.machine, "tune", err));
    race_pick(r->candidate, r->n_candidate, find_first(r, &stored), (int)o->top, pick, &r->n);
    if (r->n == 0)
        return hp_fail(err, HP_EPLAN, "%s holds no candidates of its own size: search with hplan simulate",
                       o->path);
    r->entry = HP_NEW(arena, race_entry, r->n);
    for (int i = 0; i < r->n; i++) {
        race_entry *e = &r->entry[i];
        *e = (race_entry){.number = pick[i] + 1, .candidate = &r->candidate[pick[i]], .work = *w};
        snprintf(e->work.db, sizeof e->work.db, "%.4127s/plan-%d.db", w->dir, e->number);
        const hp_status s = make_plan(arena, db, &stored, o->path, e, err);
        if (s != HP_OK && s != HP_EPLAN) return s;
        if (s == HP_OK) continue;
        e->out = RACE_FAILED;
        e->why = hp_text_clean(arena, err->text);
        fprintf(stderr, "hplan: warning: number %d (%s) is left out: %s\n", e->number, e->candidate->strategy,
                e->why);
    }
    return HP_OK;
}

/* Creates the directory for the runs early, so that a wrong name costs no time. */
static hp_status open_folder(hp_arena *arena, const race_options *o, workspace *w, hp_error *err) {
    if (!o->keep) return workspace_open(o->path, w, err);
    if (mkdir(o->keep, 0777) != 0 && errno != EEXIST)
        return hp_fail(err, HP_ECREATE, "cannot make the folder %.300s: %s", o->keep, strerror(errno));
    return workspace_open(hp_arena_printf(arena, "%s/race.db", o->keep), w, err);
}

hp_status race_open(hp_arena *arena, const race_options *o, race *r, workspace *w, hp_error *err) {
    hp_db db = {0};
    hp_rejected *rejected = NULL;
    int n_rejected = 0;
    hp_status s = hp_db_open(o->path, &db, err);
    if (s == HP_OK)
        s = hp_candidates_read(arena, &db, &r->candidate, &r->n_candidate, &rejected, &n_rejected, err);
    if (s == HP_OK) s = open_folder(arena, o, w, err);
    if (s == HP_OK) s = enter(arena, o, &db, r, w, err);
    hp_db_close(&db);
    return s;
}

/* --- after --- */

/* Order: the winner, then by measured time, then those that never ran. */
static bool goes_before(const race *r, int a, int b) {
    const hp_measured *x = &r->entry[a].measured, *y = &r->entry[b].measured;
    if (a == r->winner || b == r->winner) return a == r->winner;
    if (!x->rounds || !y->rounds) return x->rounds > 0 && !y->rounds;
    return x->step_s < y->step_s;
}

static int *sort_entries(hp_arena *arena, const race *r) {
    int *by = HP_NEW(arena, int, r->n);
    for (int i = 0; i < r->n; i++) {
        int k = i;
        for (; k > 0 && goes_before(r, i, by[k - 1]); k--) by[k] = by[k - 1];
        by[k] = i;
    }
    return by;
}

/* Are two adjacent candidates tied: could the second be as fast? */
static bool is_tie(const race *r, int before, int i) {
    const hp_pairs p = {r->n, r->n_round, r->step_s};
    const hp_pair pair = hp_pairs_of(&p, NULL, before, i);
    if (before == r->winner) return r->entry[i].out != RACE_SLOWER;
    return hp_pair_slower(&pair) >= HP_RACE_ALPHA;
}

static void put(race *r, hp_candidate *list, int *n, int index) {
    r->before[*n] = index;
    list[(*n)++] = r->candidate[index];
}

/* The race's candidates move to where the first of them was; the others keep their order. */
static void rank_anew(hp_arena *arena, race *r) {
    hp_candidate *list = HP_NEW(arena, hp_candidate, r->n_candidate);
    bool *moved = HP_NEW(arena, bool, r->n_candidate);
    const int *by = sort_entries(arena, r);
    int n = 0;
    r->before = HP_NEW(arena, int, r->n_candidate);
    for (int i = 0; i < r->n; i++) {
        const hp_measured *m = &r->entry[i].measured;
        hp_candidate *c = r->entry[i].candidate;
        moved[r->entry[i].number - 1] = true;
        if (!m->rounds) continue;
        c->measured_s = m->step_s;
        c->measured_low_s = m->low_s;
        c->measured_high_s = m->high_s;
        c->rounds = m->rounds;
    }
    int first = 0;
    while (!moved[first]) first++;
    for (int i = 0; i < r->n_candidate; i++) {
        for (int k = 0; i == first && k < r->n; k++) {
            const race_entry *e = &r->entry[by[k]];
            put(r, list, &n, e->number - 1);
            if (e->measured.rounds) list[n - 1].tie = k > 0 && is_tie(r, by[k - 1], by[k]);
        }
        if (!moved[i]) put(r, list, &n, i);
    }
    r->candidate = list;
}

static hp_status keep_runs(const race_options *o, race *r, hp_error *err) {
    for (int i = 0; o->keep && i < r->n; i++) {
        race_entry *e = &r->entry[i];
        if (!e->measured.rounds) continue;
        snprintf(e->work.final, sizeof e->work.final, "%.4000s/number-%d.db", o->keep, e->number);
        HP_TRY(workspace_commit(&e->work, err));
    }
    return HP_OK;
}

static hp_status write_winner(const race *r, const hp_rejected *rejected, int n_rejected, const char *path,
                              hp_error *err) {
    const race_entry *e = &r->entry[r->winner];
    const hp_ranking ranking = {r->candidate, r->n_candidate, rejected, n_rejected};
    return hp_predict_store(path, &e->plan, &e->prediction, &ranking, err);
}

hp_status race_store(hp_arena *arena, const race_options *o, race *r, hp_error *err) {
    hp_db db = {0};
    hp_candidate *c = NULL;
    hp_rejected *rejected = NULL;
    int n = 0, n_rejected = 0;
    hp_status s = hp_db_open(o->path, &db, err);
    if (s == HP_OK) s = hp_candidates_read(arena, &db, &c, &n, &rejected, &n_rejected, err);
    hp_db_close(&db);
    HP_TRY(s);
    rank_anew(arena, r);
    HP_TRY(write_winner(r, rejected, n_rejected, o->path, err));
    return keep_runs(o, r, err);
}
