/* comm_collective.c - cost of collectives. Takes the measured line of (link, operation, back end, algorithm,
 * ranks, ranks per node; comm_rows.c). Without one, prices the steps of the plan's algorithm
 * (plan/collectives/collective.h) or, for a library, the best that any algorithm could do (comm_library.c).
 * Adds the back end's fixed costs: a launch, and copies of the buffers to the host and back (Open MPI's
 * coll/accelerator). */
#include "costmodels/gpu/gpu_nccl.h"
#include "costmodels/cost_line.h"
#include "costmodels/models.h"
#include "costmodels/cost_speed.h"
#include "machines/network.h"

#include <math.h>
#include <string.h>

/* A server core of the 2020s (machines/machine_local.c), which adds the data that arrives on the host. */
#define HOST_CORE_BYTES_PER_S 10e9

/* --- steps --- */

/* Fraction of the bytes on the longest path that takes extra time. Slices of the data pipeline through the
 * steps: each slice after the first takes as long as the busiest member needs for it. */
static double not_overlapped(hp_algorithm a, const hp_collective_case *c, const hp_collective_load *load,
                             double bytes) {
    const double sent = load->inside.sent + load->across.sent;
    if (sent <= load->busy) return 1;
    const hp_collective_data data = {.count = (int64_t)bytes, .elem_bytes = 1};
    const int lanes = hp_collective_plan_of(a, c, 0, &data).lanes;
    return lanes > 1 ? (load->busy + (sent - load->busy) / lanes) / sent : 1;
}

static double part_seconds(const hp_alpha_beta *l, const hp_collective_part *part, double bytes) {
    return part->rounds * l->alpha_s + part->sent * bytes * l->beta_s_per_byte;
}

/* Number of messages that leave a leaf switch at once: as many as would leave a single node with all the
 * switch's devices. */
static int crossing_leaves(hp_algorithm a, const hp_collective_case *c, const hp_uplinks *up) {
    hp_collective_case wide = *c;
    const int64_t under = (int64_t)c->per_node * up->leaf_nodes;
    if (under >= c->size) return 0;
    wide.per_node = (int32_t)under;
    return hp_algorithm_load(a, &wide).crossing;
}

/* Line of a step across nodes. Members of a node that send at once share its NICs and the links between leaf
 * switches. The step takes at least as long as its messages within a node. */
static hp_alpha_beta line_across(hp_algorithm a, const hp_collective_case *c, const hp_two_lines *l,
                                 int crossing, const hp_uplinks *up) {
    hp_alpha_beta across = l->inter;
    double share = up->nics > 0 ? fmax(1, crossing / up->nics) : 1;
    if (up->leaf_links > 0 && crossing > 0) share = fmax(share, crossing_leaves(a, c, up) / up->leaf_links);
    across.beta_s_per_byte *= share;
    if (c->per_node > 1) across.beta_s_per_byte = fmax(across.beta_s_per_byte, l->intra.beta_s_per_byte);
    return across;
}

double hp_collective_seconds(hp_algorithm a, const hp_collective_case *c, const hp_two_lines *l,
                             const hp_uplinks *up, double bytes) {
    const hp_collective_load load = hp_algorithm_load(a, c);
    const double moved = bytes * not_overlapped(a, c, &load, bytes);
    const bool one_node = c->per_node >= c->size;
    const hp_alpha_beta across = line_across(a, c, l, load.crossing, up);
    const double gamma = one_node ? l->intra.gamma_s_per_byte : l->inter.gamma_s_per_byte;
    return part_seconds(&l->intra, &load.inside, moved) + part_seconds(&across, &load.across, moved) +
           load.added * bytes * gamma;
}

/* --- back ends --- */

/* How a back end moves data between ranks of a node, or between nodes: the time before and after the whole
 * operation, and its messages around `bytes` as latency and rate. */
typedef struct transport {
    double once_s, copies_s_per_byte;
    hp_alpha_beta line;
} transport;

/* Through the host's memory. */
static transport transport_by_host(const hp_row *path, double copies) {
    const hp_alpha_beta line = {path->y[HP_PATH_HOP], 1 / path->y[HP_PATH_HOST], 3 / HOST_CORE_BYTES_PER_S};
    return (transport){path->y[HP_PATH_LATENCY], copies, line};
}

