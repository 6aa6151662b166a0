/* cmd_explain.c - a stored plan in words: what is run, how the network is cut, what every rank holds and
 * does. The units are listed with their numbers, so that `cut=` can be written by hand. */
#include "cli/show/show_costs.h"
#include "cli/show/explain.h"
#include "cli/show/frame.h"
#include "networks/graph/samples.h"
#include "costmodels/cost_stored.h"
#include "base/units.h"
#include "networks/deploy/deploy.h"
#include "plan/program/print.h"
#include "plan/strategy/axes/axis_compress.h"
#include "plan/program/traffic.h"
#include "sim/costs/codec_gain.h"
#include "sim/search/conditions.h"

#include <string.h>

typedef struct options {
    const char *rank_text; /* NULL: all roles */
    bool dot, json;
} options;

/* "rank 0", "ranks 0..3", "ranks 0..1, 4..5": a stage's parts have consecutive ranks, in each replica with a
 * share of its own. */
static void print_ranks(const hp_plan *plan, const explain_stage *s, int flip) {
    const int shares = hp_shares(&plan->strategy), parts = s->parts / shares;
    for (int share = 0; share < shares; share++) {
        const int a = explain_role_of(plan, s->stage, share * parts, flip),
                  b = explain_role_of(plan, s->stage, (share + 1) * parts - 1, flip);
        if (a < 0 || b < 0) return;
        if (share == 0) printf("%s rank%s", flip ? ", mirrored on" : " on", s->parts == 1 ? "" : "s");
        printf("%s %d", share ? "," : "", a < b ? a : b);
        if (a != b) printf("..%d", a < b ? b : a);
    }
}

static void print_stage(const hp_plan *plan, const explain_stage *s) {
    const hp_graph *g = plan->graph;
    char name[EXPLAIN_NAME];
    printf("\nstage %d", s->stage);
    print_ranks(plan, s, 0);
    print_ranks(plan, s, 1);
    if (explain_layout(&s->layout, name)[0]) printf(" (%s)", name);
    if (s->strip_unit >= 0)
        printf(" (units %d..%d in %d strips of the image)", s->first_unit, s->strip_unit,
               plan->strategy.strips.n);
    printf(": units %d..%d, %.3g M parameters, %.3g GFLOP forward per %s\n", s->first_unit, s->last_unit,
           (double)s->params * 1e-6, 2e-9 * (double)s->macs, hp_samples_one(g));
    for (int u = s->first_unit; u <= s->last_unit; u++) {
        const hp_tensor *t = &g->tensor[g->layer[g->unit_first[u + 1] - 1].out];
        printf("  unit %3d  %-28s -> %d x %d x %d\n", u, explain_unit_name(g, u, name), t->h, t->w, t->c);
    }
}

/* "  halo           1.05 MB in 32 messages" */
static void print_traffic(const hp_program *p) {
    hp_sent sent[HP_TRAFFICS];
    char bytes[32];
    hp_program_sends(p, sent);
    if (hp_program_ranks(p) > 1) printf("\nsent by all ranks in a step\n");
    for (int k = 0; k < HP_TRAFFICS; k++)
        if (sent[k].number)
            printf("  %-13s %10s in %lld %s\n", hp_traffic_names[k], hp_format_bytes(sent[k].bytes, bytes),
                   (long long)sent[k].number,
                   hp_traffic_collective((hp_traffic)k) ? "calls, one of each member" : "messages");
}

/* "allreduce among 2 ranks: 64 B .. 4 kB shm.doubling, 9 MB own.ring" */
static void print_collectives(const hp_program *p) {
    hp_arena *arena = hp_arena_new();
    explain_way *w;
    const int n = explain_ways(arena, p, &w);
    if (n) printf("\ncollectives");
    for (int i = 0; i < n; i++) {
        char least[32], most[32], name[EXPLAIN_NAME];
        if (explain_goes_on(w, i))
            printf(", ");
        else
            printf("\n  %s among %d ranks: ", hp_collective_infos[w[i].what].name, w[i].ranks);
        printf("%s", hp_format_bytes((double)w[i].least, least));
        if (w[i].most > w[i].least) printf(" .. %s", hp_format_bytes((double)w[i].most, most));
        printf(" %s", explain_way_name(&w[i], name));
    }
    if (n) putchar('\n');
    hp_arena_free(arena);
}

/* "halo:int8: 2.1 MB instead of 8.4 MB between ranks, 1.2 ms to encode and decode; pays below 5.1 GB/s" */
static void print_codecs(const hp_plan *plan, const hp_cost_table *costs) {
    hp_arena *arena = hp_arena_new();
    hp_codec_gain gain[HP_TRAFFICS];
    char codec[HP_CODEC_TEXT], coded[32], plain[32], time[32], rate[32];
    hp_codec_gains(arena, plan->program, plan->graph, costs, &plan->machine, gain);
    if (!hp_compress_is_none(plan->strategy.compress))
        printf("\ncompressed messages of a replica, in a step\n");
    for (int t = 0; t < HP_TRAFFICS; t++) {
        const double below = hp_codec_break_even_bytes_per_s(&gain[t]);
        if (!gain[t].codec) continue;
        printf("  %s:%s: %lld, %s instead of %s between ranks, %s to encode and decode; ",
               hp_traffic_names[t], hp_codec_text(gain[t].codec, codec), (long long)gain[t].messages,
               hp_format_bytes(gain[t].coded_bytes, coded), hp_format_bytes(gain[t].plain_bytes, plain),
               hp_format_seconds(gain[t].codec_s, time));
        if (below > 0)
            printf("pays below %s/s\n", hp_format_bytes(below, rate));
        else
            printf("no fewer bytes: never pays\n");
    }
    hp_arena_free(arena);
}

