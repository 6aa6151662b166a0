/* cmd_simulate.c - which strategy is fastest and fits: searches, shows the ranked candidates and the nearest
 * rejects, and stores the best one as a plan with its predicted trace. */
#include "cli/commands/simulate_largest.h"
#include "cli/commands/simulate_search.h"
#include "cli/show/simulate_show.h"
#include "cli/race/race.h"
#include "base/clock.h"
#include "base/units.h"

#include <string.h>
#include <unistd.h>

hp_status simulate_find(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err) {
    const double start_s = hp_now_s();
    HP_TRY((s->curves.has_strategy ? simulate_curves : simulate_search)(arena, s, f, err));
    if (f->chosen >= f->n) f->chosen = 0;
    simulate_rate_points(s, f);
    f->tally.elapsed_s = hp_now_s() - start_s;
    return HP_OK;
}

static hp_status no_plan(const simulate_found *f, hp_error *err) {
    if (!f->without.n_rejected)
        return hp_fail(err, HP_EPLAN, "no strategy was searched; raise --gpus or --batch");
    const hp_rejected *r = simulate_nearest(NULL, f->without.rejected, f->without.n_rejected);
    if (f->tally.open)
        return hp_fail(
            err, HP_EPLAN,
            "none of the strategies that were tried fits; %lld that may were too many tasks for a search "
            "(--strategy evaluates one); nearest: %s: %s: %s; fix: %s",
            (long long)f->tally.open, r->example, hp_reject_text(r->code), r->limit, r->fix);
    return hp_fail(err, HP_EPLAN, "no feasible plan: %s: %s: %s; fix: %s", r->example,
                   hp_reject_text(r->code), r->limit, r->fix);
}

/* The largest count's best is the plan; the candidates of all counts are stored. */
static hp_status write_plan(hp_arena *arena, const simulate_setup *s, const simulate_found *f,
                            const char *path, hp_error *err) {
    hp_plan plan = simulate_plan(s, &f->list[f->chosen].strategy, f->batch);
    hp_prediction prediction = {0};
    HP_TRY(hp_predict(arena, &plan, &s->eval, &prediction, err));
    hp_candidate *c = HP_NEW(arena, hp_candidate, f->n);
    for (int i = 0; i < f->n; i++) c[i] = f->list[i].figures;
    const hp_ranking ranking = {c, f->n, f->without.rejected, f->without.n_rejected,
                                simulate_curves_text(arena, f)};
    return hp_predict_store(path, &plan, &prediction, &ranking, err);
}

/* In inference alone layers differ in how they are stored. */
static hp_status check_float_layers(const simulate_options *o, const simulate_setup *s, hp_error *err) {
    const bool train = s->step.mode == HP_MODE_TRAIN;
    bool low = false;
    for (int i = 0; i < s->network.n_prec; i++)
        low |=
            hp_prec_store(s->network.prec[i]) != HP_STORE_REAL || s->network.prec[i] == HP_PREC_INT8_DYNAMIC;
    if (!o->network.float_layers || (low && !train)) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--float-layers are left out of low precision, %s: %s",
                   train ? "and training stores all layers alike" : "and fp32 and tf32 store real numbers",
                   train ? "give --mode infer --prec int8" : "give --prec int8");
}

/* The best so far is a result all the same. */
static hp_status stopped(const simulate_found *f, hp_error *err) {
    return hp_fail(err, (hp_status)(128 + SIGINT), "stopped: %s",
                   f->n ? "the plan is the best so far" : "nothing had been found yet");
}

/* --- running the best --- */

static hp_status parse_race(const simulate_options *o, const simulate_setup *s, const char *path,
                            race_options *r, hp_error *err) {
    *r = (race_options){.path = path, .seconds = RACE_SECONDS, .seed = s->step.seed};
    if (o->race.seconds && !o->race.measure)
        return hp_fail(err, HP_EUSAGE, "--seconds is the time for --measure: give that too");
    if (!o->race.measure) return HP_OK;
    if (s->curves.has_strategy)
        return hp_fail(err, HP_EUSAGE,
                       "--measure compares candidates, --strategy evaluates one: give one of them");
    HP_TRY(hp_parse_int(o->race.measure, "--measure", 2, RACE_MOST, &r->top, err));
    if (o->race.seconds) HP_TRY(hp_parse_double(o->race.seconds, "--seconds", 0.001, 1e6, &r->seconds, err));
    return race_check_machine(&s->machine, "--measure", err);
}

