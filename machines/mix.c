/* mix.c - class and speed of each device. */
#include "machines/machine.h"

static const hp_node_kind *kind_of(const hp_machine *m, int node) {
    const hp_node_kind *k = m->mix.kind;
    while (k + 1 < m->mix.kind + m->mix.n_kind && node >= k->nodes) node -= k++->nodes;
    return k;
}

int hp_machine_class_at(const hp_machine *m, int device) {
    if (m->mix.n_class == 0) return 0;
    const hp_node_kind *k = kind_of(m, device / m->devices_per_node);
    int at = device % m->devices_per_node, p = 0;
    while (p + 1 < k->n_part && at >= k->part[p].count) at -= k->part[p++].count;
    return k->part[p].class;
}

/* A statement about a single device takes precedence over one about its node. */
double hp_machine_speed_at(const hp_machine *m, int device) {
    const int node = device / m->devices_per_node, at = device % m->devices_per_node;
    double speed = 1;
    for (int i = 0; i < m->mix.n_slow; i++) {
        const hp_slow_place *s = &m->mix.slow[i];
        if (s->node == node && s->device == at) return s->speed;
        if (s->node == node && s->device < 0) speed = s->speed;
    }
    return speed;
}

hp_machine hp_machine_of_class(const hp_machine *m, int class) {
    hp_machine one = *m;
    one.device = *hp_machine_class(m, class);
    one.mix = (hp_mix){0};
    return one;
}
