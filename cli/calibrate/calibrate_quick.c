/* calibrate_quick.c - chooses the run that tells the most for its time.
 *
 * The candidates of a search share shapes: a micro-batch of a given size on one rank has the tasks of every
 * pipeline and replica with that micro-batch. So each candidate stands for up to three runs: its micro-batch
 * on one rank; the same on all cores at once, for contention between ranks; and, if a stage is divided, its
 * division with one micro-batch.
 *
 * A run is worth the uncertainty that it removes (weights times errors of its tasks). Once nothing is
 * uncertain, repeating it at another time still has a small value, because a machine's speed changes from
 * minute to minute. The run with the most value per second is next. */
#include "cli/calibrate/calibrate_quick.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

enum {
    JOBS = 96,
    VISITS = 3,
    FEWEST_STEPS = 4,
    MOST_STEPS = 40,
    SEARCHES = 4,
    HELD = 3,
    HELD_STEPS = 6,
    MOST_HELD_STEPS = 400
};
static const double HELD_S = 1;         /* seconds of steps of a held run, as for a run that somebody
                                         * watches */
static const double HELD_PART = 0.15;   /* fraction of the time for whole strategies */
static const double MEASURE_S = 0.6;    /* seconds of a visit, beside its start */
static const double START_S = 0.5;      /* seconds to start a run, until one was timed */
static const double SMALL_ERROR = 0.03; /* a row's error after it was measured */
static const double AGAIN = 0.01;       /* value of revisiting what is known */
static const double OF_A_RUN = 0.06;    /* variation between runs of the same at different times */
static const double ALONE = 4;          /* value of a single-rank run, relative to the same with several
                                         * ranks */
static const double CONTENTION = 0.15;  /* error of a step if contention between ranks is unknown */
static const double DIVIDED =
    3; /* parts of a stage wait for each other, so their steps take longer than their tasks */

typedef struct planned_run {
    calibrate_job job;
    calibrate_needs has; /* tasks of its program */
    int visits;
    double took_s; /* time of the last run; 0: not run yet */
} planned_run;

typedef struct chooser {
    hp_arena *arena;
    simulate_setup *setup;
    const calibrate_measure *measure;
    hp_cost_table *table; /* built from the measurements so far; NULL: none yet */
    calibrate_needs needs;
    int n;
    planned_run *run;
    double error;
    int searches;
} chooser;

/* --- the runs to choose from --- */

static bool is_new(const chooser *c, const calibrate_job *job) {
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->run[i].job.text, job->text) == 0) return false;
    return c->n < JOBS;
}

static bool builds(chooser *c, const hp_strategy *strategy, int64_t batch, hp_plan *plan) {
    hp_error ignored = {0};
    hp_reject why;
    *plan = simulate_plan(c->setup, strategy, batch);
    if (hp_plan_graph(c->arena, plan, &plan->graph, &ignored) != HP_OK) return false;
    hp_eval *e = simulate_eval(c->arena, c->setup, batch);
    return hp_eval_allows(hp_eval_get(e), strategy, 0, &why) &&
           hp_plan_build(c->arena, plan, NULL, &ignored) == HP_OK;
}

static calibrate_job job_of(const simulate_setup *s, const hp_strategy *strategy, int64_t batch) {
    char text[HP_STRATEGY_TEXT];
    calibrate_job j = {.kind = CALIBRATE_NET,
                       .image_h = s->network.image_h,
                       .image_w = s->network.image_w,
                       .mode = s->step.mode,
                       .strategy = strategy,
                       .batch = batch};
    snprintf(j.net, sizeof j.net, "%s", s->network.net);
    snprintf(j.text, sizeof j.text, "%.50s of %lld", hp_strategy_text(strategy, text), (long long)batch);
    return j;
}

static hp_status add_run(chooser *c, const hp_strategy *strategy, int64_t batch, hp_error *err) {
    hp_plan plan;
    const simulate_setup *s = c->setup;
    const calibrate_job j = job_of(s, strategy, batch);
    if (!is_new(c, &j) || !builds(c, strategy, batch, &plan)) return HP_OK;
    planned_run *o = &c->run[c->n];
    *o = (planned_run){.job = j};
    HP_TRY(calibrate_needs_of(c->arena, &plan, s->costs.table, &o->has, err));
    c->n++;
    return HP_OK;
}

static hp_strategy plain(const hp_strategy *like) {
    hp_strategy s = hp_strategy_default();
    s.prec = like->prec;
    s.strips.n = like->strips.n;
    s.strips.deep = like->strips.deep;
    return s;
}

static bool is_divided(const hp_strategy *s) {
    return s->sp.n > 0 || s->cp > 1 || s->bp > 1 || s->ldp > 1;
}

