/* balance.c - the time of a configuration, and the counting of tries. */
#include "sim/balance/balance.h"

#include <math.h>

int hp_chain_places(const hp_chain *c) {
    int n = 0;
    for (int k = 0; k < c->n_class; k++) n += c->places[k];
    return n;
}

int hp_chain_class(const hp_chain *c, int place) {
    int k = 0;
    while (k + 1 < c->n_class && place >= c->places[k]) place -= c->places[k++];
    return k;
}

static double stage_seconds(const hp_chain *c, int class, int first, int end) {
    double seconds = 0, bytes = 0;
    for (int u = first; u < end; u++) {
        seconds += c->seconds[class][u];
        if (c->bytes) bytes += c->bytes[u];
    }
    return c->bytes && bytes > c->memory[class] ? INFINITY : seconds;
}

double hp_balance_seconds(const hp_chain *c, const hp_balance *b, int *slowest) {
    double most = 0;
    for (int s = 0, first = 0; s < b->n_stage; first += b->units[s++]) {
        const double own = stage_seconds(c, hp_chain_class(c, b->place[s]), first, first + b->units[s]);
        if (own < most) continue;
        most = own;
        if (slowest) *slowest = s;
    }
    return most;
}

hp_balance_run hp_balance_start(hp_arena *arena, const hp_chain *c, uint64_t seed, int64_t most_tries) {
    return (hp_balance_run){
        .chain = c, .arena = arena, .seed = seed, .most_tries = most_tries, .best_s = INFINITY};
}

bool hp_balance_try(hp_balance_run *r, const hp_balance *b, double *seconds) {
    *seconds = INFINITY;
    if (r->most_tries > 0 && r->tries >= r->most_tries) return false;
    *seconds = hp_balance_seconds(r->chain, b, NULL);
    r->tries++;
    if (isinf(*seconds)) return true; /* rejected before it runs */
    r->spent_s += *seconds;
    if (*seconds >= r->best_s) return true;
    r->best_s = *seconds;
    r->best = *b;
    HP_ROOM(r->arena, r->curve, r->n_curve, r->curve_capacity);
    r->curve[r->n_curve++] = (hp_balance_step){r->tries, r->spent_s, r->best_s};
    return true;
}

static double choose(int n, int k) {
    double c = 1;
    for (int i = 1; i <= k; i++) c = c * (n - k + i) / i;
    return k < 0 || k > n ? 0 : c;
}

/* Number of ways to order `stages` stages over classes with n places left each: words with at most n of each
 * letter. */
static double words(const hp_chain *c, int class, int stages) {
    double sum = 0;
    if (class == c->n_class) return stages == 0;
    for (int own = 0; own <= c->places[class] && own <= stages; own++)
        sum += choose(stages, own) * words(c, class + 1, stages - own);
    return sum;
}

double hp_balance_space(const hp_chain *c) {
    double sum = 0;
    for (int n = 1; n <= hp_chain_places(c) && n <= c->n_unit; n++)
        sum += choose(c->n_unit - 1, n - 1) * words(c, 0, n);
    return sum;
}
