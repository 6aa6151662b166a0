/* simulate_curve.c - evaluates given strategies at every count of devices that they can occupy. A refusal is
 * an answer, too. */
#include "cli/commands/simulate_search.h"

#include "plan/strategy/template.h"

#include <math.h>
#include <string.h>

/* --- reasons and points --- */

/* A reason with a fix says more, then a lack of memory of a legal strategy, then the more frequent one. */
static bool says_more(const hp_rejected *a, const hp_rejected *b) {
    const bool a_memory = a->code == HP_REJECT_MEM, b_memory = b->code == HP_REJECT_MEM;
    const bool a_fixed = hp_fix_found(a->fix), b_fixed = hp_fix_found(b->fix);
    if (a_fixed != b_fixed) return a_fixed;
    return a_memory != b_memory ? a_memory : a->count > b->count;
}

const hp_rejected *simulate_nearest(const hp_rejected *best, const hp_rejected *r, int n) {
    for (int i = 0; i < n; i++)
        if (!best || says_more(&r[i], best)) best = &r[i];
    return best;
}

simulate_point *simulate_add_point(hp_arena *arena, simulate_found *f, const char *curve, int gpus,
                                   int64_t batch) {
    if (!f->point) f->point = HP_NEW(arena, simulate_point, SIM_MAX_STRATEGIES * (SIM_MAX_COUNTS + 1));
    simulate_point *p = &f->point[f->n_point++];
    *p = (simulate_point){.curve = curve, .gpus = gpus, .batch = batch, .speedup = NAN, .efficiency = NAN};
    return p;
}

static const simulate_point *base_of(const simulate_found *f, const char *curve) {
    const simulate_point *base = NULL;
    for (int i = 0; i < f->n_point; i++) {
        const simulate_point *p = &f->point[i];
        if (p->plan && strcmp(p->curve, curve) == 0 && (!base || p->gpus < base->gpus)) base = p;
    }
    return base;
}

void simulate_rate_points(const simulate_setup *s, simulate_found *f) {
    const double flops = hp_model_flops(s->network.trained, s->step.mode == HP_MODE_TRAIN);
    for (int i = 0; i < f->n_point; i++) {
        simulate_point *p = &f->point[i];
        if (!p->plan) continue;
        const simulate_point *base = base_of(f, p->curve);
        const hp_device_class *d = &s->machine.device;
        p->speedup = hp_speedup(p->plan->figures.images_per_s, base->plan->figures.images_per_s);
        p->efficiency = hp_efficiency(p->speedup, p->gpus, base->gpus);
        p->epoch = hp_epoch_of(&(hp_epoch_question){
            .samples = s->epoch.samples,
            .batch = p->batch,
            .whole = s->step.mode == HP_MODE_TRAIN,
            .step_s = p->plan->figures.step_s,
            .gpus = p->gpus,
            .tdp_w = hp_device_class_tdp(d),
            .price = s->epoch.price,
            .sample_flops = flops,
            .device_flops_per_s = hp_device_class_peak(d, (hp_prec)p->plan->strategy.prec)});
    }
}

/* --- one strategy at one count --- */

/* Evaluates in the precision that the strategy names, or else in that of --prec. */
static hp_status prepare(hp_arena *arena, simulate_setup *s, hp_strategy *asked, int64_t batch, hp_eval **e,
                         hp_error *err) {
    if (asked->prec == HP_PREC_FP32) asked->prec = s->network.prec[0];
    HP_TRY(simulate_precision(arena, s, asked->prec, err));
    *e = simulate_eval(arena, s, batch);
    return HP_OK;
}

static int64_t batch_of(const simulate_setup *s, const hp_strategy *asked) {
    const int gpus = hp_strategy_devices(asked);
    const int64_t batch = simulate_batch(s, gpus);
    return batch ? batch : hp_strategy_batch(asked, gpus);
}

static const hp_rejected *reason(hp_arena *arena, const char *example, const hp_reject *why) {
    hp_rejected *r = HP_NEW(arena, hp_rejected, 1);
    *r = (hp_rejected){.code = why->code, .count = 1};
    snprintf(r->example, sizeof r->example, "%s", example);
    memcpy(r->limit, why->limit, sizeof why->limit);
    memcpy(r->fix, why->fix, sizeof why->fix);
    return r;
}

/* most_tasks: that looking for a fix may take. */
static hp_status evaluate(hp_arena *arena, simulate_setup *s, hp_strategy asked, int most_gpus,
                          int64_t most_tasks, simulate_point *p, hp_error *err) {
    hp_eval *e;
    p->batch = batch_of(s, &asked);
    HP_TRY(prepare(arena, s, &asked, p->batch, &e, err));
    hp_question q = hp_eval_question(e, &asked, most_gpus);
    q.batch = simulate_batch(s, hp_strategy_devices(&asked));
    hp_evaluation *v = HP_NEW(arena, hp_evaluation, 1);
    HP_TRY(hp_question_evaluate(e, &q, HP_EVAL_PLACED, arena, v, err));
    if (!v->reject.code) {
        p->plan = v;
        return HP_OK;
    }
    if (most_tasks) HP_TRY(hp_search_fix(e, &q, most_tasks, &v->reject, err));
    p->why = reason(arena, v->figures.strategy, &v->reject);
    return HP_OK;
}

/* Suggests another count that fills the template and has a plan, as written or, with most_tasks, after
 * further changes. */
