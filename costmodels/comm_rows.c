/* comm_rows.c - rows of collectives: their keys ("allreduce own.ring r8 n4"), and the choice of the rows that
 * apply. Prefers exactly the given ranks, then interpolates between fewer and more. Prefers the link measured
 * here, then this GPU on another host, then this link anywhere, then the link of its kind with the nearest
 * rate.
 *
 * Published rows are converted to another rate by bandwidth alone: S bytes over a link of rate r' take as
 * long as S r'/r bytes over the published link of rate r. Latency and the size at which NCCL changes
 * protocols then stay the same, and everything that depends on bytes is scaled (tests/accuracy/collectives.py
 * compares each GPU's rows with those of the others). */
#include "costmodels/models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- keys --- */

const char *hp_collective_key(const hp_collective_call *c, char out[HP_COLLECTIVE_KEY]) {
    const char *by = c->by ? hp_backend_names[c->by - 1] : "", *dot = "", *algorithm = "";
    if (c->by && c->algorithm) dot = ".", algorithm = hp_algorithms[c->algorithm]->name;
    snprintf(out, HP_COLLECTIVE_KEY, "%s%s%s%s%s r%d n%d", hp_collective_infos[c->what].name,
             c->by ? " " : "", by, dot, algorithm, c->ranks, c->per_node);
    return out;
}

static bool find_backend(const char *word, hp_wire *by) {
    for (int b = 0; b < (int)HP_BACKENDS; b++)
        if (strcmp(hp_backend_names[b], word) == 0) return *by = (hp_wire)(1 + b), true;
    return false;
}

/* "own.ring" */
static bool find_way(char *word, hp_collective_call *c) {
    char *dot = strchr(word, '.');
    if (dot) *dot++ = 0;
    const int algorithm = dot ? hp_algorithm_find(dot) : (int)HP_ALGORITHM_LIBRARY;
    c->algorithm = (hp_algorithm)(algorithm < 0 ? 0 : algorithm);
    return (!dot || algorithm > (int)HP_ALGORITHM_LIBRARY) && find_backend(word, &c->by);
}

bool hp_collective_of_key(const char *key, hp_collective_call *c) {
    char op[24], way[40], again[HP_COLLECTIVE_KEY];
    *c = (hp_collective_call){.by = HP_WIRE_ANY};
    const bool open = sscanf(key, "%23s r%d n%d", op, &c->ranks, &c->per_node) == 3;
    if (!open && sscanf(key, "%23s %39s r%d n%d", op, way, &c->ranks, &c->per_node) != 4) return false;
    const int what = hp_collective_find(op);
    if (what < 0 || c->ranks < 1 || c->per_node < 1 || (!open && !find_way(way, c))) return false;
    c->what = (hp_collective)what;
    return strcmp(hp_collective_key(c, again), key) == 0;
}

/* --- rows --- */

/* Do hplan's own steps run over it? */
bool hp_wire_has_steps(hp_wire by) {
    return by == HP_WIRE_OWN || by == HP_WIRE_SHM;
}

/* Falls back to a related row: the library's own choice; published NCCL figures if no back end is
 * specified. */
static bool next_best(hp_collective_call *c) {
    if (c->by == HP_WIRE_ANY) return c->by = HP_WIRE_NCCL, true;
    if (hp_wire_has_steps(c->by) || c->algorithm == HP_ALGORITHM_LIBRARY) return false;
    return c->algorithm = HP_ALGORITHM_LIBRARY, true;
}

static const hp_row *find_row(const hp_cost_table *t, const char *class, hp_collective_call c) {
    char key[HP_COLLECTIVE_KEY];
    const hp_row *row;
    do {
        row = hp_rows_find(t, HP_ROW_COLLECTIVE, class, hp_collective_key(&c, key));
    } while (!row && next_best(&c));
    return row;
}

/* The row for `ranks` ranks on one node. */
static const hp_row *find_row_of(const hp_cost_table *t, const char *class, hp_collective_call c, int ranks) {
    c.ranks = c.per_node = ranks;
    return find_row(t, class, c);
}

