/* simulate_scaling.c - prints curves: per count of devices the speed-up and efficiency, or the reason for
 * having no plan; the time of an epoch; one row per image size. */
#include "cli/show/simulate_show.h"
#include "networks/graph/samples.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

/* --- table --- */

/* Numbers candidates as `why` and `run --plan` count them. */
static int number_of(const simulate_found *f, const hp_evaluation *e) {
    for (int i = 0; i < f->n; i++) {
        const hp_candidate *c = &f->list[i].figures;
        if (c->gpus == e->figures.gpus && c->batch == e->figures.batch &&
            strcmp(c->strategy, e->figures.strategy) == 0)
            return i + 1;
    }
    return 0;
}

static int strategy_width(const simulate_found *f) {
    int width = 8;
    for (int i = 0; i < f->n_point; i++) {
        const int n = f->point[i].plan ? (int)strlen(f->point[i].plan->figures.strategy) : 0;
        width = n > width ? n : width;
    }
    return width < 40 ? width : 40;
}

static void print_percent(double share, int width) {
    isfinite(share) ? printf("%*.0f%%", width - 1, 100 * share) : printf("%*s", width, "-");
}

static void print_plan(const simulate_setup *s, const simulate_found *f, const simulate_point *p, int width) {
    char step[32], images[32], speedup[32], time[32];
    const hp_candidate *c = &p->plan->figures;
    printf("%3d %-*s%6d%8lld%10s%10s%9s", number_of(f, p->plan), width, c->strategy, p->gpus,
           (long long)p->batch, simulate_number(c->step_s * 1e3, step),
           simulate_number(c->images_per_s, images), simulate_number(p->speedup, speedup));
    print_percent(p->efficiency, 7);
    print_percent(p->epoch.flop_utilisation, 7);
    if (s->epoch.samples)
        printf("%10s", isfinite(p->epoch.epoch_s) ? hp_format_seconds(p->epoch.epoch_s, time) : "-");
    printf("\n");
}

static void print_missing(const simulate_point *p, int width) {
    printf("  - %-*s%6d%8lld  ", width,
           *p->curve ? p->curve
           : p->why  ? p->why->example
                     : "",
           p->gpus, (long long)p->batch);
    if (!p->why) {
        printf("no strategy was searched\n");
        return;
    }
    printf("%s: %s; fix: %s\n", hp_reject_text(p->why->code), p->why->limit, p->why->fix);
}

/* Speed-ups are against the smallest count with a plan. */
static void print_base(const simulate_found *f) {
    const simulate_point *base = NULL;
    for (int i = 0; i < f->n_point; i++)
        if (f->point[i].plan && (!base || f->point[i].gpus < base->gpus)) base = &f->point[i];
    if (base)
        printf("  speed-up and efficiency of the rate, against %s's smallest count with a plan; flops: the "
               "model's, of "
               "the devices' peak\n",
               *base->curve ? "each strategy" : "the best strategy");
}

void simulate_print_scaling(const simulate_setup *s, const simulate_found *f) {
    const int width = strategy_width(f);
    printf("\n  # %-*s%6s%8s%10s%10s%9s%7s%7s%s\n", width, "strategy", "gpus", "batch", "ms/step",
           hp_samples_rate(s->network.trained), "speedup", "eff.", "flops",
           s->epoch.samples ? "     epoch" : "");
    for (int i = 0; i < f->n_point; i++) {
        const simulate_point *p = &f->point[i];
        if (i && strcmp(p->curve, p[-1].curve) != 0) printf("\n");
        p->plan ? print_plan(s, f, p, width) : print_missing(p, width);
    }
    print_base(f);
}

static const simulate_point *chosen(const simulate_found *f) {
    const hp_candidate *best = &f->list[f->chosen].figures;
    for (int i = 0; i < f->n_point; i++) {
        const simulate_point *p = &f->point[i];
        if (p->plan && p->gpus == best->gpus && strcmp(p->plan->figures.strategy, best->strategy) == 0)
            return p;
    }
    return NULL;
}

void simulate_print_epoch(const simulate_setup *s, const simulate_found *f) {
    const simulate_point *p = f->n ? chosen(f) : NULL;
    char time[32], hours[32], energy[32], cost[32];
    if (!p || !s->epoch.samples) return;
    const hp_epoch *e = &p->epoch;
    if (!isfinite(e->epoch_s)) {
        printf("number %d: %lld samples are not one batch of %lld\n", f->chosen + 1,
               (long long)s->epoch.samples, (long long)p->batch);
        return;
    }
    printf("number %d: an epoch of %lld samples: %s, %s GPU-hours", f->chosen + 1,
           (long long)s->epoch.samples, hp_format_seconds(e->epoch_s, time),
           simulate_number(e->gpu_hours, hours));
    if (isfinite(e->energy_kwh))
        printf(", at most %s kWh (%g W each, without hosts)", simulate_number(e->energy_kwh, energy),
               hp_device_class_tdp(&s->machine.device));
    if (isfinite(e->cost)) printf(", cost %s", simulate_number(e->cost, cost));
    if (isfinite(e->flop_utilisation)) printf("; %.1f%% of peak FLOP/s", 100 * e->flop_utilisation);
    printf("\n");
}

