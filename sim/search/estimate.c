/* estimate.c - positions of the pipeline as sums of their units' costs; bounds and estimates from those. */
#include "sim/search/estimate.h"

#include "networks/graph/branch.h"
#include "networks/graph/optimizer.h"
#include "plan/lower/lower_choice.h"
#include "plan/strategy/sched_kind.h"
#include "plan/strategy/schedule.h"

#include <math.h>
#include <string.h>

/* The work of a position for one micro-batch, and what it keeps. */
typedef struct position {
    double forward, backward, again; /* seconds; again: forward passes that are repeated, in the mean */
    double least;                    /* for one micro-batch, on the part that owns least */
    double norm_waits, gather_waits; /* seconds in which it waits for other parts, there and back */
    double lead, trail;      /* seconds: first model chunk; layers run again while a gradient is on its way */
    double exchange;         /* seconds: halo rows there and back, redundant rows */
    double kept, group_kept; /* bytes: all, and of the largest group that is run again at once */
    double extended;         /* bytes: copies of kept inputs with their halo */
    double again_kept;    /* bytes, roughly: what layers that are run again at once keep, with these copies */
    double packs, scores; /* bytes: packed weights; what the loss leaves of each micro-batch */
    double gathered;      /* bytes: the largest map that comes from other parts, with its messages */
    double busy;          /* seconds of forward and backward */
    double entering;      /* bytes that enter its stages; with recompute=boundary its units */
    double boundary;      /* seconds to hand over to the next position, one way */
    double params;
    struct {                    /* bytes */
        double constants, live; /* weights in the device's layout, activations at once */
        double strip;           /* what strips need beside what is put together after them, roughly */
    } infer;
    hp_branch_load fullest; /* what its fullest rank holds, relative to the mean over its branches, roughly */
    int parts;
    int mirror; /* GEMS: the position that its first rank mirrors */
} position;

typedef struct view {
    const hp_estimate_setup *o;
    const hp_strategy *s;
    int64_t micro_batch;
    bool one_node; /* does a replica fit into one? */
    int n;         /* positions */
    position at[HP_MAX_STAGES];
} view;

/* GEMS: a rank does its own position's work in every second pass, its mirror image's in the others. Ranks in
 * order come in runs with the same two positions. */
typedef struct mirrored_run {
    int own, mirror; /* positions */
} mirrored_run;

enum { MOST_RUNS = 2 * HP_MAX_STAGES }; /* a run ends where one of the two positions does */

static int mirrored_runs(const view *v, mirrored_run run[MOST_RUNS]) {
    int n = 0, own = 0, mirror = v->n - 1, own_left = v->at[0].parts, mirror_left = v->at[mirror].parts;
    while (own < v->n && mirror >= 0) {
        run[n++] = (mirrored_run){own, mirror};
        const int ranks = own_left < mirror_left ? own_left : mirror_left;
        own_left -= ranks;
        mirror_left -= ranks;
        if (own_left == 0 && ++own < v->n) own_left = v->at[own].parts;
        if (mirror_left == 0 && --mirror >= 0) mirror_left = v->at[mirror].parts;
    }
    return n;
}

static hp_wire wire(const view *v, hp_traffic traffic, hp_backend by) {
    const int32_t kind = (int32_t)hp_device_kind_of(v->o->device);
    return hp_traffic_collective(traffic) ? hp_wire_of_collective(v->o->machine, kind, (int32_t)by)
                                          : hp_wire_of(v->o->machine, kind, (int32_t)by);
}

/* Between nodes the devices of a node send at the same time, through its NICs. */
static double message_s(const view *v, hp_traffic traffic, bool same_node, double bytes) {
    const hp_machine *m = v->o->machine;
    const double sharing = !same_node && m->nics_per_node > 0 && m->devices_per_node > m->nics_per_node
                               ? (double)m->devices_per_node / m->nics_per_node
                               : 1;
    const hp_backend by = hp_comm_backend(v->s->comm[traffic], traffic, v->o->device, v->s->clients);
    if (bytes <= 0) return 0;
    return hp_costs_p2p(v->o->costs, wire(v, traffic, by), same_node, (int64_t)(bytes * sharing)).seconds;
}

