/* cmd_why.c - why a strategy lost or was rejected: held against the plan's own, under the conditions and with
 * the costs that the plan was predicted with. A stored candidate keeps the figures that its table showed. */
#include "cli/show/show_costs.h"
#include "cli/show/frame.h"
#include "cli/show/simulate_show.h"
#include "base/units.h"
#include "sim/search/conditions.h"
#include "sim/search/mix_cost.h"

#include <math.h>
#include <string.h>

typedef struct options {
    const char *cost;
    bool json;
} options;

/* Why computing itself takes longer. */
static const char *longer(const hp_strategy *asked, const hp_strategy *best) {
    if (asked->prec != best->prec) return "it computes longer in its precision";
    if (asked->strips.n > best->strips.n) return "it computes longer in strips";
    return "it computes longer (recomputation, smaller micro-batches, or an uneven cut)";
}

/* A loss has one main reason: the part of the step, in seconds, that grew most. */
static const char *main_reason(const hp_evaluation *a, const hp_evaluation *b, double *seconds) {
    const hp_candidate *asked = &a->figures, *best = &b->figures;
    const double bubble = asked->bubble * asked->step_s - best->bubble * best->step_s;
    const double comm = asked->exposed_comm * asked->step_s - best->exposed_comm * best->step_s;
    const double compute = asked->step_s - best->step_s - bubble - comm;
    *seconds = fmax(bubble, fmax(comm, compute));
    if (bubble >= comm && bubble >= compute)
        return a->strategy.stages > 1 ? "it waits longer in the pipeline (bubble)"
                                      : "its ranks wait longer for the slowest";
    if (comm >= compute) return "it waits longer for communication";
    return longer(&a->strategy, &b->strategy);
}

/* Is `a` no slower than `b` in the step per image, by which strategies are ranked? */
static bool is_ahead(const hp_candidate *a, const hp_candidate *b) {
    return a->step_s / (double)a->batch <= b->step_s / (double)b->batch;
}

static void loss(const hp_evaluation *asked, const hp_evaluation *best, char *out, size_t n) {
    const hp_candidate *a = &asked->figures, *b = &best->figures;
    char time[32];
    double seconds;
    const char *saves = a->memory_bytes < b->memory_bytes ? "; it would save memory" : "";
    if (a->batch != b->batch) {
        snprintf(out, n, "it lost: %.3g images/s on %d devices against %.3g on %d%s", a->images_per_s,
                 a->gpus, b->images_per_s, b->gpus, saves);
    } else {
        const char *reason = main_reason(asked, best, &seconds);
        const bool tie = hp_search_tie(asked, best);
        snprintf(out, n, "%s: %s, by %s%s",
                 tie ? "a tie: the difference is within what their errors explain" : "it lost", reason,
                 hp_format_seconds(seconds, time), saves);
    }
}

static void verdict(const hp_evaluation *asked, const hp_evaluation *best, bool selected, char *out,
                    size_t n) {
    const hp_candidate *a = &asked->figures, *b = &best->figures;
    if (asked->reject.code) {
        snprintf(out, n, "rejected: %s: %s; fix: %s", hp_reject_text(asked->reject.code), asked->reject.limit,
                 asked->reject.fix);
    } else if (selected) {
        snprintf(out, n, "it is the selected one");
    } else if (is_ahead(a, b)) {
        snprintf(out, n, "it did not lose: it is predicted to be as fast or faster%s",
                 a->gpus == b->gpus ? ", and the plan was chosen by another order or by hand"
                                    : " on another number of devices");
    } else {
        loss(asked, best, out, n);
    }
}

static void print_row(const char *what, const char *asked, const char *best) {
    printf("  %-16s %22s %22s\n", what, asked, best);
}

/* The interval of a candidate, written as in simulate's table. */
static const char *interval_text(const hp_candidate *c, char out[64]) {
    char between[64];
    const bool known = simulate_interval(c, "-", between);
    snprintf(out, 64, "%.56s%s", between, known ? " ms" : "");
    return out;
}