/* Do messages of GPU memory follow the rules of the machine's MPI? */
static bool has_regimes(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node) {
    return !m->device.is_cpu && (by == HP_WIRE_MPI || by == HP_WIRE_OWN) &&
           hp_mpi_regime(t, m, same_node, 0) != NULL;
}

/* A measured message's latency includes the launch, but a collective is launched once. */
static transport transport_of(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node,
                              double bytes) {
    const bool direct = has_regimes(t, m, by, same_node);
    const hp_row *path = direct ? NULL : hp_comm_path(t, m, by, same_node, false);
    const double once = path ? path->y[HP_PATH_LATENCY] : 0,
                 copies = path && path->y[HP_PATH_COPIES] > 0 ? 1 / path->y[HP_PATH_COPIES] : 0;
    if (path && same_node && path->y[HP_PATH_HOST] > 0) return transport_by_host(path, copies);
    /* copies happen once, around it; its messages are those of the link */
    const hp_wire wire = copies > 0 ? HP_WIRE_ANY : by;
    const double launch = copies > 0 ? 0 : once;
    const double small = hp_quiet_p2p(t, m, wire, same_node, 0).seconds,
                 whole = hp_quiet_p2p(t, m, wire, same_node, bytes).seconds;
    /* adding streams two operands in and one out */
    const double gamma = 3 / (copies > 0 ? HOST_CORE_BYTES_PER_S : m->device.bytes_per_s);
    const double beta = bytes > 0 ? fmax(0, whole - small) / bytes : 0;
    return (transport){once, copies, {fmax(0, small - launch), beta, gamma}};
}

/* Fraction of the whole data that a rank holds before or after it. */
static double part_held(hp_blocks_of blocks, int ranks) {
    return blocks == HP_BLOCKS_OWN ? 1.0 / ranks : 1;
}

/* Bytes copied to the host and back, relative to copying the whole data both ways. */
static double copied(const hp_collective_call *c) {
    const hp_collective_info *i = &hp_collective_infos[c->what];
    return (part_held(i->begins, c->ranks) + part_held(i->ends, c->ranks)) / 2;
}

/* hplan's own steps run the plan's algorithm, and so do processors if no back end is specified. A library
 * chooses its own algorithm. */
static hp_algorithm algorithm_of(const hp_machine *m, const hp_collective_call *c,
                                 const hp_collective_case *k, double bytes) {
    if (c->by == HP_WIRE_ANY && m->device.is_cpu) return c->algorithm;
    if (!hp_wire_has_steps(c->by)) return HP_ALGORITHM_LIBRARY;
    return c->algorithm ? c->algorithm : hp_algorithm_choose(k, (int64_t)bytes, true);
}

/* --- NCCL --- */

static bool is_hopper(const char *class) {
    static const char *const classes[] = {"h100", "h100-pcie", "h100-nvl", "h200", "b200"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i], class) == 0) return true;
    return false;
}

/* Blackwell is priced as Hopper. A GPU of no data sheet is of the generation that it is like. */
static hp_nccl_chip chip_of(const hp_device_class *d) {
    return is_hopper(d->name) || is_hopper(d->like) ? HP_NCCL_HOPPER
           : d->tf32_flops_per_s > 0                ? HP_NCCL_AMPERE
                                                    : HP_NCCL_VOLTA;
}

/* Maps the collectives that its tuner knows; false for others. */
static bool tuned(hp_collective what, hp_nccl_what *out) {
    static const struct {
        hp_collective what;
        hp_nccl_what nccl;
    } rows[] = {{HP_COLLECTIVE_ALLREDUCE, HP_NCCL_ALLREDUCE}, {HP_COLLECTIVE_ALL_GATHER, HP_NCCL_HALF},
                {HP_COLLECTIVE_REDUCE_SCATTER, HP_NCCL_HALF}, {HP_COLLECTIVE_BROADCAST, HP_NCCL_ROOTED},
                {HP_COLLECTIVE_REDUCE, HP_NCCL_ROOTED},       {HP_COLLECTIVE_ALL_TO_ALL, HP_NCCL_ALL_TO_ALL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].what == what) return *out = rows[i].nccl, true;
    return false;
}

