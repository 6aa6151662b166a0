/* proportions.c - proportions as whole numbers, so that every rank computes the same split. */
#include "plan/tiles/proportions.h"

#include <string.h>

int64_t hp_proportions_sum(const hp_proportions *w) {
    int64_t sum = 0;
    for (int i = 0; i < w->n; i++) sum += w->of[i];
    return sum;
}

bool hp_proportions_equal(const hp_proportions *a, const hp_proportions *b) {
    return a->n == b->n && memcmp(a->of, b->of, sizeof *a->of * (size_t)a->n) == 0;
}

static int common_divisor(int a, int b) {
    return b ? common_divisor(b, a % b) : a;
}

hp_proportions hp_proportions_reduced(const hp_proportions *w) {
    hp_proportions r = {.n = w->n};
    int divisor = 0;
    bool unequal = false;
    for (int i = 0; i < w->n; i++) {
        divisor = common_divisor(divisor, w->of[i]);
        unequal |= w->of[i] != w->of[0];
    }
    if (!unequal) return (hp_proportions){.n = 0};
    for (int i = 0; i < w->n; i++) r.of[i] = (uint16_t)(w->of[i] / divisor);
    return r;
}

int32_t hp_proportions_at(const hp_proportions *w, int64_t n, int parts, int k) {
    if (w->n == 0 || parts % w->n) return (int32_t)(n * k / parts);
    const int each = parts / w->n, at = k / each;
    int64_t before = 0;
    for (int i = 0; i < at; i++) before += w->of[i];
    const int64_t within = at < w->n ? (int64_t)w->of[at] * (k % each) : 0;
    return (int32_t)(n * (before * each + within) / (hp_proportions_sum(w) * each));
}

int hp_proportions_heaviest(const hp_proportions *w, int parts) {
    int best = 0;
    if (w->n == 0 || parts % w->n) return parts - 1; /* rounding gives the last part the most */
    for (int i = 1; i < w->n; i++)
        if (w->of[i] >= w->of[best]) best = i;
    return (best + 1) * (parts / w->n) - 1;
}

int hp_proportions_lightest(const hp_proportions *w, int parts) {
    int best = 0;
    for (int i = 1; i < w->n; i++)
        if (w->of[i] < w->of[best]) best = i;
    return w->n && parts % w->n == 0 ? best * (parts / w->n) : 0;
}
