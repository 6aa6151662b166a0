/* compute_roofline.c - the duration of one task: the measured line of its shape class, otherwise the fit of
 * its family, otherwise the line of a similar task (compute_fallback.c), otherwise the device's roofline with
 * the family's efficiency.
 *
 * Flops and bytes both matter: for high-resolution images, a model of flops alone is far off, because most
 * layers are memory-bound. */
#include "costmodels/cost_line.h"
#include "costmodels/models.h"
#include "costmodels/cost_speed.h"
#include "costmodels/gpu/tiles.h"
#include "plan/program/work.h"

#include <math.h>
#include <string.h>

typedef struct roofline {
    double launch_s, flops_per_s, bytes_per_s;
} roofline;

/* Duration of work with this many flops and bytes. */
static double roofline_seconds(const roofline *r, double flops, double bytes) {
    return r->launch_s + fmax(flops / r->flops_per_s, bytes / r->bytes_per_s);
}

hp_cost hp_cost_of_row(const hp_row *row, double seconds) {
    const double low = 1 - row->residual;
    return (hp_cost){seconds, seconds * (low > 0.1 ? low : 0.1), seconds * (1 + row->residual), row->source};
}

/* Relative error of a line measured at half or twice the row length: kernels cut rows into blocks. Among
 * 1,600 pairs of rows of convolutions with the same pixels, half are within 4 to 7 % of each other, four in
 * five within 12 to 29 % (the tables of tests/accuracy, seeds 32 and 33). The same is added for each octave
 * outside the measured sizes. */
static const double OF_AN_OCTAVE = 0.15;

static hp_cost from_line(const hp_measured_line *l) {
    hp_row wide = *l->row;
    wide.residual = hypot(wide.residual, OF_AN_OCTAVE * l->octaves);
    return hp_cost_of_row(&wide, l->seconds);
}

static hp_cost from_fit(const hp_row *row, const hp_work *w) {
    double t = row->y[HP_FIT_LAUNCH];
    if (row->y[HP_FIT_FLOPS] > 0) t += w->flops / row->y[HP_FIT_FLOPS];
    if (row->y[HP_FIT_BYTES] > 0) t += w->bytes / row->y[HP_FIT_BYTES];
    return hp_cost_of_row(row, t);
}

/* Cost from a row of the device's class, or of a class that it is like. */
static hp_cost by_class(const hp_row *row, const hp_machine *m, double seconds) {
    hp_cost c = hp_cost_of_row(row, seconds);
    const bool another = strcmp(row->class, m->device.name) != 0; /* converted by the ratio of two data
                                                                   * sheets */
    if (another && c.source == HP_SOURCE_MEASURED) c.source = HP_SOURCE_DATASHEET;
    return c;
}

static hp_cost from_roofline(const hp_row *row, const hp_machine *m, const hp_work *w, double peak) {
    const roofline r = {m->device.launch_s, peak * row->y[HP_EFFICIENCY_FLOPS],
                        m->device.bytes_per_s * row->y[HP_EFFICIENCY_BYTES]};
    return by_class(row, m, roofline_seconds(&r, w->flops, w->bytes));
}

/* --- a task unlike those that were measured --- */

static double half_width(hp_cost c) {
    return c.seconds > 0 ? (c.high - c.seconds) / c.seconds : 0;
}

/* A processor's float32 rate counts at most two 512-bit multiply-adds a cycle. Tiles of 16 rows of 64 bytes
 * (AMX) do 16 times as many with two-byte elements, and 32 times as many with one-byte elements (Intel,
 * Optimization Reference Manual, ch. 20). */
static double most_flops_per_s(const hp_device_class *d, hp_prec prec) {
    static const double OF_TWO_BYTES = 16, OF_ONE = 32;
    if (!d->is_cpu) return hp_device_class_peak(d, prec);
    const double more = prec == HP_PREC_INT8                           ? OF_ONE
                        : prec == HP_PREC_BF16 || prec == HP_PREC_FP16 ? OF_TWO_BYTES
                                                                       : 1;
    return d->flops_per_s * more;
}

/* Lower bound of the work's time on a device: at its peak in that precision, or at the `fastest` rate seen
 * (flop/s; 0: none), and at the rate of its caches. */
static double least_seconds(const hp_device_class *d, hp_prec prec, double fastest, double flops,
                            double bytes) {
    /* cores read 35 to 100 GB/s from L2 (exec/yardstick/l2.c), about 10 from memory */
    static const double OF_CACHES = 10;
    const roofline most = {0, fmax(most_flops_per_s(d, prec), fastest), OF_CACHES * d->bytes_per_s};
    return roofline_seconds(&most, flops, bytes);
}