static hp_uplinks uplinks_of(const hp_machine *m, int per_node) {
    if (m->nics_per_node <= 0) return (hp_uplinks){.leaf_nodes = 1};
    return (hp_uplinks){.nics = hp_network_nics(m, per_node),
                        .leaf_links = hp_machine_taper(m) > 1 ? hp_network_leaf_links(m) : 0,
                        .leaf_nodes = hp_network_leaf_nodes(m)};
}

/* Number of a node's NICs that NCCL's rings and trees can use. They go from node to node, so only one node's
 * traffic leaves a leaf switch. */
static double open_nics(const hp_uplinks *up) {
    const double nics = up->nics > 0 ? up->nics : 1;
    return up->leaf_links > 0 ? fmin(nics, up->leaf_links) : nics;
}

/* The same if all nodes of a leaf switch send to others. */
static double all_nics(const hp_uplinks *up) {
    const double nics = up->nics > 0 ? up->nics : 1;
    return up->leaf_links > 0 ? fmin(nics, up->leaf_links / up->leaf_nodes) : nics;
}

/* NCCL's tuner model, for machines of GPUs. There, messages model every other back end. */
static bool by_nccl(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c, double bytes,
                    double *seconds) {
    hp_nccl_what what;
    if (c->by != HP_WIRE_NCCL || m->device.is_cpu || !tuned(c->what, &what)) return false;
    const hp_uplinks up = uplinks_of(m, c->per_node);
    const double nics = c->what == HP_COLLECTIVE_ALL_TO_ALL ? all_nics(&up) : open_nics(&up);
    const hp_nccl_net net = {.ranks = c->ranks,
                             .per_node = c->per_node,
                             .chip = chip_of(&m->device),
                             .nvlink = hp_link_is_nvlink(&m->intra),
                             .sharp = m->sharp,
                             .nvswitch = strncmp(m->intra.name, "nvswitch", 8) == 0 &&
                                         c->algorithm != HP_ALGORITHM_RING,
                             .intra_bytes_per_s = hp_link_effective(t, &m->intra),
                             .net_bytes_per_s = hp_link_effective(t, &m->inter) * nics};
    *seconds = hp_nccl_choose(what, &net, bytes).seconds;
    return true;
}

/* --- Open MPI's staging --- */

static double staged_steps(const hp_collective_case *k, const hp_two_lines *l, const hp_uplinks *up,
                           double bytes) {
    if (k->what != HP_COLLECTIVE_ALLREDUCE) return hp_library_seconds(k, l, up, bytes);
    const hp_mpi_algorithm a = hp_mpi_tuned_allreduce(k->size, bytes);
    if (!a.two_trees) return hp_collective_seconds(a.algorithm, k, l, up, bytes);
    hp_collective_case half = *k;
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        half.what = i ? HP_COLLECTIVE_BROADCAST : HP_COLLECTIVE_REDUCE;
        seconds += hp_collective_seconds(a.algorithm, &half, l, up, bytes);
    }
    return seconds;
}

/* Copies to host memory, runs there as between processors, and copies back. */
static double staged(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                     const hp_collective_case *k, const hp_row *stage, double bytes) {
    const hp_row *path = hp_comm_path(t, m, HP_WIRE_MPI, true, false);
    const transport near = transport_by_host(path, 0), far = transport_of(t, m, HP_WIRE_ANY, false, bytes);
    hp_two_lines lines = {near.line, far.line};
    lines.inter.gamma_s_per_byte = near.line.gamma_s_per_byte;
    const hp_uplinks up = uplinks_of(m, k->per_node);
    const hp_collective_info *i = &hp_collective_infos[c->what];
    return stage->y[HP_STAGE_LATENCY] + bytes * part_held(i->begins, c->ranks) / stage->y[HP_STAGE_OUT] +
           bytes * part_held(i->ends, c->ranks) / stage->y[HP_STAGE_BACK] +
           staged_steps(k, &lines, &up, bytes);
}