/* The least fraction of the forward passes that is repeated. In GEMS the last pass belongs to one of two
 * positions. */
static double repeated(const view *v) {
    const double passes = hp_strategy_groups(v->s), last = v->s->gems > 1 ? 2 : 1;
    if (v->o->mode == HP_MODE_INFER || v->s->recompute == HP_RECOMPUTE_NONE) return 0;
    return v->s->recompute == HP_RECOMPUTE_EXCEPT_LAST ? (passes - last) / passes : 1;
}

/* Adds what a stage keeps of layers that run again. Where the last micro-batch is not run again, all stages
 * of a position keep it. */
static void add_again(const view *v, const hp_part_sums *p, int first, int end, position *at) {
    const double *kept = v->o->eager ? p->eager_bytes : p->kept_bytes, *copies = p->extended_bytes;
    const double all = kept[end] - kept[first] + (copies[end] - copies[first]) / v->s->sp.halo;
    double most = 0;
    for (int u = first; u < end; u++)
        most = fmax(most, kept[u + 1] - kept[u] + (copies[u + 1] - copies[u]) / v->s->sp.halo);
    if (v->s->recompute == HP_RECOMPUTE_EXCEPT_LAST)
        at->again_kept += all / v->s->bp;
    else
        at->again_kept =
            fmax(at->again_kept, (v->s->recompute == HP_RECOMPUTE_BOUNDARY ? most : all) / v->s->bp);
}

static double add_recompute(const view *v, const hp_part_sums *p, int first, int end, position *at) {
    const double *kept = v->o->eager ? p->eager_bytes : p->kept_bytes;
    double most = 0;
    if (v->s->recompute == HP_RECOMPUTE_NONE || v->o->mode == HP_MODE_INFER) return kept[end] - kept[first];
    if (v->s->recompute == HP_RECOMPUTE_BOUNDARY) {
        for (int u = first; u < end; u++) most = fmax(most, kept[u + 1] - kept[u]);
        at->entering += p->fresh[end] - p->fresh[first + 1];
    } else {
        most = kept[end] - kept[first];
    }
    at->entering += p->entering[first];
    const double again = (p->forward[end] - p->forward[first]) / v->s->bp;
    at->again += repeated(v) * again;
    return most;
}

/* `here`: room for its ranks on a node. */
static double allreduce_s(const view *v, hp_traffic traffic, int ranks, int here, double bytes) {
    const hp_comm_chooser chooser = {v->s->comm, v->s->clients, v->o->comm, v->o->device};
    const hp_collective_case what = {
        .what = HP_COLLECTIVE_ALLREDUCE, .size = ranks, .per_node = here < ranks ? here : ranks};
    const hp_comm_way way = hp_comm_way_of(&chooser, traffic, &what, true, (int64_t)bytes);
    const hp_collective_call c = {.by = wire(v, traffic, way.by),
                                  .algorithm = way.algorithm,
                                  .what = what.what,
                                  .ranks = ranks,
                                  .per_node = what.per_node};
    return hp_costs_collective(v->o->costs, &c, (int64_t)bytes).seconds;
}

/* `halo` layers share an exchange, whose messages go one after the other. Interior overlap hides half of the
 * forward pass's exchange, a guess. */
