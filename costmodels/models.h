/* models.h - the cost formulas used by the tables: pure functions of values. */
#ifndef HP_MODELS_H
#define HP_MODELS_H

#include "costmodels/cost_rows.h"
#include "plan/program/work.h"

/* --- compute_roofline.c: launch + max(flops / peak, bytes / bandwidth) (Williams et al., CACM 2009) */

/* Cost of a task `octaves` outside the sizes of its measurement. `empty` is the cost of a table without
 * measurements. The interval grows with the distance. From HP_FAR_OCTAVES on, it contains `empty`'s figure,
 * the figure is shrunk towards `empty` by the distance's share of the variance, and the source is a guess.
 * Never less than least_s. */
hp_cost hp_cost_outside(hp_cost measured, hp_cost empty, double least_s, double octaves);

/* --- comm_collective.c: steps of collectives; alpha: one message's latency, beta: s/B on the wire, gamma:
 * s/B of adding. p ranks, S bytes. */
typedef struct hp_alpha_beta {
    double alpha_s, beta_s_per_byte, gamma_s_per_byte;
} hp_alpha_beta;
typedef struct hp_two_lines {
    hp_alpha_beta intra, inter; /* messages within a node and between nodes */
} hp_two_lines;
/* What members share between nodes: the NICs of a node that they reach; a leaf switch's uplinks in units of
 * NICs (0: as many as downlinks), and its number of nodes. */
typedef struct hp_uplinks {
    double nics, leaf_links;
    int leaf_nodes;
} hp_uplinks;
/* Time of an algorithm's steps. An all-reduce by ring on one node takes 2(p-1)a + 2(p-1)/p Sb + (p-1)/p
 * Sg. */
double hp_collective_seconds(hp_algorithm a, const hp_collective_case *c, const hp_two_lines *l,
                             const hp_uplinks *up, double bytes);

/* --- comm_rows.c: what was measured of a collective */
typedef struct hp_collective_rows {
    const hp_row *row[2]; /* rows with `ranks` ranks each; identical if one has exactly the wanted number */
    int32_t ranks[2];
    double weight;  /* weight of the second; the first has the rest */
    double stretch; /* bytes over the rows' link that take as long as one byte here */
    bool borrowed;  /* taken from another class of link */
} hp_collective_rows;
/* Returns false if no such collective was measured. */
bool hp_collective_rows_find(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                             hp_collective_rows *out);
/* Do hplan's own steps run over it? */
bool hp_wire_has_steps(hp_wire by);

/* --- comm_library.c: the best that a library could do */
double hp_library_seconds(const hp_collective_case *c, const hp_two_lines *l, const hp_uplinks *up,
                          double bytes);
/* 2 log2 p a + 2(p-1)/p Sb + (p-1)/p Sg (Rabenseifner 2004) */
double hp_library_rabenseifner(const hp_alpha_beta *l, int p, double bytes);
/* reduce-scatter in the node, all-reduce of 1/g over the nodes with k NICs for g devices, all-gather in the
 * node */
double hp_library_hierarchical(const hp_two_lines *l, int ranks, int per_node, const hp_uplinks *up,
                               double bytes);

/* --- comm_mpi.c: MPI libraries that take GPU memory */
/* The regime of a message of this size by the machine's MPI; NULL if the machine names no MPI that has
 * rows. */
const hp_row *hp_mpi_regime(const hp_cost_table *t, const hp_machine *m, bool same_node, double bytes);
/* Seconds of a message in this regime over a link of this rate: latency + first block / copies + bytes /
 * slowest. */
double hp_mpi_message_seconds(const hp_row *regime, double link_bytes_per_s, double bytes);

/* How a collective goes through host memory; NULL: it does not. */
const hp_row *hp_mpi_stage(const hp_cost_table *t, const hp_machine *m, hp_collective what, double bytes);

/* Open MPI's all-reduce of host memory (coll/tuned): one of these, or a reduction followed by a broadcast. */
typedef struct hp_mpi_algorithm {
    hp_algorithm algorithm;
    bool two_trees; /* binomial trees: a reduction, then a broadcast */
} hp_mpi_algorithm;
hp_mpi_algorithm hp_mpi_tuned_allreduce(int ranks, double bytes);

/* --- compute_fallback.c: keys of similar tasks for an inference task. fallback 0: the same task in float32;
 * 1: training's forward task. False: there is none. */
enum { HP_FALLBACKS = 2 };
bool hp_work_fallback(const hp_work *w, int fallback, hp_work *out);

/* The kernel of a layer that quantises its input at run time, without the preceding passes; false: the layer
 * does not. */
bool hp_work_kernel(const hp_work *w, hp_work *kernel);

/* --- comm_p2p.c: what a back end adds to a link; with `message`, to one message. NULL: no particular back
 * end. */
const hp_row *hp_comm_path(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node,
                           bool message);
/* Rate in bytes/s of the link on which the class's rows were measured. */
double hp_link_rate(const hp_cost_table *t, const hp_link_class *link);
/* Largest rate that it carries. */
double hp_link_effective(const hp_cost_table *t, const hp_link_class *link);
/* hp_cost_p2p on the quiet machine. */
hp_cost hp_quiet_p2p(const hp_cost_table *t, const hp_machine *m, hp_wire by, bool same_node, double bytes);

/* --- kernels/library.c: products and attention by a library's kernels on a GPU */
typedef struct hp_library_kernel {
    const hp_row *row; /* tile or attend */
    double units;      /* multiprocessors */
    double peak;       /* flop/s of the device in the type that is multiplied */
} hp_library_kernel;
/* Finds the kernel of the work, whose elements have that type; false if none is known. */
bool hp_library_kernel_find(const hp_cost_table *t, const hp_machine *m, const hp_work *w, const char *type,
                            double peak, hp_library_kernel *k);
/* Duration of the kernel. `efficiency` replaces the kernel's own fractions of the device's rates; NULL: its
 * own. */
double hp_library_kernel_seconds(const hp_library_kernel *k, const hp_machine *m, const hp_work *w,
                                 const hp_row *efficiency);
/* Fraction of the multiprocessors busy after the launch, which takes launch_s. */
double hp_library_kernel_busy(const hp_library_kernel *k, const hp_work *w, double *launch_s);

/* The cost `seconds` with the row's interval. */
hp_cost hp_cost_of_row(const hp_row *row, double seconds);

#endif
