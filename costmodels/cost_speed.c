/* cost_speed.c - the speed for which a table predicts. */
#include "costmodels/cost_speed.h"

#include <math.h>
#include <string.h>

/* L2 caches of server cores of the 2020s hold 1 to 2 MiB; what a task reads and writes should fit. */
enum { NEAR_BYTES = 1 << 20 };

hp_speed hp_speed_quiet(void) {
    hp_speed s;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) s.slowdown[y] = 1;
    return s;
}

const hp_speed *hp_cost_speed(const hp_cost_table *t) {
    return &t->speed;
}

hp_cost_table *hp_cost_at(hp_arena *arena, const hp_cost_table *t, const hp_speed *speed) {
    hp_cost_table *other = HP_NEW(arena, hp_cost_table, 1);
    *other = *t;
    other->speed = *speed;
    return other;
}

/* A table written by others may claim that it took no time. */
static bool says_times(const hp_row *r) {
    return r->y[HP_YARDSTICK_QUIET] > 0 && r->y[HP_YARDSTICK_MEAN] > 0;
}

const hp_row *hp_yardstick_row(const hp_cost_table *t, const char *class, hp_yardstick y, int ranks) {
    char key[64];
    const hp_row *row = NULL;
    for (int r = ranks; r > 0 && !row; r--) {
        snprintf(key, sizeof key, "%s r%d", hp_yardstick_names[y], r);
        row = hp_rows_find(t, HP_ROW_YARDSTICK, class, key);
    }
    return row && says_times(row) ? row : NULL;
}

static bool is_of(const hp_row *r, hp_yardstick y) {
    const size_t n = strlen(hp_yardstick_names[y]);
    return r->kind == HP_ROW_YARDSTICK && strncmp(r->key, hp_yardstick_names[y], n) == 0 &&
           r->key[n] == ' ' && says_times(r);
}

/* No machine is so many times as slow as when it is quiet: such times say nothing. */
static const double BEYOND = 1e6;

hp_speed hp_speed_usual(const hp_cost_table *t) {
    hp_speed s = hp_speed_quiet();
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        double sum = 0, weight = 0;
        for (int i = 0; i < t->n; i++) {
            const hp_row *r = &t->row[i];
            if (!is_of(r, (hp_yardstick)y)) continue;
            const double samples = (double)(r->samples > 0 ? r->samples : 1);
            sum += samples * r->y[HP_YARDSTICK_MEAN] / r->y[HP_YARDSTICK_QUIET];
            weight += samples;
        }
        const double ratio = weight > 0 ? sum / weight : 0;
        if (ratio > 1 / BEYOND && ratio < BEYOND) s.slowdown[y] = ratio;
    }
    return s;
}

void hp_work_mix(const hp_machine *m, const hp_work *w, double mix[HP_SPEED_CLASSES]) {
    const double compute = w->flops / m->device.flops_per_s, move = w->bytes / m->device.bytes_per_s;
    const double arith = compute + move > 0 ? compute / (compute + move) : 0;
    mix[HP_YARD_ARITH] = arith;
    mix[HP_YARD_L2] = w->bytes <= NEAR_BYTES ? 1 - arith : 0;
    mix[HP_YARD_DRAM] = w->bytes <= NEAR_BYTES ? 0 : 1 - arith;
}

double hp_mix_slowdown(const double mix[HP_SPEED_CLASSES], const double slowdown[HP_SPEED_CLASSES]) {
    double sum = 0, weight = 0, all = 0;
    int known = 0;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        if (isnan(slowdown[y])) continue;
        sum += mix[y] * slowdown[y], weight += mix[y];
        all += slowdown[y], known++;
    }
    return weight > 1e-6 ? sum / weight : known ? all / known : NAN;
}

static bool is_quiet(const hp_speed *s) {
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        if (s->slowdown[y] < 1 || s->slowdown[y] > 1) return false;
    return true;
}

double hp_speed_of_work(const hp_speed *s, const hp_machine *m, const hp_work *w) {
    if (!m->share_cpu || is_quiet(s)) return 1;
    double mix[HP_SPEED_CLASSES];
    hp_work_mix(m, w, mix);
    return hp_mix_slowdown(mix, s->slowdown);
}

double hp_speed_of_copy(const hp_speed *s, const hp_machine *m, double bytes) {
    return m->share_cpu ? s->slowdown[bytes <= NEAR_BYTES ? HP_YARD_L2 : HP_YARD_DRAM] : 1;
}

static int ranks_of(const hp_row *row) {
    int ranks = 0;
    return sscanf(row->key, "%*s r%d", &ranks) == 1 ? ranks : 0;
}

double hp_speed_share(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    double mix[HP_SPEED_CLASSES], slowdown[HP_SPEED_CLASSES];
    int ranks = 0;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const hp_row *one = hp_yardstick_row(t, m->device.name, (hp_yardstick)y, 1),
                     *all = hp_yardstick_row(t, m->device.name, (hp_yardstick)y, m->cores_per_node);
        if (!one || ranks_of(all) < 2) return 0;
        ranks = ranks_of(all);
        slowdown[y] = all->y[HP_YARDSTICK_QUIET] / one->y[HP_YARDSTICK_QUIET];
    }
    hp_work_mix(m, w, mix);
    return fmin(1, hp_mix_slowdown(mix, slowdown) / ranks);
}

hp_cost hp_cost_times(hp_cost c, double factor) {
    return (hp_cost){c.seconds * factor, c.low * factor, c.high * factor, c.source};
}