/* The candidates in the order that the race leaves them in. Without a winner nothing changes. */
static hp_status measure(hp_arena *arena, const race_options *o, simulate_found *f, race *r, hp_error *err) {
    const hp_status s = race_run(arena, o, r, err);
    hp_evaluation *list = HP_NEW(arena, hp_evaluation, f->n);
    if (r->winner < 0) return s;
    for (int i = 0; i < f->n; i++) {
        list[i] = f->list[r->before[i]];
        list[i].figures = r->candidate[i];
        if (r->before[i] == r->entry[r->winner].number - 1) f->chosen = i;
    }
    f->list = list;
    return s;
}

static hp_status print_json(const simulate_setup *s, const simulate_found *f, const simulate_sizes *sizes,
                            const simulate_largest *l, const race *r, hp_error *err) {
    json_t *all = simulate_json(s, f);
    simulate_json_device(s, f, all);
    if (sizes->n) json_object_set_new(all, "images", simulate_sizes_json(sizes));
    if (l->option) json_object_set_new(all, "largest", simulate_largest_json(l));
    if (r->winner >= 0) json_object_set_new(all, "race", race_json(r));
    return cli_print_json(all, err);
}

static hp_status simulate(hp_arena *arena, simulate_options *o, hp_error *err) {
    simulate_setup s;
    simulate_found f = {0};
    simulate_sizes sizes = {0};
    simulate_largest largest = {0};
    race_options ro;
    race r = {.winner = -1};
    hp_status ran = HP_OK;
    const char *path = o->out ? o->out : "plan.db";
    o->sweeps = true;
    HP_TRY(simulate_find_largest(arena, o, &largest, err));
    HP_TRY(simulate_earlier_sizes(arena, o, &sizes, err));
    HP_TRY(simulate_prepare(arena, o, &s, err));
    HP_TRY(parse_race(o, &s, path, &ro, err));
    simulate_tell(&s);
    HP_TRY(check_float_layers(o, &s, err));
    HP_TRY(simulate_find(arena, &s, &f, err));
    if (sizes.n) simulate_add_size(&s, &f, &sizes);
    f.facts.replaced = access(path, F_OK) == 0;
    if (f.n) HP_TRY(write_plan(arena, &s, &f, path, err));
    if (!f.tally.stopped) simulate_gains(arena, &s, &f);
    simulate_find_facts(arena, &s, &f);
    if (!o->show.json && sizes.n) simulate_print_sizes(&sizes);
    if (!o->show.json && largest.option) simulate_print_largest(&largest);
    if (!o->show.json) simulate_print(&s, &f);
    if (!o->show.json) HP_TRY(cli_finish_stdout(err));
    if (o->race.measure && f.n && !f.tally.stopped) ran = measure(arena, &ro, &f, &r, err);
    if (o->show.json) HP_TRY(print_json(&s, &f, &sizes, &largest, &r, ran == HP_OK ? err : NULL));
    if (!o->show.json && r.winner >= 0) race_print(&r);
    if (!f.n) {
        HP_TRY(cli_finish_stdout(err));
        return f.tally.stopped ? stopped(&f, err) : no_plan(&f, err);
    }
    if (!o->show.json) simulate_next(&s, &f, path);
    HP_TRY(cli_finish_stdout(err));
    return f.tally.stopped ? stopped(&f, err) : ran;
}

int cmd_simulate(int argc, char **argv) {
    simulate_options o = {0};
    cli_parse(&simulate_argp, 0, argc, argv, &o);
    hp_error err = {0};
    hp_arena *arena = hp_arena_new();
    const hp_status status = simulate(arena, &o, &err);
    hp_arena_free(arena);
    return status == HP_OK ? HP_OK : cli_report(&err);
}