static double exchange_s(const view *v, const hp_part_sums *p, int first, int end) {
    const double rounds = ceil((p->rounds[end] - p->rounds[first]) / v->s->sp.halo),
                 hidden = v->s->sp.overlap == HP_OVERLAP_INTERIOR ? 0.5 : 0;
    if (rounds <= 0) return 0;
    const double rows = (p->row_bytes[end] - p->row_bytes[first]) / rounds,
                 cols = (p->col_bytes[end] - p->col_bytes[first]) / rounds;
    const int passes = v->o->mode == HP_MODE_TRAIN ? 2 : 1;
    const double redundant = (v->s->sp.halo - 1) / 2.0 * (p->redundant[end] - p->redundant[first]);
    return (passes - hidden) * rounds *
               (message_s(v, HP_TRAFFIC_HALO, v->one_node, rows) +
                message_s(v, HP_TRAFFIC_HALO, true, cols)) +
           redundant;
}

/* --- strips --- */

/* The end of the units that strips go through; none: `first`. */
static int streamed_end(const view *v, int stage, bool lead, int first, int end) {
    if (v->s->strips.n == 1 || stage > 0 || !lead) return first;
    return v->s->strips.deep && v->s->strips.deep < end ? v->s->strips.deep : end;
}

static double largest(const double *of, int first, int end) {
    double most = 0;
    for (int u = first; u < end; u++) most = fmax(most, of[u]);
    return most;
}

/* The most alive on a part: after the strips, which put together what is read there. */
static double live_bytes(const view *v, const hp_part_sums *p, int first, int deep, int end) {
    if (!p->peak) return 0;
    const double handed_on = deep > first && deep < v->o->graph->n_unit ? p->entering[deep] : 0;
    return fmax(handed_on, fmax(largest(p->whole, first, deep), largest(p->peak, deep, end)));
}

/* Tiles as high as a strip: what one of them takes and keeps. Tiles of the image besides compute what lies
 * beyond their edges again, a layer half of what all after it reach over. */
static void add_strips(const view *v, const hp_layout *layout, int first, int deep, position *at) {
    hp_layout strip = *layout;
    strip.rows *= v->s->strips.n;
    const hp_part_sums *one = hp_parts_of(v->o->parts, &strip, v->micro_batch),
                       *all = hp_parts_of(v->o->parts, layout, v->micro_batch);
    const double rounds = all->rounds[deep] - all->rounds[first],
                 redundant = all->redundant[deep] - all->redundant[first];
    at->exchange += v->s->strips.n * (one->forward[deep] - one->forward[first]) + 0.5 * rounds * redundant;
    at->infer.strip = one->peak ? largest(one->peak, first, deep) : 0;
}

/* Adds the work of the part that owns least, and the waits in which all parts meet. Waits are only known for
 * the device's own back end. */
static void add_waits(const view *v, const hp_part_sums *p, int first, int deep, int end, position *at) {
    const bool known =
        v->s->comm[HP_TRAFFIC_HALO] == HP_COMM_AUTO && v->s->comm[HP_TRAFFIC_STATS] == HP_COMM_AUTO;
    const double least = p->least_forward[end] - p->least_forward[deep];
    at->least += least + p->least_backward[end] - p->least_backward[deep];
    at->least += repeated(v) * least;
    if (v->s->bp > 1 || v->s->clients > 1 || v->s->strips.n > 1 || !known) return;
    at->gather_waits +=
        (v->o->mode == HP_MODE_TRAIN ? 2 : 1) * (p->gather_waits[end] - p->gather_waits[first]);
    if (v->s->bn != HP_BN_LOCAL) at->norm_waits += p->norm_waits[end] - p->norm_waits[first];
}

