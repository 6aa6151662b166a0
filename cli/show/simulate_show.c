/* simulate_show.c - what `simulate` prints around its table. */
#include "cli/show/simulate_show.h"
#include "cli/show/show_costs.h"
#include "networks/graph/samples.h"
#include "networks/graph/optimizer.h"

#include "base/units.h"

/* Prints candidates that deserve another look, judged by estimates alone. */
static void print_promising(const simulate_found *f) {
    char text[HP_STRATEGY_TEXT], about[32], least[32], bytes[32];
    if (f->unseen.n_promising)
        printf(
            "the most promising of them, by estimates (--strategy simulates one, in about 2 GB per million "
            "tasks):\n");
    for (int i = 0; i < f->unseen.n_promising; i++) {
        const hp_open_strategy *o = &f->unseen.promising[i];
        printf("  %s: about %s, at least %s, %s, %.2g million tasks\n", hp_strategy_text(&o->strategy, text),
               hp_format_seconds(o->estimate_s, about), hp_format_seconds(o->bound, least),
               hp_format_bytes(o->memory_bytes, bytes), (double)o->tasks * 1e-6);
    }
}

/* How far from the best number 1 may be, and what was not looked at. */
static void print_gap(const simulate_setup *s, const simulate_found *f) {
    const char *better = s->search.sort == HP_SORT_MEMORY ? "smaller" : "faster";
    if (s->curves.has_strategy) return;
    if (f->tally.stopped) printf("stopped: the best so far; what was not looked at may be better\n");
    if (s->eval.jitter_cv > 0)
        printf("with jitter the bounds that ruled strategies out are estimates\n");
    else if (f->tally.open)
        printf("%lld not simulated: at most %.1f%% %s than number %d\n", (long long)f->tally.open,
               100 * f->unseen.gap, better, f->chosen + 1);
    else if (!f->tally.stopped)
        printf("none of those ruled out is %s than number %d, by the same costs\n", better, f->chosen + 1);
    if (s->search.sort != HP_SORT_MEMORY && s->eval.jitter_cv <= 0) print_promising(f);
    printf("not in the space: tile grids other than strips and near squares, cuts by hand, more than 4 "
           "passes of "
           "GEMS (--strategy evaluates any)\n");
}

static bool has_batch_norm(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_BN) return true;
    return false;
}

/* Micro-batches change what a network with batch norm learns: plain data parallelism has a single one. */
static void print_groups(const simulate_setup *s, const simulate_found *f) {
    const hp_strategy *best = &f->list[f->chosen].strategy;
    const hp_proportions *by = &best->by[HP_AXIS_N];
    const int64_t replicas = by->n ? best->dp : hp_strategy_replicas(best), share = f->batch / replicas,
                  groups = best->gems * best->micro;
    if (s->step.mode != HP_MODE_TRAIN || groups == 1 || !has_batch_norm(s->network.graph)) return;
    printf("note: batch norm averages over groups of %lld sample%s%s (%lld without micro-batches)\n",
           (long long)(share / groups), share == groups ? "" : "s", by->n ? " in the mean, by share" : "",
           (long long)share);
}

/* One value has no variance: what such a layer puts out says nothing of what it read. */
static void print_single_values(const simulate_setup *s, const simulate_found *f) {
    const hp_strategy *best = &f->list[f->chosen].strategy;
    const int64_t replicas = hp_strategy_replicas(best), apart = best->bn == HP_BN_ALL ? 1 : replicas,
                  samples = f->batch / (apart * best->gems * best->micro);
    for (int l = 0; s->step.mode == HP_MODE_TRAIN && samples == 1 && l < s->network.graph->n_layer; l++) {
        const hp_layer *layer = &s->network.graph->layer[l];
        const hp_tensor *x = &s->network.graph->tensor[layer->out];
        if (layer->op != HP_BN || (int64_t)x->h * x->w > 1) continue;
        printf("note: batch norm %s averages over a single value per channel, which teaches it nothing: a "
               "larger "
               "--batch or --image\n",
               layer->name);
        return;
    }
}

