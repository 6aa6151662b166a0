/* compute_roofline.c - the duration of one task: the measured line of its shape class, else the fit of its
 * family, else that of a similar task (compute_fallback.c), else the device's roofline with the family's
 * efficiency. Flops and bytes both matter: a model of flops alone is far off for high-resolution images,
 * where most layers are bound by memory. */
#include "costmodels/line.h"
#include "costmodels/models.h"
#include "costmodels/speed.h"
#include "costmodels/gpu/tiles.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

double hp_roofline_seconds(const hp_roofline *r, double flops, double bytes) {
    return r->launch_s + fmax(flops / r->flops_per_s, bytes / r->bytes_per_s);
}

hp_cost hp_cost_of_row(const hp_row *row, double seconds) {
    const double low = 1 - row->residual;
    return (hp_cost){seconds, seconds * (low > 0.1 ? low : 0.1), seconds * (1 + row->residual), row->source};
}

/* How far off a line is that was measured at half or twice the row length: kernels cut rows into blocks. Of 1,600 pairs of
 * rows of convolutions with the same pixels, half are within 4 to 7 % of each other, four in five within 12 to 29 % (the
 * tables of tests/accuracy, seeds 32 and 33). */
static const double OF_AN_OCTAVE = 0.15;

/* Far outside the measured sizes a line is a guess: twice the residual, and source `guess`. */
static hp_cost from_line(const hp_measured_line *l) {
    hp_row wide = *l->row;
    wide.residual = hypot(wide.residual, OF_AN_OCTAVE * l->octaves);
    if (l->far) {
        wide.residual *= 2;
        wide.source = HP_SOURCE_GUESS;
    }
    return hp_cost_of_row(&wide, l->seconds);
}

static hp_cost from_fit(const hp_row *row, const hp_work *w) {
    double t = row->y[HP_FIT_LAUNCH];
    if (row->y[HP_FIT_FLOPS] > 0) t += w->flops / row->y[HP_FIT_FLOPS];
    if (row->y[HP_FIT_BYTES] > 0) t += w->bytes / row->y[HP_FIT_BYTES];
    return hp_cost_of_row(row, t);
}

static hp_cost from_roofline(const hp_row *row, const hp_machine *m, const hp_work *w, double peak) {
    const hp_roofline r = {m->device.launch_s, peak * row->y[HP_EFFICIENCY_FLOPS],
                           m->device.bytes_per_s * row->y[HP_EFFICIENCY_BYTES]};
    return hp_cost_of_row(row, hp_roofline_seconds(&r, w->flops, w->bytes));
}

/* The type that a family reads: "u8" of "infer.conv u8>f32". */
static void type_of(const char *family, char *out, size_t n) {
    const char *type = strrchr(family, ' ');
    snprintf(out, n, "%.*s", type ? (int)strcspn(type + 1, ">") : 0, type ? type + 1 : "");
}

/* Whose rate elements of a type are multiplied at. */
static hp_prec prec_of(const char *type) {
    static const struct {
        const char *type;
        hp_prec prec;
    } rows[] = {{"tf32", HP_PREC_TF32}, {"bf16", HP_PREC_BF16}, {"f16", HP_PREC_FP16}, {"u8", HP_PREC_INT8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].type, type) == 0) return rows[i].prec;
    return HP_PREC_FP32;
}

/* A row of the device's class, else of the one that it is like; the table's own rows of any class after those. */
static const hp_row *class_row(const hp_cost_table *t, hp_row_kind kind, const hp_device_class *d,
                               const char *key) {
    const hp_cost_table here = {.n = t->n, .row = t->row};
    const hp_row *own = hp_rows_find(&here, kind, d->name, key);
    if (own && strcmp(own->class, "*") != 0) return own;
    const hp_row *like = *d->like ? hp_rows_find(&here, kind, d->like, key) : NULL;
    return like ? like : own;
}

/* Efficiency on this device of kernels with rates of their own, else of the family, else of any operation of its type,
 * else of any operation, else from the generic table. */
static const hp_row *efficiency(const hp_cost_table *t, const hp_machine *m, const hp_work *w,
                                const char *family, const char *type) {
    char own[80], typed[32];
    snprintf(own, sizeof own, "%.*s.%s %.20s", (int)strcspn(family, "."), family, w->rates ? w->rates : "",
             type);
    snprintf(typed, sizeof typed, "* %.24s", type);
    for (; t; t = t->base) {
        const char *const keys[] = {own, family, typed, "*"};
        for (int i = w->rates ? 0 : 1; i < 4; i++) {
            const hp_row *r = class_row(t, HP_ROW_EFFICIENCY, &m->device, keys[i]);
            if (r) return r;
        }
    }
    return NULL;
}

/* How the device's multiprocessors share a product; false: it is none, or nothing is known of them. */
static bool tiling_of(const hp_cost_table *t, const hp_machine *m, const char *type, const hp_work *w,
                      hp_tiling *out) {
    const hp_row *tile = NULL, *units = NULL;
    for (; t && w->rows > 0 && !m->device.is_cpu; t = t->base) {
        if (!tile) tile = class_row(t, HP_ROW_TILE, &m->device, type);
        if (!units) units = class_row(t, HP_ROW_UNITS, &m->device, "");
    }
    if (!tile || !units) return false;
    *out = (hp_tiling){tile->y[HP_TILE_ROWS],    tile->y[HP_TILE_COLS], tile->y[HP_TILE_LEAST],
                       tile->y[HP_TILE_PENALTY], tile->y[HP_TILE_FILL], units->y[HP_UNITS_COUNT]};
    return true;
}