static void add_stage(view *v, int stage, bool lead, int first, int end) {
    position *at = &v->at[hp_position_of(v->s, stage)];
    const hp_layout layout = hp_stage_layout(v->s, stage);
    const hp_part_sums *p = hp_parts_of(v->o->parts, &layout, v->micro_batch);
    const double share = 1.0 / v->s->bp; /* branches: no rank of a part does less than the mean */
    const int deep = streamed_end(v, stage, lead, first, end); /* strips take other times than whole maps */
    const double forward = share * (p->forward[end] - p->forward[deep]),
                 backward = share * (p->backward[end] - p->backward[deep]);
    at->forward += forward;
    at->backward += backward;
    add_waits(v, p, first, deep, end, at);
    at->params += share * (p->params[end] - p->params[first]);
    at->exchange += exchange_s(v, p, deep, end);
    if (deep > first) add_strips(v, &layout, first, deep, at);
    at->infer.constants += share * (p->constants[end] - p->constants[first]);
    at->infer.live = fmax(at->infer.live, share * live_bytes(v, p, first, deep, end));
    const double kept = add_recompute(v, p, first, end, at);
    add_again(v, p, first, end, at);
    at->gathered = fmax(at->gathered, largest(p->gathered, first, end));
    at->packs += share / v->s->cp * (p->packs[end] - p->packs[first]);
    if (end == v->o->graph->n_unit) at->scores = p->scores;
    if (lead) {
        at->lead += forward;
        at->trail += backward;
    }
    at->kept += share * kept;
    at->group_kept = fmax(at->group_kept, share * kept);
    at->extended += share * (p->extended_bytes[end] - p->extended_bytes[first]) / v->s->sp.halo;
    const int *layer = v->o->graph->unit_first;
    const hp_branch_load fullest = hp_branch_fullest(v->o->graph, v->s->bp, layer[first], layer[end]);
    at->fullest.maps = fmax(at->fullest.maps, fullest.maps);
    at->fullest.params = fmax(at->fullest.params, fullest.params);
    at->busy += share * (p->busy[end] - p->busy[first]);
    at->parts = hp_stage_parts(v->s, stage);
    if (end < v->o->graph->n_unit)
        at->boundary = message_s(v, HP_TRAFFIC_STAGE, v->one_node, p->entering[end]);
}

static void add_stages(view *v, const int32_t *counts) {
    int first = 0;
    v->n = hp_positions(v->s);
    memset(v->at, 0, sizeof *v->at * (size_t)v->n);
    for (int k = 0; k < v->s->stages * v->s->chunks; k++) {
        add_stage(v, k % v->s->stages, k < v->s->stages, first, first + counts[k]);
        first += counts[k];
    }
    if (v->s->gems == 1) return;
    mirrored_run run[MOST_RUNS];
    for (int k = mirrored_runs(v, run) - 1; k >= 0; k--) v->at[run[k].own].mirror = run[k].mirror;
}

static bool trains(const view *v) {
    return v->o->mode == HP_MODE_TRAIN;
}

/* Zero-bubble runs weight gradients of other micro-batches while it would wait (Qi et al. 2023). */
static bool fills_waits(const view *v) {
    return hp_sched_of(v->s)->splits_backward;
}

/* Seconds of one micro-batch on a position; `extra` counts exchanges. */
static double pass_s(const view *v, const position *p, bool extra) {
    const double work = p->forward + p->backward + p->again, waits = p->norm_waits + p->gather_waits;
    if (extra) return work + p->exchange + waits;
    return fmax(work, p->least + (fills_waits(v) ? 0 : waits));
}

/* --- the pipeline --- */

/* A rank begins once the first forward pass reaches its position. It ends with a backward pass of its mirror
 * image, which continues to the first position. */
static double gems_s(const view *v, bool extra) {
    const int passes = v->s->gems / 2 * v->s->micro;
    mirrored_run run[MOST_RUNS];
    const int n = mirrored_runs(v, run);
    double best = 0, before[HP_MAX_STAGES + 1] = {0}, after[HP_MAX_STAGES + 1] = {0};
    for (int i = 0; i < v->n; i++) {
        before[i + 1] = before[i] + v->at[i].forward;
        after[i + 1] = after[i] + v->at[i].backward;
    }
    for (int k = 0; k < n; k++) {
        const int own = run[k].own, mirror = run[k].mirror;
        const double work = passes * (pass_s(v, &v->at[own], extra) + pass_s(v, &v->at[mirror], extra));
        best = fmax(best, before[own] + work + after[mirror]);
    }
    return best;
}

