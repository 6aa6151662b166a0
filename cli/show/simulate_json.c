/* simulate_json.c - the result of `simulate` as one JSON object. */
#include "cli/show/simulate_show.h"
#include "cli/show/show_costs.h"
#include "networks/graph/optimizer.h"

static json_t *candidate_json(const hp_evaluation *e, int rank) {
    const hp_candidate *c = &e->figures;
    json_t *memory = json_array();
    for (int r = 0; r < hp_strategy_ranks(&e->strategy); r++)
        json_array_append_new(memory, json_integer(e->memory_by_role[r % e->n_role]));
    return json_pack(
        "{s:i, s:s, s:i, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:f, s:I, s:o, s:f, s:f, s:I, s:f, s:b, "
        "s:s, s:s,"
        " s:s, s:o}",
        "rank", rank, "strategy", c->strategy, "gpus", c->gpus, "step_s", c->step_s, "step_low_s",
        cli_json_known(c->step_low_s), "step_high_s", cli_json_known(c->step_high_s), "step_quiet_s",
        cli_json_known(c->step_quiet_s), "measured_s", cli_json_known(c->measured_s), "measured_low_s",
        c->rounds ? cli_json_number(c->measured_low_s) : json_null(), "measured_high_s",
        c->rounds ? cli_json_number(c->measured_high_s) : json_null(), "rounds", c->rounds, "images_per_s",
        c->images_per_s, "memory_bytes", (json_int_t)c->memory_bytes, "memory_by_rank", memory, "bubble",
        c->bubble, "exposed_comm", c->exposed_comm, "comm_bytes", (json_int_t)c->comm_bytes, "measured_share",
        c->measured_share, "tie", c->tie, "bound_by", e->bound_by, "note", c->note, "prec",
        hp_prec_names[e->strategy.prec], "unmeasured", costs_unmeasured_json(&e->exposure));
}

static json_t *open_json(const hp_open_strategy *o) {
    char text[HP_STRATEGY_TEXT];
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "strategy", hp_strategy_text(&o->strategy, text),
                     "estimate_s", o->estimate_s, "at_least_s", o->bound, "memory_bytes", o->memory_bytes,
                     "tasks", (json_int_t)o->tasks);
}

json_t *simulate_json(const simulate_setup *s, const simulate_found *f) {
    json_t *candidates = json_array(), *rejected = json_array();
    for (int i = 0; i < f->n; i++) json_array_append_new(candidates, candidate_json(&f->list[i], i + 1));
    for (int i = 0; i < f->without.n_rejected; i++) {
        const hp_rejected *r = &f->without.rejected[i];
        json_array_append_new(rejected, json_pack("{s:s, s:I, s:s, s:s, s:s}", "code",
                                                  hp_reject_text(r->code), "count", (json_int_t)r->count,
                                                  "example", r->example, "limit", r->limit, "fix", r->fix));
    }
    json_t *promising = json_array();
    for (int i = 0; i < f->unseen.n_promising; i++)
        json_array_append_new(promising, open_json(&f->unseen.promising[i]));
    char image[32];
    snprintf(image, sizeof image, "%dx%d", s->network.image_h, s->network.image_w);
    return json_pack(
        "{s:i, s:s, s:I, s:s, s:i, s:s, s:I, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:f, s:i, "
        "s:o, s:o, s:o, s:o}",
        "schema", 1, "net", s->network.net, "parameters", (json_int_t)hp_graph_param_count(s->network.graph),
        "machine", s->machine.name, "gpus", f->gpus, "image", image, "batch", (json_int_t)f->batch, "mode",
        s->step.mode == HP_MODE_TRAIN ? "train" : "infer", "optimizer",
        hp_optimizer_infos[s->step.optimizer].name, "clipped", s->step.clips, "searched",
        (json_int_t)f->tally.searched, "valid", (json_int_t)f->tally.valid, "simulated",
        (json_int_t)f->tally.simulated, "cut_off", (json_int_t)f->tally.cut_off, "open",
        (json_int_t)f->tally.open, "gap", f->unseen.gap, "stopped", f->tally.stopped, "elapsed_s",
        f->tally.elapsed_s, "chosen", f->n ? f->chosen + 1 : 0, "candidates", candidates, "promising",
        promising, "rejected", rejected, "scaling", simulate_scaling_json(f));
}
