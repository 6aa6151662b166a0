/* gpu_nccl.c - bandwidth and latency by algorithm and protocol. Times are in microseconds and rates in 10^9
 * bytes/s, as in NCCL's tuner. */
#include "costmodels/gpu/gpu_nccl.h"

#include <math.h>

enum { LL, LL128, SIMPLE, PROTOCOLS };

static const double tree_base[PROTOCOLS] = {6.8, 14.0, 8.4}, ring_base[PROTOCOLS] = {6.6, 14.0, 8.4};
/* Kinds of hop: over NVLink, over PCIe, over the network. */
enum { NVLINK, PCIE, NET, HOPS };
static const double tree_hop[HOPS][PROTOCOLS] = {{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14}},
                    ring_hop[HOPS][PROTOCOLS] = {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14}};

/* Per chip, for one, two and more nodes. */
static const double ll_most[HP_NCCL_CHIPS][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}},
                    tree_channel[HP_NCCL_CHIPS][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}};
static const double ll128_ring_channel[HP_NCCL_CHIPS] = {20, 20, 36.7},
                    ll128_tree_channel[HP_NCCL_CHIPS][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}};
static const double OVERHEAD = 1, CHANNEL = 12; /* overhead of a step on the host; a channel's share of a
                                                 * link */

/* Efficiency of a tree, indexed by log2 of the bytes / 64. */
enum { SIZES = 24 };
static const double tree_part[PROTOCOLS][SIZES] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

typedef struct shape {
    int nodes, of_nodes; /* of_nodes: index into tables by number of nodes */
    int ranks, per_node, near;
    double bus, channels;
} shape;

static shape shape_of(const hp_nccl_net *n) {
    const int per_node = n->per_node < n->ranks ? n->per_node : n->ranks;
    const int nodes = (n->ranks + per_node - 1) / per_node;
    double bus = n->intra_bytes_per_s * 1e-9;
    if (nodes > 1) bus = per_node > 1 ? fmin(bus, n->net_bytes_per_s * 1e-9) : n->net_bytes_per_s * 1e-9;
    return (shape){.nodes = nodes,
                   .of_nodes = nodes == 1   ? 0
                               : nodes == 2 ? 1
                                            : 2,
                   .ranks = n->ranks,
                   .per_node = per_node,
                   .near = n->nvlink ? NVLINK : PCIE,
                   .bus = bus,
                   .channels = fmax(2, bus / CHANNEL)};
}

/* --- ring --- */

static int steps_of(hp_nccl_what what, int ranks) {
    return what == HP_NCCL_ALLREDUCE ? 2 * (ranks - 1) : what == HP_NCCL_HALF ? ranks - 1 : ranks;
}

static double ring_rate(hp_nccl_what what, hp_nccl_chip chip, const shape *s, int protocol) {
    double rate = s->bus;
    if (protocol == LL) rate = fmin(ll_most[chip][s->of_nodes], 0.5 * s->bus);
    if (protocol == LL128) rate = fmin(0.92 * s->bus, s->channels * ll128_ring_channel[chip]);
    return rate * s->ranks / steps_of(what, s->ranks);
}

/* Across nodes, a ring's Simple messages pipeline less closely, unless they are tiny. */
static double plateau(hp_nccl_what what, hp_nccl_chip chip, const shape *s, int protocol, double bytes) {
    const bool any = what == HP_NCCL_ALLREDUCE && protocol == SIMPLE && s->nodes > 1;
    if (!any || bytes / (s->channels * s->ranks) < 64) return 1;
    return chip < HP_NCCL_AMPERE ? 1.9 : 1.4;
}

static double ring_latency(hp_nccl_what what, const shape *s, int protocol) {
    const double overhead = protocol == SIMPLE ? 3 * OVERHEAD : OVERHEAD,
                 inter = (s->per_node == 1 ? tree_hop : ring_hop)[NET][protocol];
    const int steps = steps_of(what, s->ranks), across = s->nodes == 1               ? 0
                                                         : what == HP_NCCL_ALLREDUCE ? 2 * (s->nodes - 1)
                                                                                     : s->nodes - 1;
    return ring_base[protocol] + (steps - across) * fmax(ring_hop[s->near][protocol], overhead) +
           across * inter;
}

/* --- tree: all-reduces --- */

static double tree_rate(hp_nccl_chip chip, const shape *s, int protocol, double bytes) {
    double rate = 0.85 * fmin(0.92 * s->bus, s->channels * tree_channel[chip][s->of_nodes]);
    if (protocol == LL) rate /= 3.8;
    if (protocol == LL128)
        rate = fmin(rate * (s->nodes == 1 ? 7.0 / 9 : 0.9375),
                    s->channels * ll128_tree_channel[chip][s->of_nodes]);
    const int size = bytes >= 64 ? (int)floor(log2(bytes / 64)) : -1;
    return rate / 2 * (size >= 0 && size < SIZES ? tree_part[protocol][size] : 1);
}

static double tree_latency(const shape *s, int protocol) {
    return tree_base[protocol] + 2 * ((s->per_node - 1) * tree_hop[s->near][protocol] +
                                      floor(log2(s->nodes)) * tree_hop[NET][protocol]);
}

/* --- sums in switches: all-reduces, only by protocol Simple, with more than two devices per node --- */

/* Number of channels as NCCL uses on eight H100s; rate of a channel and its efficiency; for the tree, the
 * maximum with two and with more nodes. */