static void print_comparison(const hp_evaluation *asked, const hp_evaluation *best) {
    const hp_candidate *a = &asked->figures, *b = &best->figures;
    char x[64], y[64];
    print_row("", "asked", "selected");
    print_row("step", hp_format_seconds(a->step_s, x), hp_format_seconds(b->step_s, y));
    print_row("interval", interval_text(a, x), interval_text(b, y));
    snprintf(x, sizeof x, "%.1f%%", 100 * a->bubble);
    snprintf(y, sizeof y, "%.1f%%", 100 * b->bubble);
    print_row("bubble", x, y);
    snprintf(x, sizeof x, "%.1f%%", 100 * a->exposed_comm);
    snprintf(y, sizeof y, "%.1f%%", 100 * b->exposed_comm);
    print_row("exposed comm", x, y);
    print_row("sent in total", hp_format_bytes((double)a->comm_bytes, x),
              hp_format_bytes((double)b->comm_bytes, y));
    print_row("memory per rank", hp_format_bytes((double)a->memory_bytes, x),
              hp_format_bytes((double)b->memory_bytes, y));
    snprintf(x, sizeof x, "%d", a->gpus);
    snprintf(y, sizeof y, "%d", b->gpus);
    print_row("devices", x, y);
    snprintf(x, sizeof x, "%lld", (long long)a->batch);
    snprintf(y, sizeof y, "%lld", (long long)b->batch);
    if (a->batch != b->batch) print_row("batch", x, y);
    print_row("precision", hp_prec_names[asked->strategy.prec], hp_prec_names[best->strategy.prec]);
    printf("  asked:    %s\n  selected: %s\n", a->note, b->note);
}

static json_t *figures_json(const hp_evaluation *e) {
    const hp_candidate *c = &e->figures;
    return json_pack("{s:s, s:s, s:i, s:I, s:f, s:o, s:o, s:f, s:I, s:f, s:f, s:I}", "strategy", c->strategy,
                     "prec", hp_prec_names[e->strategy.prec], "gpus", c->gpus, "batch", (json_int_t)c->batch,
                     "step_s", c->step_s, "step_low_s", cli_json_known(c->step_low_s), "step_high_s",
                     cli_json_known(c->step_high_s), "images_per_s", c->images_per_s, "memory_bytes",
                     (json_int_t)c->memory_bytes, "bubble", c->bubble, "exposed_comm", c->exposed_comm,
                     "comm_bytes", (json_int_t)c->comm_bytes);
}

static json_t *why_json(const hp_plan *plan, const hp_evaluation *asked, const hp_evaluation *best,
                        const char *costs, const char *text) {
    json_t *reject = asked->reject.code
                         ? json_pack("{s:s, s:s, s:s}", "code", hp_reject_text(asked->reject.code), "limit",
                                     asked->reject.limit, "fix", asked->reject.fix)
                         : json_null();
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "schema", 1, "why", text, "machine",
                     plan->machine.name, "device", plan->device->name, "costs", costs, "asked",
                     figures_json(asked), "selected", figures_json(best), "rejected", reject);
}

/* The question: a strategy, or the number of a stored candidate, with the batch at which it was ranked. */
typedef struct question {
    hp_strategy strategy;
    int64_t batch;
    hp_candidate *candidate; /* all that are stored */
    int n;
} question;

static hp_status read_question(frame *f, const hp_plan *plan, question *q, hp_error *err) {
    const char *word = f->word[1];
    hp_rejected *rejected;
    int n_rejected;
    int64_t number;
    HP_TRY(hp_candidates_read(f->arena, &f->db, &q->candidate, &q->n, &rejected, &n_rejected, err));
    q->batch = plan->batch;
    if (strspn(word, "0123456789") != strlen(word))
        return hp_conditions_strategy(word, plan, &q->strategy, err);
    if (q->n == 0) return hp_fail(err, HP_EUSAGE, "%s holds no candidates: ask for a strategy", f->db.path);
    HP_TRY(hp_parse_int(word, "the candidate", 1, q->n, &number, err));
    q->batch = q->candidate[number - 1].batch;
    return hp_strategy_parse(q->candidate[number - 1].strategy, &q->strategy, err);
}

/* A strategy in another precision than the plan's runs another graph. */
static hp_status eval_in(frame *f, const hp_plan *plan, const hp_strategy *s, hp_eval_setup *setup,
                         hp_eval **e, hp_error *err) {
    hp_plan other = *plan;
    hp_graph *graph = plan->graph;
    other.strategy = *s;
    if (s->prec != plan->strategy.prec) HP_TRY(hp_plan_graph(f->arena, &other, &graph, err));
    setup->graph = graph;
    *e = hp_eval_new(f->arena, setup);
    return HP_OK;
}

/* The figures that the table of candidates showed. */
static void use_stored(const question *q, hp_evaluation *asked) {
    for (int i = 0; i < q->n; i++) {
        const hp_candidate *c = &q->candidate[i];
        if (c->batch == q->batch && strcmp(c->strategy, asked->figures.strategy) == 0) asked->figures = *c;
    }
}