static double pipeline_s(const view *v, bool extra) {
    const int micro = v->s->micro;
    double best = 0, forward = 0, backward = 0;
    for (int i = 0; i < v->n; i++) {
        const position *p = &v->at[i];
        const bool returns = extra || !fills_waits(v);
        best = fmax(best, forward + micro * pass_s(v, p, extra) + (returns ? backward : 0));
        forward += p->lead;
        backward += p->trail;
    }
    return best;
}

/* Passes over the pipeline that cannot overlap: GEMS fills it again for each (Jain et al., SC 2020). */
static double refills_s(const view *v) {
    double longest = 0;
    for (int i = 0; i < v->n; i++) longest = fmax(longest, fmax(v->at[i].forward, v->at[i].backward));
    return v->s->gems > 1 ? v->s->gems * (v->n - 1) * longest : 0;
}

static double boundaries_s(const view *v) {
    double sum = 0;
    for (int i = 0; i + 1 < v->n; i++) sum += v->at[i].boundary;
    return (trains(v) ? 2 : 1) * v->s->gems * sum;
}

/* Ranks that hold the same weights. */
static int holders(const view *v, int i) {
    return hp_strategy_replicas(v->s) * v->at[i].parts / (v->s->cp * v->s->bp) * (v->s->gems > 1 ? 2 : 1);
}

/* Room for them on a node; ranks beyond the number of devices share those of a single node. */
static int holders_on_a_node(const view *v, int ranks) {
    const hp_machine *m = v->o->machine;
    const int here = m->devices_per_node / (v->one_node ? v->n : 1);
    if (m->nodes == 1) return ranks;
    return here < 1 ? 1 : here;
}

/* The gradients' all-reduce, as far as the last backward pass does not hide it. */
static double gradients_s(const view *v) {
    double most = 0;
    if (!trains(v)) return 0;
    for (int i = 0; i < v->n; i++) {
        const position *p = &v->at[i];
        const int ranks = holders(v, i);
        const int here = holders_on_a_node(v, ranks);
        const double bytes = p->params * hp_dtype_bytes(v->o->dtype) / v->s->cp;
        const double t = allreduce_s(v, HP_TRAFFIC_ALLREDUCE, ranks, here, bytes);
        most = fmax(most, fmax(t - p->backward, t / 10));
    }
    return most;
}

/* Several ranks on a device share it, but for the launches. */
static double sharing(const view *v) {
    const position *p = &v->at[0];
    if (v->o->machine->share_cpu || p->forward <= 0) return 1;
    return fmax(1, v->s->clients * p->busy / (p->forward + p->backward));
}

/* Clients of a device cannot keep it busier than it is (sim/engine/resources.c): their work one after
 * another. */
static double device_s(const view *v) {
    double most = 0;
    if (v->s->clients == 1 || v->o->machine->share_cpu || v->s->gems > 1) return 0;
    for (int i = 0; i < v->n; i++) most = fmax(most, v->at[i].busy);
    return v->s->clients * v->s->micro * most;
}

/* --- memory --- */

/* Copies of the parameters that a rank holds: weights, gradients, the optimiser's states. Of those that ZeRO
 * shards, a holder keeps one part. */
static double copies(const view *v, int i) {
    const int states = hp_optimizer_of(v->o->graph)->states;
    if (!trains(v)) return v->s->zero.stage < 3 ? 1 : 1.0 / holders(v, i);
    const int in_parts = v->s->zero.stage < 1 ? 0 : states + v->s->zero.stage - 1;
    return 2 + states - in_parts * (1 - 1.0 / holders(v, i));
}

/* Weights, gradients, states of a position, and with GEMS of the mirror image of its first rank. */
static double fixed_bytes(const view *v, int i) {
    double params = v->at[i].params, constants = v->at[i].infer.constants;
    if (v->s->gems > 1 && v->at[i].mirror != i) {
        params += v->at[v->at[i].mirror].params;
        constants += v->at[v->at[i].mirror].infer.constants;
    }
    if (v->o->graph->deployed) return constants;
    return params / v->s->cp * hp_dtype_bytes(v->o->dtype) * copies(v, i);
}