static hp_status suggest(hp_arena *arena, simulate_setup *s, const hp_strategy *filled, int64_t most_tasks,
                         hp_reject *why, hp_error *err) {
    simulate_point p = {.plan = NULL};
    const int gpus = hp_strategy_devices(filled);
    if (hp_fix_found(why->fix) || gpus > hp_machine_devices(&s->machine)) return HP_OK;
    HP_TRY(evaluate(arena, s, *filled, gpus, most_tasks, &p, err));
    if (p.plan)
        snprintf(why->fix, sizeof why->fix, "--gpus %d", gpus);
    else if (most_tasks && hp_fix_found(p.why->fix) && !strstr(p.why->fix, "--gpus"))
        snprintf(why->fix, sizeof why->fix, "--gpus %d, %.280s", gpus, p.why->fix);
    return HP_OK;
}

/* No number in the star's place occupies all devices: which ones come nearest. */
static hp_status explain_gap(hp_arena *arena, simulate_setup *s, const hp_filled *f, simulate_point *p,
                             hp_error *err) {
    char below[HP_STRATEGY_TEXT] = "", above[HP_STRATEGY_TEXT] = "";
    hp_reject why = {.code = HP_REJECT_GPUS, .fix = HP_FIX_NONE};
    if (f->star) hp_strategy_text(&f->s, below);
    if (f->has_above) hp_strategy_text(&f->above, above);
    snprintf(why.limit, sizeof why.limit, "%d device%s: ", p->gpus, p->gpus == 1 ? "" : "s");
    char *end = why.limit + strlen(why.limit);
    const size_t room = sizeof why.limit - strlen(why.limit);
    if (f->star && f->has_above)
        snprintf(end, room, "%.50s occupies %d, %.50s %d", below, hp_strategy_devices(&f->s), above,
                 hp_strategy_devices(&f->above));
    else if (f->star)
        snprintf(end, room, "%.50s occupies %d, and no strategy more", below, hp_strategy_devices(&f->s));
    else
        snprintf(end, room, "%.50s occupies %d", above, hp_strategy_devices(&f->above));
    for (int k = 0; k < 2; k++) {
        const int64_t most_tasks = k ? HP_FIX_QUICK : 0;
        if (f->star) HP_TRY(suggest(arena, s, &f->s, most_tasks, &why, err));
        if (f->has_above) HP_TRY(suggest(arena, s, &f->above, most_tasks, &why, err));
    }
    p->batch = simulate_batch(s, p->gpus);
    p->why = reason(arena, p->curve, &why);
    return HP_OK;
}

/* --- all of them --- */

static int largest(const simulate_setup *s) {
    int most = 0;
    for (int i = 0; i < s->curves.n_count; i++) most = s->curves.count[i] > most ? s->curves.count[i] : most;
    return most;
}

/* Of a look for a fix. */
static int64_t most_tasks(const simulate_setup *s) {
    if (s->any) return 0;
    return s->curves.sweep ? HP_FIX_QUICK : HP_FIX_THOROUGH;
}

static hp_status add_filled(hp_arena *arena, simulate_setup *s, const char *template, int gpus,
                            simulate_found *f, hp_error *err) {
    hp_filled filled;
    simulate_point *p = simulate_add_point(arena, f, template, gpus, 0);
    HP_TRY(hp_template_fill(template, gpus, &filled, err));
    if (!filled.exact) return explain_gap(arena, s, &filled, p, err);
    return evaluate(arena, s, filled.s, gpus, most_tasks(s), p, err);
}

/* A strategy without a star has one number of devices, which --gpus caps. */
static hp_status add_curve(hp_arena *arena, simulate_setup *s, const char *template, simulate_found *f,
                           hp_error *err) {
    hp_strategy only;
    HP_TRY(hp_template_smallest(template, &only, err));
    if (!hp_template_has_star(template)) {
        const int gpus = hp_strategy_devices(&only);
        simulate_point *p = simulate_add_point(arena, f, template, gpus, 0);
        return evaluate(arena, s, only, largest(s), s->curves.sweep ? HP_FIX_QUICK : HP_FIX_THOROUGH, p, err);
    }
    for (int i = 0; i < s->curves.n_count; i++)
        HP_TRY(add_filled(arena, s, template, s->curves.count[i], f, err));
    return HP_OK;
}

/* Sorts candidates by number of devices, then by rank, as a search does: the best of the largest count is the
 * plan. */
static void list_plans(hp_arena *arena, const simulate_setup *s, simulate_found *f) {
    f->list = HP_NEW(arena, hp_evaluation, f->n_point + 1);
    for (int gpus = 0;;) {
        int next = 0;
        const int first = f->n;
        for (int i = 0; i < f->n_point; i++) {
            const simulate_point *p = &f->point[i];
            if (p->plan && p->gpus > gpus && (!next || p->gpus < next)) next = p->gpus;
        }
        if (!next) return;
        for (int i = 0; i < f->n_point; i++)
            if (f->point[i].plan && f->point[i].gpus == next) f->list[f->n++] = *f->point[i].plan;
        hp_search_rank(f->list + first, f->n - first, s->search.sort);
        f->chosen = first;
        f->gpus = gpus = next;
        f->batch = f->list[first].figures.batch;
    }
}

hp_status simulate_curves(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err) {
    for (int i = 0; i < s->curves.n_template; i++) HP_TRY(add_curve(arena, s, s->curves.template[i], f, err));
    for (int i = 0; i < f->n_point; i++)
        if (f->point[i].why) simulate_add_rejects(arena, f, f->point[i].why, 1);
    list_plans(arena, s, f);
    f->tally.searched = f->n_point;
    f->tally.valid = f->tally.simulated = f->n;
    if (!f->n) {
        f->gpus = f->point[f->n_point - 1].gpus;
        f->batch = f->point[f->n_point - 1].batch;
    }
    return simulate_precision(arena, s, f->n ? f->list[f->chosen].strategy.prec : s->network.prec[0], err);
}