double hp_cost_block_seconds(const hp_cost_table *t, const hp_machine *m, const char *kernel, int blocks) {
    const hp_row *row = NULL;
    for (; t && !row && !m->device.is_cpu; t = t->base) row = class_row(t, HP_ROW_BLOCK, &m->device, kernel);
    return row ? hp_line_at(row->x, row->y, row->n, blocks) : 0;
}

static hp_cost by_roofline(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    char family[80], type[16];
    hp_key_family(w->key, family, sizeof family);
    type_of(family, type, sizeof type);
    const hp_row *row = efficiency(t, m, w, family, type);
    HP_ASSERT(row); /* the generic table has a row for every operation */
    hp_tiling tiling;
    double peak = hp_device_class_peak(&m->device, prec_of(type));
    if (tiling_of(t, m, type, w, &tiling)) peak *= hp_tiling_fraction(&tiling, w->rows, w->cols, w->depth);
    return from_roofline(row, m, w, peak);
}

static bool measured(const hp_cost_table *t, const hp_machine *m, const hp_work *w, hp_cost *cost) {
    hp_measured_line line;
    char family[80];
    if (hp_rows_compute(t, m->device.name, w->key, w->size, &line)) {
        *cost = from_line(&line);
        return true;
    }
    const hp_row *row =
        hp_rows_find(t, HP_ROW_FIT, m->device.name, hp_key_family(w->key, family, sizeof family));
    if (row) *cost = from_fit(row, w);
    return row != NULL;
}

/* The duration of a similar task, scaled by the ratio of their rooflines; a guess with three times its
 * interval. */
static bool like_another(const hp_cost_table *t, const hp_machine *m, const hp_work *w, hp_cost *cost) {
    static const double WIDER = 3, MOST = 0.9;
    hp_work fallback;
    for (int k = 0; k < HP_FALLBACKS; k++) {
        if (!hp_work_fallback(w, k, &fallback) || !measured(t, m, &fallback, cost)) continue;
        const double factor = by_roofline(t, m, w).seconds / by_roofline(t, m, &fallback).seconds;
        const double s = factor * cost->seconds, wide = WIDER * factor * (cost->high - cost->seconds);
        *cost = (hp_cost){s, fmax(s - wide, (1 - MOST) * s), s + wide, HP_SOURCE_GUESS};
        return true;
    }
    return false;
}

static hp_cost of_kernel(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    hp_cost cost;
    return measured(t, m, w, &cost) || like_another(t, m, w, &cost) ? cost : by_roofline(t, m, w);
}

/* A kernel plus the passes before it, at the rate at which tensors are quantised. */
static hp_cost with_passes(const hp_cost_table *t, const hp_machine *m, const hp_work *kernel, double bytes) {
    const hp_work pass = {.key = "infer.quant f32>u8", .bytes = bytes};
    const hp_cost a = of_kernel(t, m, kernel), b = of_kernel(t, m, &pass);
    return (hp_cost){a.seconds + b.seconds, a.low + b.low, a.high + b.high, HP_SOURCE_GUESS};
}

static hp_cost when_quiet(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    hp_cost cost;
    hp_work kernel;
    const bool has_passes = hp_work_kernel(w, &kernel) && !measured(t, m, w, &cost);
    return has_passes ? with_passes(t, m, &kernel, w->passes) : of_kernel(t, m, w);
}

hp_cost hp_cost_compute(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    return hp_cost_times(when_quiet(t, m, w), hp_speed_of_work(&t->speed, m, w));
}

static const hp_row *share_row(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    char family[80];
    return hp_rows_find(t, HP_ROW_SHARE, m->device.name, hp_key_family(w->key, family, sizeof family));
}

/* Of a device's multiprocessors, while a kernel runs. */
static double busy_part(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    hp_tiling tiling;
    char family[80], type[16];
    hp_key_family(w->key, family, sizeof family);
    type_of(family, type, sizeof type);
    return tiling_of(t, m, type, w, &tiling) ? hp_tiling_busy(&tiling, w->rows, w->cols, w->depth) : 1;
}

double hp_cost_share(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    const hp_row *row = share_row(t, m, w);
    hp_work fallback, kernel;
    if (!row && hp_work_kernel(w, &kernel)) return hp_cost_share(t, m, &kernel);
    for (int k = 0; !row && k < HP_FALLBACKS && hp_work_fallback(w, k, &fallback); k++)
        row = share_row(t, m, &fallback);
    if (m->share_cpu) {
        const double core = m->cores_per_node > 0 ? 1.0 / m->cores_per_node : 1;
        return fmax(row ? row->y[0] : hp_speed_share(t, m, w), core);
    }
    if (row) return row->y[0];
    const double seconds = hp_cost_compute(t, m, w).seconds;
    return seconds > 0 ? busy_part(t, m, w) * fmax(0, 1 - m->device.launch_s / seconds) : 0;
}
