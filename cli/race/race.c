/* race.c - runs rounds until one candidate is left, the remaining ones are equal, or time is over. */
#include "cli/race/race.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>

/* Seconds of steps in a round: as long as starting the ranks takes, which at most halves the number of
 * rounds, within limits. A shorter round sees one state of a shared core; a longer one wastes time that more
 * rounds would use to cancel noise. */
static const double ROUND_LEAST_S = 0.5, ROUND_MOST_S = 2;

static double target_of(const race *r, const race_options *o) {
    double start_s = 0;
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].wall_s > 0) start_s += r->entry[i].start_s, n++;
    const double want = n ? start_s / n : fmin(1, o->seconds / (4.0 * r->n));
    return fmax(ROUND_LEAST_S, fmin(ROUND_MOST_S, want));
}

static bool *who_is(const race *r, hp_arena *arena) {
    bool *live = HP_NEW(arena, bool, r->n);
    for (int i = 0; i < r->n; i++) live[i] = r->entry[i].out == RACE_IN;
    return live;
}

static int left(const race *r) {
    int n = 0;
    for (int i = 0; i < r->n; i++) n += r->entry[i].out == RACE_IN;
    return n;
}

/* --- a round --- */

static void add_round(hp_arena *arena, race *r) {
    if (r->n_round == r->room) {
        const int room = r->room ? 2 * r->room : 16;
        double *step_s = HP_NEW(arena, double, room * r->n);
        int *order = HP_NEW(arena, int, room * r->n);
        for (int k = 0; k < r->n_round * r->n; k++) step_s[k] = r->step_s[k], order[k] = r->order[k];
        r->step_s = step_s;
        r->order = order;
        r->room = room;
    }
    for (int i = 0; i < r->n; i++) {
        r->step_s[r->n_round * r->n + i] = NAN;
        r->order[r->n_round * r->n + i] = -1;
    }
}

/* Shuffles the remaining candidates (Fisher and Yates): a fixed neighbour would pass on its after-effects in
 * every round. */
static int shuffle(const race *r, const race_options *o, int *order) {
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].out == RACE_IN) order[n++] = i;
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)hp_rng_below(o->seed, (uint64_t)r->n_round, (uint64_t)i, (uint64_t)i + 1),
                  held = order[i];
        order[i] = order[k];
        order[k] = held;
    }
    return n;
}

static hp_status run_round(hp_arena *arena, const race_options *o, race *r, cli_progress *bar, double start_s,
                           hp_error *err) {
    add_round(arena, r);
    int *order = &r->order[r->n_round * r->n];
    double *step_s = &r->step_s[r->n_round * r->n];
    const double target_s = target_of(r, o);
    const int n = shuffle(r, o, order);
    hp_status s = HP_OK;
    r->n_round++;
    for (int i = 0; i < n && s == HP_OK; i++) {
        race_entry *e = &r->entry[order[i]];
        char detail[HP_STRATEGY_TEXT + 32];
        snprintf(detail, sizeof detail, "round %d: %s", r->n_round, e->candidate->strategy);
        cli_progress_update(bar, (long)fmin(hp_now_s() - start_s, o->seconds), detail);
        s = race_round(arena, o, e, target_s, &step_s[order[i]], err);
        if (e->out == RACE_FAILED)
            fprintf(stderr, "hplan: warning: number %d (%s) does not run and is left out: %s\n", e->number,
                    e->candidate->strategy, e->why);
    }
    return s;
}

/* --- who leaves --- */

static void leave(race *r, const bool *live, race_out why) {
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].out == RACE_IN && !live[i]) r->entry[i].out = why;
}

/* Number of times that n can be halved. */
static int halvings(int n) {
    int k = 0;
    for (; n > 1; n = (n + 1) / 2) k++;
    return k;
}

static double spent(const race *r, const race_options *o, double start_s) {
    const double rounds = o->rounds ? (double)r->n_round / (double)o->rounds : 0;
    return fmax((hp_now_s() - start_s) / o->seconds, rounds);
}