/* From messages alone. */
static double modelled(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                       double bytes) {
    double seconds;
    if (by_nccl(t, m, c, bytes, &seconds)) return seconds;
    const hp_collective_case k = {
        .what = c->what, .size = c->ranks, .per_node = c->per_node < c->ranks ? c->per_node : c->ranks};
    const hp_row *stage =
        c->by == HP_WIRE_MPI && !m->device.is_cpu ? hp_mpi_stage(t, m, c->what, bytes) : NULL;
    if (stage) return staged(t, m, c, &k, stage, bytes);
    const transport intra = transport_of(t, m, c->by, true, bytes),
                    inter = transport_of(t, m, c->by, false, bytes);
    const transport *outer = c->per_node >= c->ranks ? &intra : &inter;
    const hp_two_lines lines = {intra.line, inter.line};
    const hp_uplinks up = uplinks_of(m, k.per_node);
    const hp_algorithm a = algorithm_of(m, c, &k, bytes);
    const double steps = a == HP_ALGORITHM_LIBRARY ? hp_library_seconds(&k, &lines, &up, bytes)
                                                   : hp_collective_seconds(a, &k, &lines, &up, bytes);
    return outer->once_s + bytes * copied(c) * outer->copies_s_per_byte + steps;
}

/* How much longer it takes here than over the measured links, according to the model. Messages also cost time
 * beyond the wire. */
static double slower(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c, double bytes) {
    hp_machine measured = *m;
    measured.inter.bytes_per_s = hp_link_rate(t, &m->inter);
    if (c->per_node >= c->ranks || fabs(measured.inter.bytes_per_s / m->inter.bytes_per_s - 1) < 1e-9)
        return 1;
    return modelled(t, m, c, bytes) / modelled(t, &measured, c, bytes);
}

/* Beyond the measured sizes, adds the model's increment: few sizes were measured, and far apart. */
static double from_row(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                       const hp_row *row, double stretch, double bytes) {
    const double last = row->x[row->n - 1] / stretch;
    if (bytes <= last) return slower(t, m, c, bytes) * hp_line_at(row->x, row->y, row->n, bytes * stretch);
    return slower(t, m, c, last) * row->y[row->n - 1] +
           fmax(0, modelled(t, m, c, bytes) - modelled(t, m, c, last));
}

/* Mean error of another link's rows, over GPUs left out in turn (tests/accuracy/collectives.py): between
 * NVLinks, and over PCIe, where the host matters more. */
#define OF_ANOTHER_NVLINK 0.16
#define OF_ANOTHER_PCIE   0.56

static hp_cost from_rows(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                         const hp_collective_rows *r, double bytes) {
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        hp_collective_call of = *c;
        const double weight = i ? r->weight : 1 - r->weight;
        if (weight <= 0) continue;
        if (of.by == HP_WIRE_ANY && !m->device.is_cpu) of.by = HP_WIRE_NCCL; /* NCCL's rows stand for any */
        if (r->ranks[i] != c->ranks) of.ranks = of.per_node = r->ranks[i];
        seconds += weight * from_row(t, m, &of, r->row[i], r->stretch, bytes);
    }
    hp_cost cost = hp_cost_of_row(r->row[0], seconds);
    if (!r->borrowed) return cost;
    const double off = hp_link_is_nvlink(&m->intra) ? OF_ANOTHER_NVLINK : OF_ANOTHER_PCIE;
    cost.low = fmax(0, cost.low - off * seconds);
    cost.high += off * seconds;
    cost.source = HP_SOURCE_GUESS;
    return cost;
}

static hp_cost when_quiet(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                          double bytes) {
    hp_collective_rows rows;
    if (c->ranks <= 1) return (hp_cost){0, 0, 0, HP_SOURCE_MEASURED};
    if (hp_collective_rows_find(t, m, c, &rows)) return from_rows(t, m, c, &rows, bytes);
    const double seconds = modelled(t, m, c, bytes);
    const hp_cost message = hp_quiet_p2p(t, m, c->by, c->per_node >= c->ranks, bytes);
    const double spread = message.seconds > 0 ? (message.high - message.seconds) / message.seconds : 0;
    return (hp_cost){seconds, seconds * (1 - spread), seconds * (1 + spread),
                     message.source == HP_SOURCE_MEASURED ? HP_SOURCE_GUESS : message.source};
}

hp_cost hp_cost_collective(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                           double bytes) {
    const double slowdown = c->per_node >= c->ranks ? hp_speed_of_copy(&t->speed, m, bytes) : 1;
    return hp_cost_times(when_quiet(t, m, c, bytes), slowdown);
}