/* How the batch is split, without an end of line. */
static void print_batch(const hp_program *p) {
    printf("batch %lld = ", (long long)p->batch);
    if (!p->n_share) printf("%d replica%s x ", p->dp, p->dp == 1 ? "" : "s");
    printf("%d micro-batch%s x %lld", p->micro, p->micro == 1 ? "" : "es", (long long)p->micro_batch);
    for (int i = 0; i < p->n_share; i++)
        printf("%s%lld", i ? "+" : " on replicas of ", (long long)p->share[i]);
}

static void print_header(const hp_plan *plan, const hp_cost_table *costs, const hp_exposure *exposure) {
    char from[COSTS_TEXT];
    char size[HP_SAMPLES_TEXT];
    char strategy[HP_STRATEGY_TEXT], machine[64], step[32], arena[32], live[32], place[256];
    const hp_program *p = plan->program;
    printf("%s of %s in %s, %s, %lld parameters\n", p->mode == HP_MODE_TRAIN ? "training" : "inference",
           plan->net, hp_prec_names[plan->strategy.prec], hp_samples_size(plan->graph, size),
           (long long)hp_graph_param_count(plan->graph));
    printf("strategy %s\n", hp_strategy_text(&plan->strategy, strategy));
    print_batch(p);
    printf("; %d rank%s on %s (device %s); %s predicted per step\n", hp_program_ranks(p),
           hp_program_ranks(p) == 1 ? "" : "s", cli_plain(plan->machine.name, machine, sizeof machine),
           plan->device->name, hp_format_seconds(plan->step_s, step));
    printf("costs: %s\n", costs_text(costs, from));
    costs_print_unmeasured("", exposure);
    for (int v = 0; v < explain_stages(plan); v++) {
        const explain_stage s = explain_stage_of(plan, v);
        print_stage(plan, &s);
    }
    printf("\nmemory per rank\n");
    for (int r = 0; r < p->n_role; r++)
        printf("  rank %d: %s planned, %s of it in use at the fullest moment; %d tasks, %d buffers; %s\n", r,
               hp_format_bytes((double)p->role[r].arena_bytes, arena),
               hp_format_bytes((double)p->role[r].live_bytes, live), p->role[r].n_task, p->role[r].n_buffer,
               explain_place(plan, r, place, sizeof place));
    print_traffic(p);
    print_collectives(p);
    print_codecs(plan, costs);
}

static void print_roles(const hp_plan *plan, const hp_cost_table *costs, const hp_exposure *exposure,
                        int only) {
    const hp_program *p = plan->program;
    print_header(plan, costs, exposure);
    for (int r = 0; r < p->n_role; r++) {
        if (only >= 0 && r != only) continue;
        char place[256];
        printf("\nrank%s %d", p->dp > 1 ? "s" : "", r);
        if (p->dp > 1) printf(", %d%s", r + p->n_role, p->dp > 2 ? ", ..." : "");
        printf(": %s\n", explain_place(plan, r, place, sizeof place));
        hp_program_print(stdout, p, plan->graph, r);
    }
}

/* Finds what the step rests on, under the conditions of its prediction. */
static hp_status find_exposure(frame *f, const hp_plan *plan, hp_exposure *exposure, hp_error *err) {
    hp_eval_setup setup;
    hp_evaluation v = {.reject = {0}};
    HP_TRY(hp_conditions_read(f->arena, &f->db, plan, &setup, err));
    hp_eval *e = hp_eval_new(f->arena, &setup);
    HP_TRY(hp_eval_program(e, f->arena, plan->program, &plan->strategy, &v, err));
    *exposure = v.exposure;
    return HP_OK;
}

static hp_status explain(frame *f, hp_error *err) {
    const options *o = f->options;
    hp_plan plan;
    hp_cost_table *costs;
    HP_TRY(hp_plan_read(f->arena, &f->db, &plan, err));
    HP_TRY(hp_cost_restore(f->arena, &f->db, &costs, err));
    int64_t rank = -1;
    if (o->rank_text)
        HP_TRY(hp_parse_int(o->rank_text, "--rank", 0, hp_program_ranks(plan.program) - 1, &rank, err));
    const int role = rank < 0 ? -1 : (int)(rank % plan.program->n_role);
    if (o->dot) {
        hp_program_dot(stdout, plan.program, plan.graph);
        return cli_finish_stdout(err);
    }
    hp_exposure exposure;
    HP_TRY(find_exposure(f, &plan, &exposure, err));
    if (o->json) {
        json_t *all = explain_json(&plan, role);
        json_object_set_new(all, "unmeasured", costs_unmeasured_json(&exposure));
        return cli_print_json(all, err);
    }
    print_roles(&plan, costs, &exposure, role);
    return cli_finish_stdout(err);
}

int cmd_explain(int argc, char **argv) {
    static const frame_option list[] = {
        {"rank", 'r', "R", offsetof(options, rank_text), 0, "only the task list of rank R"},
        {"dot", 'd', NULL, offsetof(options, dot), 0,
         "the task graph in Graphviz's language: hplan explain --dot plan.db | dot -Tsvg"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "PLAN.db",
        .doc = "The task program of a plan: how the network is cut into stages (unit numbers for "
               "cut=), the memory of every rank, and its tasks in order.",
        .min_word = 1,
        .max_word = 1,
        .too_few = "which plan? For example: hplan explain plan.db",
        .too_many = "one plan at a time: '%s' is one word too many",
        .opens = true,
        .run = explain};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