/* Judges after a round. Half of the remaining candidates rest whenever an equal share of the time is over
 * (Karnin et al. 2013). */
static void judge(const race_options *o, race *r, double start_s) {
    hp_arena *scratch = hp_arena_new();
    const hp_pairs p = {r->n, r->n_round, r->step_s};
    const int look = r->n_round - HP_RACE_FIRST + 1, all = halvings(r->n);
    bool *live = who_is(r, scratch);
    if (look > 0) {
        hp_race_drop(&p, look, live);
        leave(r, live, RACE_SLOWER);
    }
    r->settled = left(r) <= 1 || (look > 0 && hp_race_settled(&p, look, live));
    while (!r->settled && left(r) > 2 && all - halvings(left(r)) < (int)(spent(r, o, start_s) * all)) {
        hp_race_halve(&p, live);
        leave(r, live, RACE_RESTED);
    }
    hp_arena_free(scratch);
}

static bool is_over(const race_options *o, const race *r, double start_s) {
    double next_s = 0;
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].out == RACE_IN) next_s += r->entry[i].wall_s;
    return (o->rounds && r->n_round >= o->rounds) || hp_now_s() - start_s + next_s > o->seconds;
}

static hp_status run_rounds(hp_arena *arena, const race_options *o, race *r, hp_error *err) {
    cli_progress bar;
    const double start_s = hp_now_s();
    hp_status s = HP_OK;
    cli_progress_start(&bar, "second", (long)o->seconds);
    do {
        s = run_round(arena, o, r, &bar, start_s, err);
        if (s == HP_OK) judge(o, r, start_s);
    } while (s == HP_OK && !r->settled && !is_over(o, r, start_s));
    cli_progress_end(&bar);
    r->elapsed_s = hp_now_s() - start_s;
    return s;
}

/* --- the result --- */

static void measure(race *r) {
    hp_arena *scratch = hp_arena_new();
    const hp_pairs p = {r->n, r->n_round, r->step_s};
    r->winner = hp_race_best(&p, who_is(r, scratch));
    for (int i = 0; i < r->n && r->winner >= 0; i++)
        r->entry[i].measured = hp_pairs_measured(&p, r->winner, i);
    for (int i = 0; i < r->n && r->winner >= 0; i++)
        r->entry[i].change = r->entry[i].measured.step_s / r->entry[r->winner].measured.step_s - 1;
    hp_arena_free(scratch);
}

static hp_status none_ran(const race *r, hp_error *err) {
    return hp_fail(err, HP_EPLAN, "none of the %d candidates runs; number %d (%s): %s", r->n,
                   r->entry[0].number, r->entry[0].candidate->strategy, r->entry[0].why);
}

/* Is it a signal to hplan? HP_EDEAD, 137, belongs to a rank. */
static bool is_signal(hp_status s) {
    return (int)s > 128 && s != HP_EDEAD;
}

/* outcome: HP_OK, or a signal whose message is in err. */
static hp_status conclude(hp_arena *arena, const race_options *o, race *r, hp_status outcome, hp_error *err) {
    measure(r);
    if (r->winner < 0) return outcome == HP_OK ? none_ran(r, err) : outcome;
    const hp_status s = race_store(arena, o, r, outcome == HP_OK ? err : NULL);
    if (s != HP_OK) r->winner = -1; /* nothing to show */
    return outcome == HP_OK ? s : outcome;
}

hp_status race_run(hp_arena *arena, const race_options *o, race *r, hp_error *err) {
    workspace w = {.dir = ""};
    *r = (race){.winner = -1};
    hp_status s = race_open(arena, o, r, &w, err);
    if (s == HP_OK) s = run_rounds(arena, o, r, err);
    r->stopped = is_signal(s);
    if (s == HP_OK || r->stopped) s = conclude(arena, o, r, s, err);
    workspace_close(&w);
    return s;
}