typedef struct answer {
    hp_evaluation asked, best;
    bool selected;   /* they are the same */
    hp_mix_cost mix; /* the asked strategy's, on a machine whose devices differ */
    const hp_cost_table *table;
} answer;

/* The plan's strategy has its cut written out, the search's only where it is not the plain one. */
static hp_status is_selected(hp_eval *e, const hp_plan *plan, int64_t batch, answer *a, hp_error *err) {
    hp_strategy whole = a->asked.strategy;
    const double *unit_cost;
    if (a->asked.reject.code || batch != plan->batch) return HP_OK;
    HP_TRY(hp_eval_unit_cost(e, &whole, &unit_cost, err));
    hp_strategy_fill_cut(hp_eval_get(e)->graph, unit_cost, &whole);
    a->selected = hp_strategy_equal(&whole, &plan->strategy);
    return HP_OK;
}

static hp_status evaluate_both(frame *f, const hp_plan *plan, const question *q, answer *a, hp_error *err) {
    const options *o = f->options;
    hp_cost_table *table;
    hp_eval_setup setup;
    hp_eval *e;
    HP_TRY(hp_conditions_read(f->arena, &f->db, plan, &setup, err));
    if (o->cost) HP_TRY(hp_cost_load(f->arena, o->cost, &plan->machine, &table, err));
    if (o->cost) setup.table = table;
    a->table = setup.table;
    HP_TRY(eval_in(f, plan, &plan->strategy, &setup, &e, err));
    HP_TRY(hp_evaluate(e, f->arena, &plan->strategy, HP_EVAL_PLACED, &a->best, err));
    setup.batch = q->batch;
    HP_TRY(eval_in(f, plan, &q->strategy, &setup, &e, err));
    HP_TRY(hp_evaluate(e, f->arena, &q->strategy, HP_EVAL_PLACED, &a->asked, err));
    if (!o->cost) use_stored(q, &a->asked);
    if (hp_machine_mixed(&plan->machine) && !a->asked.reject.code)
        HP_TRY(hp_mix_cost_of(f->arena, &setup, &a->asked.strategy, &a->mix, err));
    hp_reject *why = &a->asked.reject;
    const int asked = a->asked.figures.gpus, best = a->best.figures.gpus;
    const hp_question rejected = hp_eval_question(e, &q->strategy, asked > best ? asked : best);
    if (why->code) HP_TRY(hp_search_fix(e, &rejected, HP_FIX_THOROUGH, why, err));
    return is_selected(e, plan, q->batch, a, err);
}

static hp_status why(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_plan plan;
    question q;
    answer a = {.selected = false};
    char text[640], costs[COSTS_TEXT], machine[64];
    HP_TRY(hp_plan_read(f->arena, &f->db, &plan, err));
    HP_TRY(read_question(f, &plan, &q, err));
    HP_TRY(evaluate_both(f, &plan, &q, &a, err));
    verdict(&a.asked, &a.best, a.selected, text, sizeof text);
    if (o->json)
        return cli_print_json(why_json(&plan, &a.asked, &a.best, hp_cost_origin(a.table), text), err);
    printf("%s\n%s\n", a.asked.figures.strategy, text);
    if (!a.asked.reject.code) print_comparison(&a.asked, &a.best);
    if (hp_machine_mixed(&plan.machine) && !a.asked.reject.code) {
        hp_mix_cost_text(&a.mix, &plan.machine, a.asked.figures.step_s, text, sizeof text);
        printf("  mix:      %s\n", text);
    }
    printf("  machine:  %s, device %s\n", cli_plain(plan.machine.name, machine, sizeof machine),
           plan.device->name);
    printf("  costs:    %s\n", costs_text(a.table, costs));
    return cli_finish_stdout(err);
}

int cmd_why(int argc, char **argv) {
    static const frame_option list[] = {
        {"cost", 'c', "FILE", offsetof(options, cost), 0, "another cost table than the plan's own"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "PLAN.db STRATEGY|NUMBER",
        .doc = "Says why a strategy, or the candidate of that number, lost to the plan's own or was "
               "rejected: for "
               "the plan's network, batch and machine, with the costs it was predicted with.",
        .min_word = 2,
        .max_word = 2,
        .too_few = "which plan and strategy? For example: hplan why plan.db dp=4",
        .too_many = "'%s' is one word too many",
        .opens = true,
        .run = why};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