/* --- JSON --- */

static json_t *reason_json(const simulate_point *p) {
    if (p->plan) return json_null();
    if (!p->why)
        return json_pack("{s:n, s:s, s:s, s:s}", "code", "example", "", "limit", "no strategy was searched",
                         "fix", "");
    return json_pack("{s:s, s:s, s:s, s:s}", "code", hp_reject_text(p->why->code), "example", p->why->example,
                     "limit", p->why->limit, "fix", p->why->fix);
}

static json_t *point_json(const simulate_found *f, const simulate_point *p) {
    const bool is = p->plan != NULL;
    const hp_epoch e = is ? p->epoch : (hp_epoch){NAN, NAN, NAN, NAN, NAN};
    const hp_candidate *c = is ? &p->plan->figures : NULL;
    return json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "curve",
                     p->curve, "gpus", p->gpus, "batch", (json_int_t)p->batch, "number",
                     is ? json_integer(number_of(f, p->plan)) : json_null(), "strategy",
                     is ? json_string(c->strategy) : json_null(), "step_s",
                     cli_json_number(is ? c->step_s : NAN), "images_per_s",
                     cli_json_number(is ? c->images_per_s : NAN), "speedup", cli_json_number(p->speedup),
                     "efficiency", cli_json_number(p->efficiency), "epoch_s", cli_json_number(e.epoch_s),
                     "gpu_hours", cli_json_number(e.gpu_hours), "energy_kwh", cli_json_number(e.energy_kwh),
                     "cost", cli_json_number(e.cost), "flop_utilisation", cli_json_number(e.flop_utilisation),
                     "reason", reason_json(p));
}

json_t *simulate_scaling_json(const simulate_found *f) {
    json_t *rows = json_array();
    for (int i = 0; i < f->n_point; i++) json_array_append_new(rows, point_json(f, &f->point[i]));
    return rows;
}

const char *simulate_curves_text(hp_arena *arena, const simulate_found *f) {
    json_t *all = json_object();
    for (int i = 0; i < f->n_point; i++) {
        const simulate_point *p = &f->point[i];
        if (!p->plan || !*p->curve) continue;
        if (!json_object_get(all, p->curve)) json_object_set_new(all, p->curve, json_array());
        json_array_append_new(json_object_get(all, p->curve), json_string(p->plan->figures.strategy));
    }
    char *text = json_object_size(all) ? json_dumps(all, JSON_COMPACT) : NULL;
    const char *kept = hp_arena_strdup(arena, text ? text : "");
    free(text);
    json_decref(all);
    return kept;
}

/* --- several image sizes: one row each, or the reason why there is no plan --- */

static void print_reason(const hp_rejected *why) {
    if (!why)
        printf("  no strategy was searched\n");
    else
        printf("  %s: %s, as %s; fix: %s\n", hp_reject_text(why->code), why->limit, why->example, why->fix);
}

void simulate_print_sizes(const simulate_sizes *sizes) {
    printf("      image   gpus   batch   ms/step     img/s  mem/rank  strategy\n");
    for (int i = 0; i < sizes->n; i++) {
        const simulate_size *z = &sizes->size[i];
        char step[32], images[32], memory[32];
        printf("%11s%7d%8lld", z->image, z->gpus, (long long)z->batch);
        if (z->plan)
            printf("%10s%10s%10s  %s\n", simulate_number(z->plan->figures.step_s * 1e3, step),
                   simulate_number(z->plan->figures.images_per_s, images),
                   hp_format_bytes((double)z->plan->figures.memory_bytes, memory), z->plan->figures.strategy);
        else
            print_reason(z->why);
    }
    printf("\n");
}

static json_t *size_json(const simulate_size *z) {
    const hp_candidate *c = z->plan ? &z->plan->figures : NULL;
    json_t *why = z->why ? json_pack("{s:s, s:s, s:s, s:s}", "code", hp_reject_text(z->why->code), "example",
                                     z->why->example, "limit", z->why->limit, "fix", z->why->fix)
                         : json_null();
    return json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "image", z->image, "gpus", z->gpus, "batch",
                     (json_int_t)z->batch, "strategy", c ? json_string(c->strategy) : json_null(), "step_s",
                     c ? json_real(c->step_s) : json_null(), "images_per_s",
                     c ? json_real(c->images_per_s) : json_null(), "memory_bytes",
                     c ? json_integer(c->memory_bytes) : json_null(), "reason", why);
}

json_t *simulate_sizes_json(const simulate_sizes *sizes) {
    json_t *rows = json_array();
    for (int i = 0; i < sizes->n; i++) json_array_append_new(rows, size_json(&sizes->size[i]));
    return rows;
}
