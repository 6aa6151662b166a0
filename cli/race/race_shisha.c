/* race_shisha.c - runs, reads the trace, moves a unit, runs again. */
#include "cli/race/race_shisha.h"

#include "cli/commands/run_here.h"
#include "cli/launch/workspace.h"
#include "cli/race/race.h"
#include "base/clock.h"
#include "plan/strategy/layout.h"
#include "sim/search/conditions.h"
#include "sim/search/predict.h"
#include "traces/query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What stays the same while cuts change. */
typedef struct tuner {
    hp_arena *arena;
    const shisha_options *o;
    shisha *s;
    hp_plan stored; /* with the current cut */
    workspace work;
    hp_plan best;
    hp_prediction best_prediction;
} tuner;

/* --- one configuration --- */

typedef struct listener {
    double *step_s;
    int n, room;
} listener;

static hp_status read_line(void *self, const char *line, hp_error *err) {
    listener *l = self;
    json_t *o = json_loads(line, 0, NULL);
    const bool object = json_is_object(o);
    if (json_integer_value(json_object_get(o, "step")) > 1 && l->n < l->room)
        l->step_s[l->n++] = json_number_value(json_object_get(o, "step_s"));
    json_decref(o);
    return object
               ? HP_OK
               : hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", line);
}

static hp_status prepare(tuner *t, hp_plan *plan, hp_prediction *p, hp_error *err) {
    hp_db db = {0};
    hp_eval_setup setup;
    HP_TRY(hp_db_open(t->o->path, &db, err));
    hp_status s = hp_conditions_read(t->arena, &db, plan, &setup, err);
    if (s == HP_OK) s = hp_predict(t->arena, plan, &setup, p, err);
    hp_db_close(&db);
    HP_TRY(s);
    const run_here here = {.path = t->o->path};
    HP_TRY(run_here_check(t->arena, plan, &here, err));
    return hp_predict_store(t->work.db, plan, p, NULL, err);
}

static int stage_of(const hp_strategy *s, int rank) {
    int position, part;
    hp_role_place(s, rank % hp_strategy_roles(s), 0, &position, &part);
    return position;
}

/* Reads the seconds of a step in which each stage's slowest rank computes. */
static hp_status read_stages(const tuner *t, shisha_try *it, hp_error *err) {
    hp_db db = {0};
    hp_trace trace;
    int64_t sim, exec, n;
    HP_TRY(hp_db_open(t->work.db, &db, err));
    hp_status s = hp_trace_find_pair(&db, &sim, &exec, err);
    if (s == HP_OK) s = hp_trace_load(t->arena, &db, exec, false, &trace, err);
    hp_db_close(&db);
    HP_TRY(s);
    hp_trace_drop_warmup(&trace);
    const hp_trace_median *m = hp_trace_medians(t->arena, &trace, &n);
    double *busy = HP_NEW(t->arena, double, trace.ranks);
    for (int64_t i = 0; i < n; i++)
        if (trace.task[m[i].task].queue == HP_QUEUE_COMPUTE) busy[m[i].rank] += m[i].seconds;
    for (int r = 0; r < trace.ranks; r++) {
        double *stage = &it->stage_s[stage_of(&t->stored.strategy, r)];
        *stage = fmax(*stage, busy[r]);
    }
    return HP_OK;
}

static hp_status try_cut(tuner *t, shisha_try *it, hp_error *err) {
    hp_plan plan = t->stored;
    hp_prediction p;
    const double since = hp_now_s();
    const int steps = t->o->steps;
    bool recorded = false;
    listener self = {.step_s = HP_NEW(t->arena, double, steps), .room = steps};
    cli_launch l = {.threads = 1,
                    .launcher = t->o->launcher,
                    .hostfile = t->o->hostfile,
                    .line = read_line,
                    .self = &self};
    HP_TRY(prepare(t, &plan, &p, err));
    it->predicted_s = plan.step_s;
    l.option[l.n_option++] = hp_arena_printf(t->arena, "--steps=%d", steps + 1);
    if (plan.mode == HP_MODE_TRAIN) l.option[l.n_option++] = "--lr=0"; /* keeps the initial weights */
    if (t->o->quota) l.option[l.n_option++] = hp_arena_printf(t->arena, "--quota=%s", t->o->quota);
    HP_TRY(workspace_run(&t->work, &plan, &l, &recorded, err));
    if (self.n == 0 || !recorded) return hp_fail(err, HP_EINTERNAL, "hplan-exec reported no step");
    HP_TRY(read_stages(t, it, err));
    it->step_s = hp_median(self.step_s, self.n);
    it->spent_s = hp_now_s() - since;
    t->s->spent_s += it->spent_s;
    if (t->s->best >= 0 && it->step_s >= t->s->tried[t->s->best].step_s) return HP_OK;
    t->s->best = t->s->n;
    t->best = plan;
    t->best_prediction = p;
    return HP_OK;
}

