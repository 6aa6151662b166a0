/* cmd_why.c - why a strategy lost or was rejected: it is evaluated again, and held against the plan's own. */
#include "cli/commands/conditions.h"
#include "cli/show/frame.h"
#include "cli/options/simulate.h"
#include "plan/base/units.h"

#include <math.h>
#include <string.h>

typedef struct options {
    const char *cost;
    bool json;
} options;

/* Why computing itself takes longer. */
static const char *longer(const hp_strategy *asked, const hp_strategy *best) {
    if (asked->prec != best->prec) return "it computes longer in its precision";
    if (asked->strips > best->strips) return "it computes longer in strips";
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

static void verdict(const hp_evaluation *asked, const hp_evaluation *best, char *out, size_t n) {
    const hp_candidate *a = &asked->figures, *b = &best->figures;
    char time[32];
    double seconds;
    if (asked->reject.code) {
        snprintf(out, n, "rejected: %s: %s; smallest fix: %s", hp_reject_text(asked->reject.code),
                 asked->reject.limit, asked->reject.fix);
    } else if (hp_strategy_equal(&asked->strategy, &best->strategy)) {
        snprintf(out, n, "it is the selected one");
    } else if (a->step_s <= b->step_s) {
        snprintf(out, n, "it did not lose: it is predicted to be as fast or faster%s",
                 a->gpus == b->gpus ? ", and the plan was chosen by another order or by hand"
                                    : " on another number of devices");
    } else {
        const char *reason = main_reason(asked, best, &seconds);
        const bool tie = a->gpus == b->gpus && a->step_low_s <= b->step_high_s;
        snprintf(out, n, "%s: %s, by %s%s", tie ? "a tie: the intervals overlap; in the middle" : "it lost",
                 reason, hp_format_seconds(seconds, time),
                 a->memory_bytes < b->memory_bytes ? "; it would save memory" : "");
    }
}

static void print_row(const char *what, const char *asked, const char *best) {
    printf("  %-16s %22s %22s\n", what, asked, best);
}

static void print_comparison(const hp_candidate *a, const hp_candidate *b) {
    char x[64], y[64];
    print_row("", "asked", "selected");
    print_row("step", hp_format_seconds(a->step_s, x), hp_format_seconds(b->step_s, y));
    snprintf(x, sizeof x, "%.3g-%.3g ms", 1e3 * a->step_low_s, 1e3 * a->step_high_s);
    snprintf(y, sizeof y, "%.3g-%.3g ms", 1e3 * b->step_low_s, 1e3 * b->step_high_s);
    print_row("interval", x, y);
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
    printf("  asked:    %s\n  selected: %s\n", a->note, b->note);
}

static json_t *figures_json(const hp_evaluation *e) {
    const hp_candidate *c = &e->figures;
    return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:I}", "strategy", c->strategy, "gpus",
                     c->gpus, "step_s", c->step_s, "step_low_s", c->step_low_s, "step_high_s", c->step_high_s,
                     "images_per_s", c->images_per_s, "memory_bytes", (json_int_t)c->memory_bytes, "bubble",
                     c->bubble, "exposed_comm", c->exposed_comm, "comm_bytes", (json_int_t)c->comm_bytes);
}

static json_t *why_json(const hp_evaluation *asked, const hp_evaluation *best, const char *text) {
    json_t *reject = asked->reject.code
                         ? json_pack("{s:s, s:s, s:s}", "code", hp_reject_text(asked->reject.code), "limit",
                                     asked->reject.limit, "fix", asked->reject.fix)
                         : json_null();
    return json_pack("{s:i, s:s, s:o, s:o, s:o}", "schema", 1, "why", text, "asked", figures_json(asked),
                     "selected", figures_json(best), "rejected", reject);
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

/* The strategy as the search wrote it: without the cut that was found for it. */
static hp_status evaluate_both(frame *f, const hp_plan *plan, hp_evaluation *asked, hp_evaluation *best,
                               hp_error *err) {
    const options *o = f->options;
    hp_strategy strategy;
    hp_cost_table *table;
    HP_TRY(hp_strategy_parse(f->word[1], &strategy, err));
    HP_TRY(hp_cost_load(f->arena, o->cost, &plan->machine, &table, err));
    hp_eval_setup setup = {.graph = plan->graph,
                           .machine = &plan->machine,
                           .table = table,
                           .mode = (hp_mode)plan->mode,
                           .dtype = (hp_dtype)plan->dtype,
                           .device = plan->device,
                           .batch = plan->batch,
                           .straggler_rank = -1,
                           .seed = plan->seed};
    HP_TRY(conditions_read(&f->db, &setup, err));
    hp_eval *e;
    HP_TRY(eval_in(f, plan, &plan->strategy, &setup, &e, err));
    HP_TRY(hp_evaluate(e, f->arena, &plan->strategy, HP_EVAL_PLACED, best, err));
    HP_TRY(eval_in(f, plan, &strategy, &setup, &e, err));
    HP_TRY(hp_evaluate(e, f->arena, &strategy, HP_EVAL_PLACED, asked, err));
    if (asked->reject.code == HP_REJECT_MEM) HP_TRY(hp_search_memory_fix(e, &strategy, &asked->reject, err));
    return HP_OK;
}

static hp_status why(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_plan plan;
    hp_evaluation asked, best;
    char text[512];
    HP_TRY(hp_plan_read(f->arena, &f->db, &plan, err));
    HP_TRY(evaluate_both(f, &plan, &asked, &best, err));
    verdict(&asked, &best, text, sizeof text);
    if (o->json) return cli_print_json(why_json(&asked, &best, text), err);
    printf("%s\n%s\n", asked.figures.strategy, text);
    if (!asked.reject.code) print_comparison(&asked.figures, &best.figures);
    return cli_finish_stdout(err);
}

int cmd_why(int argc, char **argv) {
    static const frame_option list[] = {{"cost", 'c', "FILE", offsetof(options, cost), 0,
                                         "cost table the plan was made with, if it was not the machine's"},
                                        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
                                        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "PLAN.db STRATEGY",
        .doc = "Evaluates a strategy for the plan's network, batch and machine, and says why it "
               "lost to the plan's own or was rejected.",
        .min_word = 2,
        .max_word = 2,
        .too_few = "which plan and strategy? For example: hplan why plan.db dp=4",
        .too_many = "'%s' is one word too many",
        .opens = true,
        .run = why};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