/* Prints what the table may have no room for. */
static void print_certainty(const simulate_found *f) {
    const hp_candidate *best = &f->list[f->chosen].figures;
    char between[64], quiet[32];
    if (simulate_interval(best, " and ", between))
        printf("number %d: 90%% of runs between %s ms, %.0f%% of it measured", f->chosen + 1, between,
               100 * best->measured_share);
    else
        printf("number %d: how far off it may be is not known, %.0f%% of it measured", f->chosen + 1,
               100 * best->measured_share);
    if (best->step_quiet_s > 0)
        printf("; %s ms on the quiet machine", simulate_number(best->step_quiet_s * 1e3, quiet));
    printf("\n");
}

bool simulate_unmeasured(const hp_candidate *c) {
    return c->measured_share < 0.8;
}

static void print_notes(const simulate_setup *s, const simulate_found *f) {
    char zero[200];
    const hp_candidate *best = &f->list[f->chosen].figures;
    char head[32];
    print_certainty(f);
    snprintf(head, sizeof head, "number %d: ", f->chosen + 1);
    costs_print_unmeasured(head, &f->list[f->chosen].exposure);
    printf("number %d: %s\n", f->chosen + 1, best->note);
    if (hp_machine_mixed(&s->machine)) {
        char mix[400];
        hp_mix_cost_text(&f->facts.mix, &s->machine, best->step_s, mix, sizeof mix);
        printf("number %d: %s\n", f->chosen + 1, mix);
    }
    print_groups(s, f);
    print_single_values(s, f);
    if (simulate_zero_note(f, zero)) printf("note: %s\n", zero);
    if (simulate_unmeasured(best))
        printf("note: %.0f%% of its time rests on measurements of such sizes, the rest on data sheets and "
               "guesses\n",
               100 * best->measured_share);
}

static void print_rejects(const simulate_found *f) {
    if (f->without.n_rejected) printf("nearest rejects:\n");
    for (int i = 0; i < f->without.n_rejected; i++) {
        const hp_rejected *r = &f->without.rejected[i];
        printf("  %-9s %4lld x, as %s\n", hp_reject_text(r->code), (long long)r->count, r->example);
        printf("            %s\n            fix: %s\n", r->limit, r->fix);
    }
}

/* "train by adamw, clipped" */
static const char *mode_text(const simulate_setup *s, char out[64]) {
    if (s->step.mode == HP_MODE_INFER) return "infer";
    snprintf(out, 64, "train%s%s%s", s->step.optimizer ? " by " : "",
             s->step.optimizer ? hp_optimizer_infos[s->step.optimizer].name : "",
             s->step.clips ? ", clipped" : "");
    return out;
}

/* "cnn 28x28, 10 classes"; "gpt2, 1024 tokens of 50257 ids" */
static void print_sample(const simulate_network *n) {
    char size[HP_SAMPLES_TEXT];
    if (hp_graph_reads_ids(n->trained))
        printf("%s, %s", n->net, hp_samples_size(n->trained, size));
    else
        printf("%s %dx%d, %d classes", n->net, n->image_h, n->image_w, n->classes);
}

static void print_header(const simulate_setup *s, const simulate_found *f) {
    char elapsed[32], mode[64];
    simulate_print_device(s, f);
    print_sample(&s->network);
    printf(", %.3g M parameters, %s, batch %lld on %d device%s\n",
           (double)hp_graph_param_count(s->network.graph) * 1e-6, mode_text(s, mode), (long long)f->batch,
           f->gpus, f->gpus == 1 ? "" : "s");
    printf("searched %lld strateg%s in %s: %lld valid, %lld rejected", (long long)f->tally.searched,
           f->tally.searched == 1 ? "y" : "ies", hp_format_seconds(f->tally.elapsed_s, elapsed),
           (long long)f->tally.valid, (long long)(f->tally.searched - f->tally.valid));
    if (f->tally.cut_off)
        printf("; %lld simulated, %lld ruled out by bounds", (long long)f->tally.simulated,
               (long long)f->tally.cut_off);
    printf("\n");
}

void simulate_print(const simulate_setup *s, const simulate_found *f) {
    print_header(s, f);
    if (f->n) {
        if (s->curves.sweep) simulate_print_scaling(s, f);
        if (!s->curves.sweep || s->top_given) simulate_print_table(s, f);
        print_notes(s, f);
        simulate_print_epoch(s, f);
        print_gap(s, f);
    }
    if (s->curves.sweep && !f->n) simulate_print_scaling(s, f);
    if (!s->curves.sweep || !f->n) print_rejects(f);
}