/* Half-width at which one figure's interval contains the other. */
static double apart(double seconds, double other) {
    if (seconds <= 0 || other <= 0) return 0;
    return other > seconds ? other / seconds - 1 : 1 - other / seconds;
}

hp_cost hp_cost_outside(hp_cost measured, hp_cost empty, double least_s, double octaves) {
    const double added = OF_AN_OCTAVE * octaves, of_empty = half_width(empty),
                 far = OF_AN_OCTAVE * fmax(0, octaves - HP_FAR_OCTAVES),
                 share = far > 0 ? far * far / (far * far + of_empty * of_empty) : 0,
                 bounded_s = fmax(measured.seconds, least_s),
                 drawn_s = share > 0 && bounded_s > 0 && empty.seconds > 0
                               ? bounded_s * pow(empty.seconds / bounded_s, share)
                               : bounded_s,
                 seconds = fmax(drawn_s, least_s);
    const double of_both = hypot((1 - share) * hypot(half_width(measured), added), share * of_empty),
                 near = fmin(1, octaves / HP_FAR_OCTAVES);
    const hp_row row = {.residual = fmax(of_both, near * apart(seconds, empty.seconds)),
                        .source = octaves > HP_FAR_OCTAVES ? HP_SOURCE_GUESS : measured.source};
    hp_cost c = hp_cost_of_row(&row, seconds);
    if (octaves >= HP_FAR_OCTAVES) c.low = fmin(c.low, empty.seconds);
    return c;
}

/* --- which of them --- */

/* The type that a family reads: "u8" of "infer.conv u8>f32". */
static void type_of(const char *family, char *out, size_t n) {
    const char *type = strrchr(family, ' ');
    snprintf(out, n, "%.*s", type ? (int)strcspn(type + 1, ">") : 0, type ? type + 1 : "");
}

/* The family, and the type in which its factors are multiplied. */
static void family_of(const hp_work *w, char *family, size_t n, char *type, size_t n_type) {
    hp_key_family(w->key, family, n);
    type_of(family, type, n_type);
    if (w->factors) snprintf(type, n_type, "%s", w->factors);
}

/* The precision whose rate applies to elements of a type. */
static hp_prec prec_of(const char *type) {
    static const struct {
        const char *type;
        hp_prec prec;
    } rows[] = {{"tf32", HP_PREC_TF32}, {"bf16", HP_PREC_BF16}, {"f16", HP_PREC_FP16}, {"u8", HP_PREC_INT8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].type, type) == 0) return rows[i].prec;
    return HP_PREC_FP32;
}

/* The key of kernels with separate rates: "fwd.dense bf16" for "fwd.conv bf16". */
static void own_key(const hp_work *w, const char *family, const char *type, char *out, size_t n) {
    snprintf(out, n, "%.*s.%s %.20s", (int)strcspn(family, "."), family, w->rates ? w->rates : "", type);
}

/* A row measured for exactly such kernels. */
static const hp_row *specific(const hp_cost_table *t, const hp_machine *m, const hp_work *w,
                              const char *family, const char *type) {
    char own[80];
    own_key(w, family, type, own, sizeof own);
    for (const hp_row *r; t; t = t->base) {
        if (w->rates && (r = hp_row_of_class(t, HP_ROW_EFFICIENCY, &m->device, own))) return r;
        if (w->attends && (r = hp_row_of_class(t, HP_ROW_EFFICIENCY, &m->device, family))) return r;
    }
    return NULL;
}

/* Efficiency on this device. Looks for rows of kernels with separate rates, then of the family, of any
 * operation of its type, of any operation, and last in the generic table. */
static const hp_row *efficiency(const hp_cost_table *t, const hp_machine *m, const hp_work *w,
                                const char *family, const char *type) {
    char own[80], typed[32];
    own_key(w, family, type, own, sizeof own);
    snprintf(typed, sizeof typed, "* %.24s", type);
    for (; t; t = t->base) {
        const char *const keys[] = {own, family, typed, "*"};
        for (int i = w->rates ? 0 : 1; i < 4; i++) {
            const hp_row *r = hp_row_of_class(t, HP_ROW_EFFICIENCY, &m->device, keys[i]);
            if (r) return r;
        }
    }
    return NULL;
}

