/* library.c - matrix products and fused attention by libraries on a GPU, with rates fitted to measured
 * kernels: rows `tile` with rates, and rows `attend`. */
#include "costmodels/gpu/gpu_attention.h"
#include "costmodels/gpu/gpu_kernel.h"
#include "costmodels/gpu/tiles.h"
#include "costmodels/models.h"

#include <string.h>

/* "dense", or the kind of attention; NULL: no kernel with such rows. */
static const char *word_of(const hp_work *w) {
    if (w->attends) return w->attends;
    return w->rates && strcmp(w->rates, "dense") == 0 && w->rows > 0 ? w->rates : NULL;
}

static bool has_rates(const hp_row *tile) {
    return tile->y[HP_TILE_FLOPS] > 0 && tile->y[HP_TILE_BYTES] > 0 && tile->y[HP_TILE_POWER] > 0;
}

bool hp_library_kernel_find(const hp_cost_table *t, const hp_machine *m, const hp_work *w, const char *type,
                            double peak, hp_library_kernel *k) {
    const char *word = word_of(w);
    const hp_row *row = NULL, *units = NULL;
    char key[48];
    if (!word || m->device.is_cpu) return false;
    snprintf(key, sizeof key, "%s %.16s", word, type);
    for (; t; t = t->base) {
        if (!row) row = hp_row_of_class(t, w->attends ? HP_ROW_ATTEND : HP_ROW_TILE, &m->device, key);
        if (!units) units = hp_row_of_class(t, HP_ROW_UNITS, &m->device, "");
    }
    if (!row || !units || (row->kind == HP_ROW_TILE && !has_rates(row))) return false;
    *k = (hp_library_kernel){row, units->y[HP_UNITS_COUNT], peak};
    return true;
}

static hp_tiling tiling_of(const hp_library_kernel *k, double flops, double bytes_per_s) {
    const double *y = k->row->y;
    return (hp_tiling){.rows = y[HP_TILE_ROWS],
                       .cols = y[HP_TILE_COLS],
                       .least = y[HP_TILE_LEAST],
                       .penalty = y[HP_TILE_PENALTY],
                       .fill = y[HP_TILE_FILL],
                       .units = k->units,
                       .depth = y[HP_TILE_DEPTH],
                       .split_s = y[HP_TILE_SPLIT],
                       .flops_per_s = k->peak * flops,
                       .bytes_per_s = bytes_per_s};
}

static double product_seconds(const hp_library_kernel *k, const hp_machine *m, const hp_work *w,
                              const hp_row *efficiency) {
    const double *y = k->row->y, flops = efficiency ? efficiency->y[HP_EFFICIENCY_FLOPS] : y[HP_TILE_FLOPS],
                 bytes = efficiency ? efficiency->y[HP_EFFICIENCY_BYTES] : y[HP_TILE_BYTES];
    const hp_kernel kernel = {y[HP_TILE_LAUNCH], y[HP_TILE_POWER], m->device.bytes_per_s * bytes,
                              y[HP_TILE_CACHE], y[HP_TILE_CACHED]};
    const hp_tiling tiling = tiling_of(k, flops, kernel.bytes_per_s);
    const double of_weights = w->depth * w->cols,
                 share = of_weights / (w->rows * w->depth + of_weights + w->rows * w->cols),
                 memory_s = hp_kernel_weights_s(&kernel, share * w->bytes) +
                            hp_kernel_maps_s(&kernel, (1 - share) * w->bytes);
    return hp_kernel_seconds(&kernel, hp_tiling_seconds(&tiling, w->rows, w->cols, w->depth), memory_s);
}

static hp_attend_rates attend_of(const hp_library_kernel *k) {
    const double *y = k->row->y;
    return (hp_attend_rates){.rows = y[HP_ATTEND_ROWS],
                             .penalty = y[HP_ATTEND_PENALTY],
                             .fill = y[HP_ATTEND_FILL],
                             .softmax = y[HP_ATTEND_SOFTMAX],
                             .units = k->units,
                             .flops_per_s = k->peak * y[HP_ATTEND_FLOPS]};
}

static hp_attend_shape shape_of(const hp_work *w) {
    return (hp_attend_shape){.queries = w->rows,
                             .keys = w->depth,
                             .channels = w->cols,
                             .groups = w->groups,
                             .products = w->products,
                             .causal = strcmp(w->attends, "causal") == 0};
}

static double attention_seconds(const hp_library_kernel *k, const hp_machine *m, const hp_work *w) {
    const double *y = k->row->y, again = w->products <= 2 ? (y[HP_ATTEND_MOVED] - 1) * w->kept_bytes : 0,
                 moved = w->bytes > 0 ? 1 + again / w->bytes : 1;
    const hp_kernel kernel = {y[HP_ATTEND_LAUNCH], y[HP_ATTEND_POWER],
                              m->device.bytes_per_s * y[HP_ATTEND_BYTES], y[HP_ATTEND_CACHE],
                              y[HP_ATTEND_CACHED]};
    const hp_attend_rates attend = attend_of(k);
    const hp_attend_shape shape = shape_of(w);
    return hp_kernel_seconds(&kernel, hp_attend_seconds(&attend, &shape),
                             moved * hp_kernel_maps_s(&kernel, w->bytes));
}

double hp_library_kernel_seconds(const hp_library_kernel *k, const hp_machine *m, const hp_work *w,
                                 const hp_row *efficiency) {
    return k->row->kind == HP_ROW_ATTEND ? attention_seconds(k, m, w) : product_seconds(k, m, w, efficiency);
}

double hp_library_kernel_busy(const hp_library_kernel *k, const hp_work *w, double *launch_s) {
    *launch_s = k->row->y[k->row->kind == HP_ROW_ATTEND ? (int)HP_ATTEND_LAUNCH : (int)HP_TILE_LAUNCH];
    if (k->row->kind == HP_ROW_ATTEND) {
        const hp_attend_rates attend = attend_of(k);
        const hp_attend_shape shape = shape_of(w);
        return hp_attend_busy(&attend, &shape);
    }
    const hp_tiling tiling = tiling_of(k, 1, 0);
    return hp_tiling_busy(&tiling, w->rows, w->cols, w->depth);
}