/* --- numbers of ranks --- */

/* Single node: finds the rows with fewer and with more ranks, each within a factor of two. */
static bool find_between(const hp_cost_table *t, const char *class, const hp_collective_call *c,
                         hp_collective_rows *out) {
    int few = c->ranks - 1, many = c->ranks + 1;
    while (few >= 2 && 2 * few >= c->ranks && !(out->row[0] = find_row_of(t, class, *c, few))) few--;
    while (many <= 2 * c->ranks && !(out->row[1] = find_row_of(t, class, *c, many))) many++;
    if (!out->row[0] || !out->row[1]) return false;
    out->ranks[0] = few;
    out->ranks[1] = many;
    out->weight = (double)(c->ranks - few) / (many - few);
    return true;
}

static bool find_in_class(const hp_cost_table *t, const char *class, const hp_collective_call *c,
                          hp_collective_rows *out) {
    const hp_row *row = find_row(t, class, *c);
    *out = (hp_collective_rows){.row = {row, row}, .ranks = {c->ranks, c->ranks}, .stretch = 1};
    return row || (c->per_node >= c->ranks && find_between(t, class, c, out));
}

/* --- links --- */

/* Published rows within a node: their class (a link or a device) and the link. PCIe boards differ more by
 * host than by link, so a device's rows apply to that device alone. */
static const struct {
    const char *class, *link;
    bool lends;
} published[] = {{"nvswitch", "nvswitch", true},
                 {"nvswitch-h", "nvswitch-h", true},
                 {"b200", "nvswitch-b", true},
                 {"pcie5", "pcie5", true},
                 {"l40s", "pcie4", false}};
enum { N_PUBLISHED = sizeof published / sizeof *published };

static bool is_pcie(const hp_link_class *l) {
    return strncmp(l->name, "pcie", 4) == 0;
}

static bool alike(const hp_link_class *a, const hp_link_class *b) {
    return (hp_link_is_nvlink(a) && hp_link_is_nvlink(b)) || (is_pcie(a) && is_pcie(b));
}

static double apart(const hp_link_class *a, const hp_link_class *b) {
    return fabs(log(a->bytes_per_s / b->bytes_per_s));
}

static bool find_device(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                        hp_collective_rows *out) {
    for (int i = 0; i < N_PUBLISHED; i++)
        if (strcmp(published[i].class, m->device.name) == 0 &&
            alike(hp_link_class_find(published[i].link), &m->intra))
            return find_in_class(t, published[i].class, c, out);
    return false;
}

static bool find_kin(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                     hp_collective_rows *out) {
    const hp_link_class *best = NULL;
    int from = 0;
    for (int i = 0; i < N_PUBLISHED; i++) {
        const hp_link_class *link = hp_link_class_find(published[i].link);
        if (!published[i].lends || !alike(link, &m->intra)) continue;
        if (best && apart(link, &m->intra) >= apart(best, &m->intra)) continue;
        best = link;
        from = i;
    }
    if (!best || !find_in_class(t, published[from].class, c, out)) return false;
    out->stretch = best->bytes_per_s / m->intra.bytes_per_s;
    out->borrowed = strcmp(best->name, m->intra.name) != 0;
    return true;
}

/* Rows measured elsewhere are for NCCL between GPUs. */
static bool find_published(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                           hp_collective_rows *out) {
    if (m->device.is_cpu || c->per_node < c->ranks) return false;
    return find_device(t, m, c, out) || find_kin(t, m, c, out);
}

bool hp_collective_rows_find(const hp_cost_table *t, const hp_machine *m, const hp_collective_call *c,
                             hp_collective_rows *out) {
    const char *link = c->per_node >= c->ranks ? m->intra.name : m->inter.name;
    const bool here = find_in_class(t, link, c, out);
    if (here && out->row[0]->source == HP_SOURCE_MEASURED) return true;
    if (c->by != HP_WIRE_NCCL) return here;
    const hp_collective_rows of_link = *out;
    if (find_published(t, m, c, out)) return true;
    *out = of_link;
    return here;
}