/* How the device's multiprocessors share a matrix product; false if it is none, or nothing is known of
 * them. */
static bool tiling_of(const hp_cost_table *t, const hp_machine *m, const char *type, const hp_work *w,
                      hp_tiling *out) {
    const hp_row *tile = NULL, *units = NULL;
    for (; t && w->rows > 0 && !w->attends && !m->device.is_cpu; t = t->base) {
        if (!tile) tile = hp_row_of_class(t, HP_ROW_TILE, &m->device, type);
        if (!units) units = hp_row_of_class(t, HP_ROW_UNITS, &m->device, "");
    }
    if (!tile || !units) return false;
    *out = (hp_tiling){.rows = tile->y[HP_TILE_ROWS],
                       .cols = tile->y[HP_TILE_COLS],
                       .least = tile->y[HP_TILE_LEAST],
                       .penalty = tile->y[HP_TILE_PENALTY],
                       .fill = tile->y[HP_TILE_FILL],
                       .units = units->y[HP_UNITS_COUNT]};
    return true;
}

double hp_cost_block_seconds(const hp_cost_table *t, const hp_machine *m, const char *kernel, int blocks) {
    const hp_row *row = NULL;
    for (; t && !row && !m->device.is_cpu; t = t->base)
        row = hp_row_of_class(t, HP_ROW_BLOCK, &m->device, kernel);
    return row ? hp_line_at(row->x, row->y, row->n, blocks) : 0;
}

/* Relative error of another GPU's kernels at this GPU's data-sheet rates: with six GPUs left out in turn,
 * nine of ten shapes are within 15 to 47 % instead of 14 to 34 (tests/accuracy/kernels.py). */
static const double OF_A_RELATIVE = 0.2;

/* Cost of a library's kernel, if known. It also stands for hplan's own products, whose efficiency may have
 * been measured, and for hplan's attention if nothing was measured. */
static bool from_library(const hp_cost_table *t, const hp_machine *m, const hp_work *w, const char *family,
                         const char *type, hp_cost *cost) {
    const hp_row *own = w->library ? NULL : specific(t, m, w, family, type);
    hp_library_kernel k;
    if ((own && w->attends) ||
        !hp_library_kernel_find(t, m, w, type, hp_device_class_peak(&m->device, prec_of(type)), &k))
        return false;
    hp_row row = own ? *own : *k.row;
    if (strcmp(k.row->class, m->device.name) != 0) row.residual = hypot(row.residual, OF_A_RELATIVE);
    *cost = by_class(&row, m, hp_library_kernel_seconds(&k, m, w, own));
    return true;
}

/* Error of a library's kernels on a GPU of which no such kernel was fitted. With each device left out in
 * turn, nine of ten published throughputs are within a factor of 2.03 (tests/accuracy/frameworks.py). */
static const double OF_AN_UNSEEN_DEVICE = 0.71;

/* The row for a library's products on a GPU if it is that of convolutions. */
static bool is_of_convolutions(const hp_row *row, const hp_machine *m, const hp_work *w, const char *family,
                               const char *type) {
    char own[80];
    own_key(w, family, type, own, sizeof own);
    return w->library && !m->device.is_cpu && w->rates && w->rates != hp_rates_stem &&
           strcmp(row->key, own) != 0;
}

static hp_cost by_roofline(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    char family[80], type[16];
    hp_cost cost;
    family_of(w, family, sizeof family, type, sizeof type);
    if (from_library(t, m, w, family, type, &cost)) return cost;
    const hp_row *row = efficiency(t, m, w, family, type);
    HP_ASSERT(row); /* the generic table has a row for every operation */
    hp_tiling tiling;
    double peak = hp_device_class_peak(&m->device, prec_of(type));
    if (tiling_of(t, m, type, w, &tiling)) peak *= hp_tiling_fraction(&tiling, w->rows, w->cols, w->depth);
    hp_row wide = *row;
    if (is_of_convolutions(row, m, w, family, type)) {
        wide.residual = fmax(wide.residual, OF_AN_UNSEEN_DEVICE);
        wide.source = HP_SOURCE_GUESS;
    }
    return from_roofline(&wide, m, w, peak);
}

