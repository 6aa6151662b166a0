/* moves.c - random configurations and neighbouring ones. */
#include "sim/balance/methods.h"

#include "base/rng.h"

double balance_draw(const hp_balance_run *r, uint64_t stream, uint64_t k) {
    return hp_rng_uniform(r->seed, stream, k);
}

void balance_random(const hp_balance_run *r, uint64_t k, hp_balance *b) {
    const int places = hp_chain_places(r->chain), units = r->chain->n_unit;
    int32_t order[HP_BALANCE_PLACES] = {0};
    b->n_stage = places < units ? places : units;
    for (int i = 0; i < places; i++) order[i] = i;
    for (int i = places - 1; i > 0; i--) { /* Fisher and Yates */
        const int j = (int)((i + 1) * balance_draw(r, 1, k * HP_BALANCE_PLACES + (uint64_t)i));
        const int32_t was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
    for (int s = 0; s < b->n_stage; s++) {
        b->units[s] = 1;
        b->place[s] = order[s];
    }
    for (int u = b->n_stage; u < units; u++)
        b->units[(int)(b->n_stage * balance_draw(r, 2, k * HP_BALANCE_UNITS + (uint64_t)u))]++;
}

bool balance_shift(hp_balance *b, int from, int to) {
    if (from == to || b->units[from] < 2) return false;
    b->units[from]--;
    b->units[to]++;
    return true;
}

static int empty_places(const hp_chain *c, const hp_balance *b) {
    return hp_chain_places(c) - b->n_stage;
}

static int32_t empty_place(const hp_chain *c, const hp_balance *b, int which) {
    for (int32_t p = 0; p < hp_chain_places(c); p++) {
        bool used = false;
        for (int s = 0; s < b->n_stage; s++) used |= b->place[s] == p;
        if (!used && which-- == 0) return p;
    }
    return -1;
}

/* Counts boundaries in both directions, pairs of stages, and stages times empty places. */
int balance_neighbours(const hp_chain *c, const hp_balance *b) {
    const int n = b->n_stage;
    return 2 * (n - 1) + n * (n - 1) / 2 + n * empty_places(c, b);
}

bool balance_neighbour(const hp_chain *c, const hp_balance *b, int which, hp_balance *out) {
    const int n = b->n_stage, cuts = 2 * (n - 1), pairs = n * (n - 1) / 2;
    *out = *b;
    if (which < cuts) return balance_shift(out, which / 2 + which % 2, which / 2 + 1 - which % 2);
    which -= cuts;
    if (which >= pairs) {
        which -= pairs;
        out->place[which % n] = empty_place(c, b, which / n);
        return true;
    }
    int first = 0;
    while (which >= n - 1 - first) which -= n - 1 - first++;
    const int second = first + 1 + which;
    if (hp_chain_class(c, b->place[first]) == hp_chain_class(c, b->place[second])) return false; /* alike */
    out->place[first] = b->place[second];
    out->place[second] = b->place[first];
    return true;
}