static const double nvls_channels = 16, nvls_channel = 20, nvls_efficiency = 0.85,
                    nvls_tree_channel[] = {57.7, 45.5}, nvls_hop = 25, nvls_tree_net = 20.9;

static double nvls_rate(const hp_nccl_net *n, const shape *s) {
    const double one = fmin(nvls_channel, n->intra_bytes_per_s * 1e-9 / nvls_channels),
                 added = 2 * one * nvls_efficiency * (nvls_channels - 1) / nvls_channels;
    double bus = added * nvls_channels;
    if (s->nodes > 1) {
        const double across = n->net_bytes_per_s * 1e-9 * (s->nodes == 2 ? 2 : 1);
        bus = fmin(fmin(bus, across), nvls_tree_channel[s->nodes > 2] * nvls_channels);
    }
    return bus * s->ranks / steps_of(HP_NCCL_ALLREDUCE, s->ranks);
}

static double nvls_latency(const shape *s) {
    return nvls_hop + (s->nodes > 1 ? 2 * floor(log2(s->nodes)) * nvls_tree_net : 0);
}

/* --- sums in network switches: all-reduces across nodes, by protocol Simple --- */

/* A chain's hop over NVLink, and the path to the switches and back; efficiency of the NICs as in NCCL 2.12.
 * Each byte goes up and down once, both concurrently, while a ring sends it twice. Within the nodes, it
 * travels along one chain per NIC and back. */
static const double collnet_hop = 2.8, collnet_net = 30, collnet_efficiency = 0.9;

static double collnet_rate(const hp_nccl_net *n, const shape *s) {
    const double net = n->net_bytes_per_s * 1e-9, near = n->intra_bytes_per_s * 1e-9;
    return collnet_efficiency * (s->per_node > 1 ? fmin(net, near) : net);
}

static double collnet_latency(const shape *s) {
    return 2 * (s->per_node - 1) * collnet_hop + collnet_net;
}

/* --- all pairs: sends and receives --- */

/* Fill of a link before data flows: 128 KiB to the network, 512 KiB over NVLink; each peer also takes a
 * step's host time. */
static const double net_chunk_kb = 131.072, near_chunk_kb = 524.288;

/* Each of a node's g members sends S in total. g S (N-1)/N leave the node over its NICs; a member sends
 * (g-1)/p S within it. */
static double pairs_microseconds(const hp_nccl_net *n, const shape *s, double bytes) {
    const double net = n->net_bytes_per_s * 1e-9, near = n->intra_bytes_per_s * 1e-9, kb = bytes * 1e-3;
    const double across = s->per_node * kb * (s->nodes - 1) / s->nodes / net,
                 inside = kb * (s->per_node - 1) / s->ranks / near,
                 fill = s->nodes > 1 ? fmin(net_chunk_kb, kb / s->ranks) * s->per_node / net
                                     : fmin(near_chunk_kb, kb / s->ranks) / near;
    const double hop = s->nodes > 1 ? ring_hop[NET][SIMPLE] : ring_hop[s->near][SIMPLE];
    return ring_base[SIMPLE] + hop + (s->ranks - 1) * OVERHEAD + fill + fmax(across, inside);
}

/* --- the choice --- */

static double microseconds(hp_nccl_way way, int protocol, hp_nccl_what what, const hp_nccl_net *n,
                           const shape *s, double bytes) {
    const double kb = bytes * 1e-3;
    if (way == HP_NCCL_RING)
        return plateau(what, n->chip, s, protocol, bytes) * ring_latency(what, s, protocol) +
               kb / ring_rate(what, n->chip, s, protocol);
    if (way == HP_NCCL_TREE) return tree_latency(s, protocol) + kb / tree_rate(n->chip, s, protocol, bytes);
    if (way == HP_NCCL_COLLNET) return collnet_latency(s) + kb / collnet_rate(n, s);
    if (way == HP_NCCL_PAIRS) return pairs_microseconds(n, s, bytes);
    return nvls_latency(s) + kb / nvls_rate(n, s);
}

static bool offered(hp_nccl_way way, int protocol, hp_nccl_what what, const hp_nccl_net *n, const shape *s) {
    if (what == HP_NCCL_ALL_TO_ALL || way == HP_NCCL_PAIRS)
        return what == HP_NCCL_ALL_TO_ALL && way == HP_NCCL_PAIRS && protocol == SIMPLE;
    if (way == HP_NCCL_RING) return true;
    if (what != HP_NCCL_ALLREDUCE) return false;
    if (way == HP_NCCL_TREE) return s->nodes > 1;
    if (way == HP_NCCL_COLLNET) return protocol == SIMPLE && n->sharp && s->nodes > 1;
    return protocol == SIMPLE && n->nvswitch && n->chip == HP_NCCL_HOPPER && s->per_node > 2 &&
           (way == HP_NCCL_NVLS) == (s->nodes == 1);
}

hp_nccl_choice hp_nccl_choose(hp_nccl_what what, const hp_nccl_net *n, double bytes) {
    const shape s = shape_of(n);
    hp_nccl_choice best = {INFINITY, HP_NCCL_RING, 0};
    for (int p = 0; p < PROTOCOLS; p++)
        for (hp_nccl_way way = 0; way < HP_NCCL_WAYS; way++) {
            if (!offered(way, p, what, n, &s)) continue;
            const double us = microseconds(way, p, what, n, &s, bytes);
            if (us * 1e-6 < best.seconds) best = (hp_nccl_choice){us * 1e-6, way, p};
        }
    return best;
}