/* Octaves outside the sizes and arithmetic intensities that a fit was made from. */
static double outside_fit(const hp_row *fit, const hp_work *w) {
    static const double NOT_SAID = 3; /* a row of an older version: widens the interval and counts as a
                                       * guess */
    if (fit->y[HP_FIT_MOST] <= 0) return fit->source == HP_SOURCE_MEASURED ? NOT_SAID : 0;
    const double intensity = w->bytes > 0 ? w->flops / w->bytes : 0;
    return fmax(hp_octaves_outside(fit->y[HP_FIT_LEAST], fit->y[HP_FIT_MOST], w->bytes),
                hp_octaves_outside(fit->y[HP_FIT_INTENSITY_LEAST], fit->y[HP_FIT_INTENSITY_MOST], intensity));
}

/* Is it a copy from outside the device? It has a latency and a rate at any size, which no roofline
 * describes. */
static bool is_load(const char *family) {
    const char *op = strncmp(family, "infer.", 6) == 0 ? family + 6 : family;
    return strncmp(op, "load ", 5) == 0;
}

static bool measured(const hp_cost_table *t, const hp_machine *m, const hp_work *w, hp_cost *cost) {
    hp_measured_line line;
    char family[80], type[16];
    hp_key_fit(w->key, family, sizeof family);
    type_of(family, type, sizeof type);
    const hp_row *fit = hp_rows_find(t, HP_ROW_FIT, m->device.name, family);
    const bool has_line = hp_rows_compute(t, m->device.name, w->key, w->size, &line);
    if (!has_line && !fit) return false;
    *cost = has_line ? from_line(&line) : from_fit(fit, w);
    const double outside = has_line ? line.outside : outside_fit(fit, w);
    if ((has_line && outside <= 0) || is_load(family)) return true; /* measured tasks are valid */
    const bool witnessed = has_line && outside <= HP_FAR_OCTAVES;   /* the same shape was that fast */
    const double fastest = fit ? fit->y[HP_FIT_FASTEST] : 0,
                 least_s =
                     witnessed ? 0 : least_seconds(&m->device, prec_of(type), fastest, w->flops, w->bytes);
    *cost = hp_cost_outside(*cost, by_roofline(t, m, w), least_s, outside);
    return true;
}

/* The duration of a similar task, scaled by the ratio of their rooflines. It is a guess with three times its
 * interval, or the roofline's interval if that is narrower. */
static bool like_another(const hp_cost_table *t, const hp_machine *m, const hp_work *w, hp_cost *cost) {
    static const double WIDER = 3;
    hp_work fallback;
    for (int k = 0; k < HP_FALLBACKS; k++) {
        if (!hp_work_fallback(w, k, &fallback) || !measured(t, m, &fallback, cost)) continue;
        const hp_cost own = by_roofline(t, m, w);
        const double factor = own.seconds / by_roofline(t, m, &fallback).seconds,
                     wide = half_width(*cost) * WIDER;
        const hp_row row = {.residual = fmax(half_width(*cost), fmin(wide, half_width(own))),
                            .source = HP_SOURCE_GUESS};
        *cost = hp_cost_of_row(&row, factor * cost->seconds);
        return true;
    }
    return false;
}

static hp_cost of_kernel(const hp_cost_table *t, const hp_machine *m, const hp_work *w) {
    char family[80], type[16];
    hp_cost cost;
    family_of(w, family, sizeof family, type, sizeof type);
    if (w->library && from_library(t, m, w, family, type, &cost)) return cost;
    return measured(t, m, w, &cost) || like_another(t, m, w, &cost) ? cost : by_roofline(t, m, w);
}

/* A kernel plus the preceding passes, at the rate of quantising tensors. */
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
    const hp_row *own =
        hp_rows_find(t, HP_ROW_SHARE, m->device.name, hp_key_fit(w->key, family, sizeof family));
    return own ? own
               : hp_rows_find(t, HP_ROW_SHARE, m->device.name, hp_key_family(w->key, family, sizeof family));
}

/* Fraction of a device's multiprocessors that are busy while a kernel runs; during its launch, none are. */
static double busy_part(const hp_cost_table *t, const hp_machine *m, const hp_work *w, double *launch_s) {
    hp_tiling tiling;
    hp_library_kernel k;
    char family[80], type[16];
    family_of(w, family, sizeof family, type, sizeof type);
    *launch_s = m->device.launch_s;
    if (hp_library_kernel_find(t, m, w, type, 0, &k)) return hp_library_kernel_busy(&k, w, launch_s);
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
    double launch_s;
    const double seconds = hp_cost_compute(t, m, w).seconds, busy = busy_part(t, m, w, &launch_s);
    return seconds > 0 ? busy * fmax(0, 1 - launch_s / seconds) : 0;
}