/* What is kept where layers run again: before the first backward pass the inputs of all micro-batches in
 * flight; later, while the largest group is run again, the inputs of the others. */
static double least_kept(const view *v, int i) {
    const position *p = &v->at[i];
    const double flight = hp_schedule_in_flight(v->s, i), entering = v->s->bp > 1 ? 0 : p->entering;
    if (v->s->chunks > 1) return p->group_kept;
    return fmax(flight * entering, (flight - 1) * entering + p->group_kept);
}

static double least_bytes(const view *v, int i) {
    const position *p = &v->at[i];
    if (!trains(v)) return fixed_bytes(v, i) + p->infer.live;
    if (v->s->recompute == HP_RECOMPUTE_NONE)
        return fixed_bytes(v, i) + hp_schedule_in_flight(v->s, i) * p->kept;
    return fixed_bytes(v, i) + least_kept(v, i);
}

static double likely_bytes(const view *v, int i) {
    static const double under_way =
        1.05;                        /* gradients and messages beside what is kept: seen on residual nets */
    static const double at_once = 3; /* such a map, its gradient, sums on their way: seen on transformers */
    const position *p = &v->at[i];
    const double flight = hp_schedule_in_flight(v->s, i), fixed = p->fullest.params * fixed_bytes(v, i);
    if (!trains(v)) return fixed + under_way * (p->fullest.maps * p->infer.live + p->infer.strip);
    const double kept = v->s->recompute == HP_RECOMPUTE_NONE
                            ? flight * p->fullest.maps * (p->kept + p->extended)
                            : flight * p->entering + p->fullest.maps * p->again_kept;
    const double packs =
        v->s->zero.stage < 3 && !v->o->eager ? p->packs : 0; /* zero=3: of a bucket at a time */
    return fixed + p->fullest.params * packs + under_way * kept + flight * p->scores + at_once * p->gathered;
}

static void find_memory(const view *v, hp_estimate *out) {
    for (int i = 0; i < v->n; i++) {
        const double least = least_bytes(v, i);
        out->likely_bytes = fmax(out->likely_bytes, likely_bytes(v, i));
        if (least <= out->memory_bytes) continue;
        out->memory_bytes = least;
        out->position = i;
    }
}

double hp_estimate_weights(const hp_estimate_setup *o, const hp_strategy *s) {
    const int copies = o->mode == HP_MODE_TRAIN ? 2 + hp_optimizer_of(o->graph)->states : 1;
    if (o->graph->deployed || s->zero.stage > 0 || s->sync.how != HP_SYNC_ALLREDUCE) return 0;
    const double ranks = (double)s->cp * s->bp * s->tp * hp_positions(s);
    return o->params / ranks * hp_dtype_bytes(o->dtype) * copies;
}

hp_estimate hp_estimate_of(const hp_estimate_setup *o, const hp_strategy *s, const int32_t *counts) {
    const hp_machine *m = o->machine;
    view v = {.o = o, .s = s, .one_node = m->nodes == 1 || hp_strategy_roles(s) <= m->devices_per_node};
    v.micro_batch = o->batch / ((int64_t)hp_strategy_replicas(s) * hp_strategy_groups(s));
    add_stages(&v, counts);
    const bool gems = s->gems > 1;
    hp_estimate out = {.bound_s = gems ? gems_s(&v, false) : pipeline_s(&v, false)};
    out.estimate_s =
        ((gems ? gems_s(&v, true) + refills_s(&v) : pipeline_s(&v, true)) + boundaries_s(&v)) * sharing(&v) +
        gradients_s(&v);
    out.bound_s = fmax(out.bound_s, device_s(&v));
    find_memory(&v, &out);
    return out;
}