/* --- the walk --- */

/* The stage that receives a unit: the lightest, and among equals the nearest. */
static int lightest_of(const double *stage_s, int stages, int slowest) {
    int best = -1;
    for (int k = 0; k < stages; k++) {
        if (k == slowest) continue;
        const bool lighter = best < 0 || stage_s[k] < stage_s[best],
                   nearer =
                       best >= 0 && stage_s[k] <= stage_s[best] && abs(k - slowest) < abs(best - slowest);
        if (lighter || nearer) best = k;
    }
    return best;
}

static int slowest_of(const shisha_try *it, int stages) {
    int slowest = 0;
    for (int k = 1; k < stages; k++)
        if (it->stage_s[k] > it->stage_s[slowest]) slowest = k;
    return slowest;
}

static void cut_text(const hp_strategy *s, char out[256]) {
    size_t used = 0;
    *out = '\0';
    for (int k = 0; k < s->cut.n && used < 240; k++)
        used += (size_t)snprintf(out + used, 256 - used, "%s%d", k ? ":" : "", s->cut.units[k]);
}

static bool ran_before(const shisha *s, const char *cut) {
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->tried[i].cut, cut) == 0) return true;
    return false;
}

/* Moves one unit from the slowest stage towards the lightest: every boundary between them moves by one. */
static bool shift(tuner *t, const shisha_try *it) {
    hp_strategy *s = &t->stored.strategy;
    const int from = slowest_of(it, t->s->stages), to = lightest_of(it->stage_s, t->s->stages, from);
    if (to < 0 || s->cut.units[from] < 2) return false;
    s->cut.units[from]--;
    s->cut.units[to]++;
    return true;
}

static hp_status walk(tuner *t, hp_error *err) {
    shisha *s = t->s;
    const double since = hp_now_s();
    for (int without = 0;; s->n++) {
        shisha_try *it = &s->tried[s->n];
        if (s->n == SHISHA_MOST - 1) return s->end = SHISHA_FULL, HP_OK;
        cut_text(&t->stored.strategy, it->cut);
        if (ran_before(s, it->cut)) return s->end = SHISHA_CIRCLE, HP_OK;
        const int before = s->best;
        HP_TRY(try_cut(t, it, err));
        without = s->best == before ? without + 1 : 0;
        const bool over = hp_now_s() - since + it->spent_s > t->o->seconds;
        if (without >= t->o->alpha || over || !shift(t, it)) {
            s->end = without >= t->o->alpha ? SHISHA_ALPHA : over ? SHISHA_TIME : SHISHA_STUCK;
            s->n++;
            return HP_OK;
        }
    }
}

/* --- before and after --- */

static hp_status open_plan(tuner *t, hp_error *err) {
    hp_db db = {0};
    HP_TRY(hp_db_open(t->o->path, &db, err));
    const hp_status s = hp_plan_read(t->arena, &db, &t->stored, err);
    hp_db_close(&db);
    HP_TRY(s);
    const hp_strategy *x = &t->stored.strategy;
    t->s->stages = x->stages;
    HP_TRY(race_check_machine(&t->stored.machine, "tune", err));
    if (x->stages < 2 || x->chunks > 1 || x->gems > 1)
        return hp_fail(
            err, HP_EPLAN,
            "--moves shisha shifts units between stages of ranks of their own, and %.100s has %s: plan "
            "with --strategy stages=%d",
            t->o->path, x->stages < 2 ? "one stage" : "ranks with several stages (interleaved or gems)",
            x->stages < 2 ? 2 : x->stages);
    return HP_OK;
}

/* The candidates keep their ranking. */
static hp_status write_best(tuner *t, hp_error *err) {
    hp_db db = {0};
    hp_candidate *c = NULL;
    hp_rejected *rejected = NULL;
    int n = 0, n_rejected = 0;
    if (t->s->best <= 0) return HP_OK; /* the plan's own */
    HP_TRY(hp_db_open(t->o->path, &db, err));
    const hp_status s = hp_candidates_read(t->arena, &db, &c, &n, &rejected, &n_rejected, err);
    hp_db_close(&db);
    HP_TRY(s);
    const hp_ranking ranking = {c, n, rejected, n_rejected, NULL};
    HP_TRY(hp_predict_store(t->o->path, &t->best, &t->best_prediction, &ranking, err));
    t->s->wrote = true;
    return HP_OK;
}

hp_status shisha_run(hp_arena *arena, const shisha_options *o, shisha *s, hp_error *err) {
    tuner t = {.arena = arena, .o = o, .s = s};
    *s = (shisha){.best = -1};
    HP_TRY(open_plan(&t, err));
    HP_TRY(workspace_open(o->path, &t.work, err));
    hp_status status = walk(&t, err);
    workspace_close(&t.work);
    if (status == HP_OK) status = write_best(&t, err);
    return status;
}