static hp_status add_runs_of(chooser *c, const calibrate_candidate *k, hp_error *err) {
    const int ranks = calibrate_ranks(&c->setup->machine);
    hp_strategy *s = HP_NEW(c->arena, hp_strategy, 3);
    s[0] = s[1] = plain(&k->strategy);
    s[1].dp = ranks;
    s[2] = k->strategy;
    s[2].dp = s[2].micro = 1;
    s[2].recompute = HP_RECOMPUTE_NONE; /* recomputation runs the same tasks again */
    HP_TRY(add_run(c, &s[0], k->micro_batch, err));
    if (ranks > 1) HP_TRY(add_run(c, &s[1], ranks * k->micro_batch, err));
    const bool divided = is_divided(&s[2]) && s[2].gems == 1 && hp_strategy_ranks(&s[2]) <= ranks;
    return divided ? add_run(c, &s[2], k->micro_batch, err) : HP_OK;
}

static void add_messages(chooser *c, const calibrate_jobs *messages) {
    for (int i = 0; c->needs.most_bytes > 0 && i < messages->n && c->n < JOBS; i++)
        c->run[c->n++] = (planned_run){.job = messages->job[i]};
}

/* --- what a run is worth --- */

static double guessed_step_s(const planned_run *o) {
    double sum = 0;
    for (int i = 0; i < o->has.n; i++) sum += o->has.need[i].weight;
    return sum;
}

/* Fraction of the candidates' time that a run's tasks cover. */
static double covered(const chooser *c, const planned_run *o) {
    double sum = 0;
    for (int i = 0; i < o->has.n; i++) {
        const calibrate_need *n = bsearch(&o->has.need[i], c->needs.need, (size_t)c->needs.n,
                                          sizeof *c->needs.need, calibrate_need_compare);
        if (n) sum += n->weight;
    }
    return sum;
}

/* Reduction of a spread in the mean of this many visits by one more visit. */
static double removed(int visits) {
    return visits ? 1 / sqrt(visits) - 1 / sqrt(visits + 1) : 1;
}

/* Messages come first: without them, no two ranks can be compared. */
static double worth(const chooser *c, const planned_run *o) {
    double sum = 0;
    if (o->job.kind != CALIBRATE_NET) return o->visits ? AGAIN / o->visits : 1e3;
    for (int i = 0; i < o->has.n; i++) {
        const calibrate_need *n = bsearch(&o->has.need[i], c->needs.need, (size_t)c->needs.n,
                                          sizeof *c->needs.need, calibrate_need_compare);
        if (n)
            sum += n->weight *
                   ((fmax(0, n->error - SMALL_ERROR) + (o->visits ? OF_A_RUN : 0)) * removed(o->visits) +
                    AGAIN / (1 + o->visits));
    }
    if (o->visits > 0) return sum;
    /* A single rank is the basis for correcting everything else; next to others, the same tasks show how much
     * ranks slow each other down. */
    if (hp_strategy_ranks(o->job.strategy) == 1) return ALONE * sum;
    return is_divided(o->job.strategy) ? sum : fmax(sum, CONTENTION * covered(c, o));
}

static double expected_s(const planned_run *o) {
    return o->took_s > 0 ? o->took_s : START_S + fmax(MEASURE_S, FEWEST_STEPS * guessed_step_s(o));
}

/* The best run that still fits into `left_s`; NULL: none, or everything is known well. */
static planned_run *choose(const chooser *c, double left_s) {
    planned_run *best = NULL;
    double most = 0;
    int fewest = VISITS;
    for (int i = 0; i < c->n; i++)
        if (c->run[i].visits < fewest) fewest = c->run[i].visits;
    if (fewest >= 2 && (c->error < SMALL_ERROR || fewest == VISITS)) return NULL;
    for (int i = 0; i < c->n; i++) {
        planned_run *o = &c->run[i];
        const double value = worth(c, o) / expected_s(o);
        if (o->visits == VISITS || value <= most || expected_s(o) > left_s) continue;
        best = o;
        most = value;
    }
    return best;
}

static hp_status visit(chooser *c, planned_run *o, hp_error *err) {
    const double begun_s = hp_now_s(), step_s = guessed_step_s(o);
    if (o->job.kind == CALIBRATE_NET) {
        const double each_s = step_s * (is_divided(o->job.strategy) ? DIVIDED : 1),
                     steps = each_s > 0 ? MEASURE_S / each_s : FEWEST_STEPS;
        o->job.steps = steps < FEWEST_STEPS ? FEWEST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int64_t)steps;
    }
    HP_TRY(c->measure->run(c->measure->self, &o->job, err));
    HP_TRY(c->measure->table(c->measure->self, &c->table, err));
    const hp_cost_table *t = c->table;
    c->error = calibrate_needs_update(&c->needs, t, &c->setup->machine);
    for (int i = 0; i < c->n; i++) /* current knowledge determines the times of later runs */
        for (int k = 0; k < c->run[i].has.n; k++) {
            calibrate_need *n = &c->run[i].has.need[k];
            n->weight = hp_cost_compute(t, &c->setup->machine, &n->work).seconds;
        }
    o->visits++;
    o->took_s = hp_now_s() - begun_s;
    return HP_OK;
}

