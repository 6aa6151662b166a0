/* factors.c - the matrices among a range of gradients. */
#include "plan/program/factors.h"

static bool is_here(const hp_graph *g, const hp_role *r, hp_elements range, int param) {
    const hp_param_place *at = &r->place[param];
    return at->here && at->count > 0 && hp_param_trained(&g->param[param]) && at->offset >= range.first &&
           at->offset < range.first + range.count;
}

bool hp_factor_next(const hp_graph *g, const hp_role *r, hp_elements range, int rank, hp_factor *f) {
    if (f->param >= 0) {
        f->p += f->cols ? f->rows * rank : f->rows;
        f->q += f->cols * rank;
    }
    do f->param++;
    while (f->param < g->n_param && !is_here(g, r, range, f->param));
    if (f->param >= g->n_param) return false;
    const hp_param *param = &g->param[f->param];
    const int64_t here = r->place[f->param].count, row = param->count / param->dim[0], rows = here / row;
    const bool matrix = param->n_dim > 1 && here % row == 0 && rank * (rows + row) < here;
    f->at = r->place[f->param].offset - range.first;
    f->rows = matrix ? rows : here;
    f->cols = matrix ? row : 0;
    return true;
}

hp_factor_sizes hp_factor_sizes_of(const hp_graph *g, const hp_role *r, hp_elements range, int rank) {
    hp_factor_sizes s = {0, 0, 0};
    hp_factor f = hp_factor_first();
    while (hp_factor_next(g, r, range, rank, &f)) s.macs += f.rows * f.cols * rank;
    s.p = f.p;
    s.q = f.q;
    return s;
}
