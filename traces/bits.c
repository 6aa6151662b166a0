/* bits.c - the first difference between two runs; see bits.h. */
#include "traces/bits.h"

#include <math.h>
#include <stdlib.h>

typedef struct side {
    hp_trace_value *bits, *loss; /* by iteration, rank, part */
    int64_t n_bits, n_loss;
} side;

static int by_part(const void *a, const void *b) {
    const hp_trace_value *x = a, *y = b;
    if (x->iter != y->iter) return x->iter < y->iter ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static hp_status load(hp_arena *arena, hp_db *db, side *s, hp_error *err) {
    int64_t run = -1;
    HP_TRY(hp_trace_find(db, "exec", &run, err));
    if (run < 0) return hp_fail(err, HP_EDATA, "%s: holds no executed run", db->path);
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_BITS], &s->bits, &s->n_bits, err));
    HP_TRY(hp_trace_counter(arena, db, run, hp_counter_names[HP_COUNTER_LOSS], &s->loss, &s->n_loss, err));
    if (s->n_bits == 0)
        return hp_fail(err, HP_EDATA,
                       "%s: has no hashes of the weights: hplan run --deterministic records them", db->path);
    for (int64_t i = 0; i < s->n_bits; i++)
        if (hp_bits_what(s->bits[i].value) < 0)
            return hp_fail(err, HP_EDATA, "%s: damaged: a hash of no part of the weights", db->path);
    qsort(s->bits, (size_t)s->n_bits, sizeof *s->bits, by_part);
    if (s->n_loss) qsort(s->loss, (size_t)s->n_loss, sizeof *s->loss, by_part);
    return HP_OK;
}

static int64_t end_of_step(const side *s, int64_t first) {
    int64_t i = first;
    while (i < s->n_bits && s->bits[i].iter == s->bits[first].iter) i++;
    return i;
}

static int by_iter(const void *a, const void *b) {
    const hp_trace_value *x = a, *y = b;
    return (x->iter > y->iter) - (x->iter < y->iter);
}

/* A missing loss, of a skipped step, counts as NaN. */
static double loss_of(const side *s, int32_t iter) {
    const hp_trace_value key = {.iter = iter},
                         *at = s->n_loss ? bsearch(&key, s->loss, (size_t)s->n_loss, sizeof key, by_iter)
                                         : NULL;
    return at ? at->value : NAN;
}

static bool same_number(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Notes the lowest part of the two, on the lowest rank. */
static void note(hp_bits *out, const hp_trace_value *v) {
    const int64_t what = hp_bits_what(v->value);
    if (out->same || what < out->what || (what == out->what && v->rank < out->rank))
        out->what = what, out->rank = v->rank;
    out->same = false;
}

/* Compares the parts of one step, [i, i_end) of a and [k, k_end) of b; a part in only one of them differs. */
static void compare_parts(const side *a, int64_t i, int64_t i_end, const side *b, int64_t k, int64_t k_end,
                          hp_bits *out) {
    while (i < i_end || k < k_end) {
        const int order = i == i_end ? 1 : k == k_end ? -1 : by_part(&a->bits[i], &b->bits[k]);
        if (order < 0) note(out, &a->bits[i]);
        if (order > 0) note(out, &b->bits[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

hp_status hp_bits_compare(hp_arena *arena, hp_db *db_a, hp_db *db_b, hp_bits *out, hp_error *err) {
    side a = {0}, b = {0};
    *out = (hp_bits){.same = true};
    HP_TRY(load(arena, db_a, &a, err));
    HP_TRY(load(arena, db_b, &b, err));
    for (int64_t i = 0, k = 0; i < a.n_bits || k < b.n_bits;) {
        const int64_t i_end = i < a.n_bits ? end_of_step(&a, i) : i,
                      k_end = k < b.n_bits ? end_of_step(&b, k) : k;
        const bool has_a = i < a.n_bits && (k == b.n_bits || a.bits[i].iter <= b.bits[k].iter);
        const bool has_b = k < b.n_bits && (i == a.n_bits || b.bits[k].iter <= a.bits[i].iter);
        out->only[0] += has_a && !has_b;
        out->only[1] += has_b && !has_a;
        if (has_a && has_b) {
            out->steps++;
            if (out->same) {
                out->iter = a.bits[i].iter;
                out->loss = !same_number(loss_of(&a, out->iter), loss_of(&b, out->iter));
                if (out->loss)
                    out->same = false;
                else
                    compare_parts(&a, i, i_end, &b, k, k_end, out);
            }
        }
        if (has_a) i = i_end;
        if (has_b) k = k_end;
    }
    if (out->steps == 0)
        return hp_fail(err, HP_EDATA, "%s and %s have no step in common", db_a->path, db_b->path);
    return HP_OK;
}
