/* judge.c - compares predictions with published figures, and sums over many. */
#include "cli/experiments/experiments.h"

#include <math.h>
#include <string.h>

static const double CLOSE = 0.15; /* a prediction within this distance counts as a hit */

static experiment_verdict verdict_of(bool hit) {
    return hit ? EXPERIMENT_HIT : EXPERIMENT_MISS;
}

static double value_of(const experiment_row *r, int row, const experiment_run *run) {
    const double first = run[r->first >= 0 ? r->first : row].figure[r->measure];
    return r->second < 0 ? first : first / run[r->second].figure[r->measure];
}

/* The published side of 1: 1 or -1; 0: either. */
static int side_of(const experiment_row *r) {
    if (r->word) return strcmp(r->word, "above") == 0 ? 1 : -1;
    return r->low >= 1 ? 1 : r->high <= 1 ? -1 : 0;
}

static void judge_word(const experiment_row *r, int row, const experiment_run *run, experiment_result *x) {
    const experiment_run *of = &run[r->first >= 0 ? r->first : row];
    x->word = r->measure == EXPERIMENT_outcome ? of->outcome : of->family;
    if (x->word) x->verdict = verdict_of(strcmp(x->word, r->word) == 0);
}

static void judge_value(const experiment_row *r, int row, const experiment_run *run, experiment_result *x) {
    const int side = r->second >= 0 ? side_of(r) : 0;
    x->value = value_of(r, row, run);
    if (isnan(x->value)) return;
    if (!r->word && r->low >= r->high) x->error = x->value / r->low - 1;
    if (side) x->sign = verdict_of(side > 0 ? x->value > 1 : x->value < 1);
    if (r->kind == EXPERIMENT_EXACT) x->verdict = verdict_of(x->value == r->low);
    if (r->kind == EXPERIMENT_POINT) x->verdict = verdict_of(fabs(x->error) <= CLOSE);
    if (r->kind == EXPERIMENT_BAND) x->verdict = verdict_of(x->value >= r->low && x->value <= r->high);
    if (r->kind == EXPERIMENT_SIGN) x->verdict = x->sign;
}

static const char *why_not(const experiment_row *r, int row, const experiment_run *run) {
    if (r->missing) return r->missing;
    const experiment_run *first = &run[r->first >= 0 ? r->first : row];
    return *first->why || r->second < 0 ? first->why : run[r->second].why;
}

experiment_result experiment_judge(const experiment_file *f, int row, const experiment_run *run) {
    const experiment_row *r = &f->row[row];
    experiment_result x = {.value = NAN, .error = NAN, .why = why_not(r, row, run)};
    if (r->missing || !r->has_figure) return x;
    if (r->measure >= EXPERIMENT_FIRST_WORD)
        judge_word(r, row, run, &x);
    else
        judge_value(r, row, run, &x);
    return x;
}

static bool is_time(experiment_measure m) {
    return m == EXPERIMENT_images_per_s || m == EXPERIMENT_step_s || m == EXPERIMENT_exchange_s;
}

bool experiment_is_point_of_time(const experiment_row *r) {
    return r->kind == EXPERIMENT_POINT && is_time(r->measure) && !r->missing;
}

void experiment_add(experiment_tally *t, const experiment_file *f, const experiment_row *row,
                    const experiment_result *r) {
    if (row->kind == EXPERIMENT_NONE) return;
    const bool memory = row->kind == EXPERIMENT_POINT && !is_time(row->measure);
    experiment_count *c = &t->of[memory ? (int)EXPERIMENT_MEMORY : (int)row->kind];
    c->rows++;
    c->known += r->verdict != EXPERIMENT_OPEN;
    c->hit += r->verdict == EXPERIMENT_HIT;
    t->signs += r->sign != EXPERIMENT_OPEN;
    t->right += r->sign == EXPERIMENT_HIT;
    if (row->kind != EXPERIMENT_POINT || isnan(r->error)) return;
    const bool used = row->used && f->in_table;
    c->used += used;
    c->unused += !used;
    c->error += fabs(r->error);
    if (!used) c->error_unused += fabs(r->error);
}

double experiment_mean(double sum, int n) {
    return n ? sum / n : NAN;
}
