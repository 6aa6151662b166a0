/* network.c - NICs and leaf switches by number. */
#include "machines/network.h"

#include <math.h>
#include <string.h>

static int gcd(int a, int b) {
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int hp_network_sets(const hp_machine *m) {
    if (m->nic_use == HP_NICS_SHARED || m->nics_per_node < 1) return 1;
    return gcd(m->nics_per_node, m->devices_per_node);
}

double hp_network_nics(const hp_machine *m, int devices) {
    const int sets = hp_network_sets(m), nics = m->nics_per_node > 0 ? m->nics_per_node : 1;
    return (double)nics * (devices < sets ? devices : sets) / sets;
}

static int sets_on_leaf(const hp_machine *m) {
    return m->nic_use == HP_NICS_RAILS ? 1 : hp_network_sets(m);
}

double hp_network_leaf_links(const hp_machine *m) {
    const double nics = (double)(m->nics_per_node > 0 ? m->nics_per_node : 1) / hp_network_sets(m);
    return hp_network_leaf_nodes(m) * nics * sets_on_leaf(m) / hp_machine_taper(m);
}

int hp_network_leaf_at(const hp_machine *m, int device) {
    const int leaf = device / m->devices_per_node / hp_network_leaf_nodes(m);
    return m->nic_use == HP_NICS_RAILS ? leaf * hp_network_sets(m) + hp_network_set_at(m, device) : leaf;
}

unsigned hp_network_meet(const hp_machine *m, int a, int b) {
    const int under = m->devices_per_node * hp_network_leaf_nodes(m);
    return (hp_network_set_at(m, a) == hp_network_set_at(m, b) ? HP_NETWORK_RAIL : 0) |
           (a / under == b / under ? HP_NETWORK_LEAVES : 0);
}

/* Number of ports: Switch-IB 2 (SB7800, EDR) 36, Quantum (QM8700, HDR) 40, Quantum-2 (QM9700, NDR) 64:
 * NVIDIA's data sheets. */
static int ports_of(const char *link) {
    static const struct {
        const char *link;
        int ports;
    } known[] = {{"ib-edr", 36}, {"ib-hdr", 40}, {"ib-ndr", 64}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].link, link) == 0) return known[i].ports;
    return 40;
}

int hp_network_usual_leaf(const hp_machine *m) {
    const double taper = hp_machine_taper(m), down = ports_of(m->inter.name) * taper / (1 + taper),
                 each = (double)m->nics_per_node / hp_network_sets(m) * sets_on_leaf(m);
    return (int)fmax(1, floor(down / fmax(1, each)));
}