/* Searches with the current table and adds its candidates' runs to the list. */
static hp_status search(chooser *c, hp_cost_table *t, hp_error *err) {
    c->setup->costs.table = t;
    c->searches++;
    HP_TRY(calibrate_needs_find(c->arena, c->setup, &c->needs, err));
    for (int i = 0; i < c->needs.n_candidate; i++) HP_TRY(add_runs_of(c, &c->needs.candidate[i], err));
    c->error = calibrate_needs_update(&c->needs, t, &c->setup->machine);
    return HP_OK;
}

/* Before anything is measured twice, searches again for other candidates. */
static hp_status next_run(chooser *c, double left_s, planned_run **next, hp_error *err) {
    *next = choose(c, left_s);
    if (c->searches >= SEARCHES || !c->table || (*next && (*next)->visits == 0)) return HP_OK;
    HP_TRY(search(c, c->table, err));
    *next = choose(c, left_s);
    return HP_OK;
}

/* The predicted step if it rests on measurements, otherwise 0: unmeasured costs already say so in their rows;
 * the error of measured ones is wanted. */
static double known_step_s(chooser *c, const calibrate_candidate *k) {
    static const double LEAST = 0.9;
    hp_error ignored = {0};
    hp_evaluation e;
    hp_eval *eval = simulate_eval(c->arena, c->setup, k->batch);
    const bool known = hp_evaluate(eval, c->arena, &k->strategy, HP_EVAL_PLACED, &e, &ignored) == HP_OK &&
                       !e.reject.code && e.figures.measured_share >= LEAST;
    return known ? e.figures.step_s : 0;
}

/* Runs the best candidate of each family with several ranks, as many as fit into the seconds. */
static hp_status hold_candidates(chooser *c, double seconds, hp_error *err) {
    const double begun_s = hp_now_s();
    if (c->table) c->setup->costs.table = c->table;
    double longest_s = START_S + MEASURE_S;
    hp_status status = HP_OK;
    bool seen[HP_FAMILIES] = {false};
    /* Where there are several batches, the middle one comes first. */
    const int middle = c->setup->step.batch ? 0 : c->needs.n_candidate / 3;
    for (int i = 0, n = 0; i < c->needs.n_candidate && n < HELD && status == HP_OK; i++) {
        const calibrate_candidate *k = &c->needs.candidate[(i + middle) % c->needs.n_candidate];
        const double before_s = hp_now_s();
        const hp_family family = hp_family_of(&k->strategy);
        const int ranks = hp_strategy_ranks(&k->strategy);
        if (seen[family] || ranks < 2 || ranks > calibrate_ranks(&c->setup->machine)) continue;
        const double step_s = known_step_s(c, k);
        if (step_s <= 0) continue;
        seen[family] = true;
        if (before_s - begun_s + longest_s > seconds) break;
        calibrate_job j = job_of(c->setup, &k->strategy, k->batch);
        j.steps = HELD_STEPS + (int64_t)fmin(MOST_HELD_STEPS, HELD_S / step_s);
        status = c->measure->hold(c->measure->self, &j, err);
        longest_s = fmax(longest_s, hp_now_s() - before_s);
        n++;
    }
    return status;
}

hp_status calibrate_quick(hp_arena *arena, simulate_setup *s, const calibrate_jobs *messages, double seconds,
                          const calibrate_measure *measure, calibrate_outcome *out, hp_error *err) {
    const double begun_s = hp_now_s(), all_s = seconds;
    if (measure->hold) seconds *= 1 - HELD_PART;
    chooser c = {.arena = arena, .setup = s, .measure = measure, .run = HP_NEW(arena, planned_run, JOBS)};
    HP_TRY(search(&c, s->costs.table, err));
    add_messages(&c, messages);
    *out = (calibrate_outcome){.error = 1};
    cli_progress bar;
    cli_progress_start(&bar, "seconds", lround(seconds));
    hp_status status = HP_OK;
    for (planned_run *o = NULL; status == HP_OK; out->runs++) {
        double spent_s = hp_now_s() - begun_s;
        status = next_run(&c, out->runs ? seconds - spent_s : INFINITY, &o, err);
        if (status != HP_OK) break;
        spent_s = hp_now_s() - begun_s;
        out->finished = !o && spent_s < seconds;
        if (!o) break;
        char detail[160];
        snprintf(detail, sizeof detail, "%s; expected error %.1f%%", o->job.text, 100 * c.error);
        cli_progress_update(&bar, lround(fmin(spent_s, seconds)), detail);
        status = visit(&c, o, err);
    }
    if (status == HP_OK && measure->hold && out->runs > 0)
        status = hold_candidates(&c, all_s - (hp_now_s() - begun_s), err);
    cli_progress_end(&bar);
    out->error = c.error;
    return status;
}
