/* ref_tokens.c - tables of embeddings and places, class tokens, crops and merged pixels, float64. */
#include "exec/device/ref/ref.h"

#include <math.h>
#include <string.h>

/* Overwrites a parameter's gradient, unless it is added to. */
static void clear(const hp_bound *b, int64_t n) {
    if (!(b->task->flags & HP_FLAG_ADD)) memset(b->grad[0], 0, (size_t)n * sizeof(double));
}

/* --- embedding --- */

void hp_ref_embedding_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const hp_extent here = hp_embedding_rows(b);
    const double *id = b->x[0], *table = b->param[0];
    const int64_t c = b->shape.oc;
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t row = hp_embedding_row(b, here, id[i / c]);
        y[i] = row < 0 ? 0 : table[row * c + i % c];
    }
}

void hp_ref_embedding_bwdw(const hp_bound *b, const hp_step *s) {
    (void)s;
    const hp_extent here = hp_embedding_rows(b);
    const double *id = b->x[0], *dy = b->dy;
    const int64_t c = b->shape.oc;
    double *table = b->grad[0];
    clear(b, (here.hi - here.lo) * c);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t row = hp_embedding_row(b, here, id[i / c]);
        if (row >= 0) table[row * c + i % c] += dy[i];
    }
}

/* --- places --- */

/* Element of the table that belongs to element i of the output's box. */
static int64_t place_at(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const int64_t pixel = i / s->oc, y = pixel / s->ow % s->oh, x = pixel % s->ow;
    return ((s->oy0 + y) * s->full.ow + s->ox0 + x) * s->full.oc + s->oc0 + i % s->oc;
}

void hp_ref_position_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *x = b->x[0], *table = b->param[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) y[i] = x[i] + table[place_at(b, i)];
}

void hp_ref_position_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *dy = b->dy;
    double *dx = b->dx[0], *table = b->grad[0];
    clear(b, b->graph->param[b->layer->param[0]].count);
    for (int64_t i = 0; i < b->out_elems; i++) {
        table[place_at(b, i)] += dy[i];
        if (dx) dx[i] = dy[i];
    }
}

/* --- class tokens --- */

/* Channel of the input's box for element i of the output's; -1: of the class token itself. */
static int64_t token_at(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const int64_t c = i % s->oc, token = s->oy0 + i / s->oc % s->oh, n = i / s->oc / s->oh;
    const int64_t y = (token - 1) / s->full.iw - s->iy0, x = (token - 1) % s->full.iw - s->ix0;
    return token == 0 ? -1 : ((n * s->ih + y) * s->iw + x) * s->ic + c;
}

void hp_ref_classtoken_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *x = b->x[0], *token = b->param[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t at = token_at(b, i);
        y[i] = at < 0 ? token[i % b->shape.oc] : x[at];
    }
}

void hp_ref_classtoken_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *dy = b->dy;
    double *dx = b->dx[0], *token = b->grad[0];
    clear(b, b->shape.oc);
    if (dx) memset(dx, 0, (size_t)b->in_elems * sizeof *dx);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t at = token_at(b, i);
        if (at < 0)
            token[i % b->shape.oc] += dy[i];
        else if (dx)
            dx[at] = dy[i];
    }
}

/* --- crops: the box that is read is the one that is made --- */

void hp_ref_crop_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    memcpy(b->y, b->x[0], (size_t)b->out_elems * sizeof(double));
}

void hp_ref_crop_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    memcpy(b->dx[0], b->dy, (size_t)b->out_elems * sizeof(double));
}

/* --- merged pixels: the upper left, the one below it, the one beside it, the one below that --- */

/* Channel of the input's box for element i of the output's; -1: beyond the map. */
static int64_t merged_at(const hp_bound *b, int64_t i) {
    const hp_shape *s = &b->shape;
    const int quarter = s->full.oc / 4, c = s->oc0 + (int)(i % s->oc), which = c / quarter;
    const int64_t pixel = i / s->oc, n = pixel / s->ow / s->oh;
    const int64_t y = 2 * (s->oy0 + pixel / s->ow % s->oh) + which % 2,
                  x = 2 * (s->ox0 + pixel % s->ow) + which / 2;
    if (y >= s->full.ih || x >= s->full.iw) return -1;
    return ((n * s->ih + y - s->iy0) * s->iw + x - s->ix0) * s->ic + c % quarter -
           b->map.in_box[0].lo[HP_AXIS_C];
}

void hp_ref_merge_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *x = b->x[0];
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t at = merged_at(b, i);
        y[i] = at < 0 ? 0 : x[at];
    }
}

void hp_ref_merge_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *dy = b->dy;
    double *dx = b->dx[0];
    memset(dx, 0, (size_t)b->in_elems * sizeof *dx);
    for (int64_t i = 0; i < b->out_elems; i++) {
        const int64_t at = merged_at(b, i);
        if (at >= 0) dx[at] = dy[i];
    }
}

/* --- blocks of channels added up --- */

void hp_ref_sum_fwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *x = b->x[0], *bias = b->layer->n_param > 0 ? b->param[0] : NULL;
    const int outs = b->shape.oc, ins = b->shape.ic;
    double *y = b->y;
    for (int64_t i = 0; i < b->out_elems; i++) {
        double sum = bias ? bias[i % outs] : 0;
        for (int64_t c = i % outs; c < ins; c += outs) sum += x[i / outs * ins + c];
        y[i] = sum;
    }
}

void hp_ref_sum_bwd(const hp_bound *b, const hp_step *s) {
    (void)s;
    const double *dy = b->dy;
    const int outs = b->shape.oc, ins = b->shape.ic;
    double *dx = b->dx[0], *bias = b->layer->n_param > 0 ? b->grad[0] : NULL;
    if (bias) clear(b, outs);
    for (int64_t i = 0; bias && i < b->out_elems; i++) bias[i % outs] += dy[i];
    for (int64_t i = 0; dx && i < b->out_elems; i++)
        for (int64_t c = i % outs; c < ins; c += outs) dx[i / outs * ins + c] = dy[i];
}
