/* terms.c - finds the row of terms.def for a node. */
#include "networks/onnx/tokens/terms.h"

#include <string.h>

enum { MOST_KINDS = 3 };

typedef struct row {
    const char *op;
    onnx_kind kind[MOST_KINDS]; /* ONNX_NOTHING: no more inputs */
    bool swaps;
    onnx_term_reader *read;
} row;

#define KINDS_OF(...) KINDS(__VA_ARGS__, NOTHING, NOTHING, )
#define KINDS(a, b, c, ...)                                                                                  \
    { ONNX_##a, ONNX_##b, ONNX_##c }
#define TERM(op, kinds, swaps, function) {op, KINDS_OF kinds, swaps, onnx_term_##function},
static const row rows[] = {
#include "networks/onnx/tokens/terms.def"
};
#undef TERM

static bool fits_kinds(const row *t, onnx_value *const *in, int n) {
    for (int i = 0; i < MOST_KINDS; i++) {
        const onnx_kind kind = i < n && in[i] ? in[i]->kind : ONNX_NOTHING;
        if (kind != t->kind[i] || (i < n && in[i] && in[i]->quant)) return false;
    }
    return true;
}

static hp_status try_row(onnx_call *c, const row *t, onnx_value *const *in, int n, bool *done) {
    *done = fits_kinds(t, in, n);
    return *done ? t->read(c, in, done) : HP_OK;
}

hp_status onnx_read_term(onnx_call *c, bool *done) {
    onnx_value *const swapped[2] = {onnx_in(c, 1), onnx_in(c, 0)};
    *done = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !*done; i++) {
        if (strcmp(rows[i].op, c->op->name) != 0) continue;
        HP_TRY(try_row(c, &rows[i], c->in, c->n_in, done));
        if (!*done && rows[i].swaps && c->n_in == 2) HP_TRY(try_row(c, &rows[i], swapped, 2, done));
    }
    return HP_OK;
}

const char *onnx_kind_name(onnx_kind kind) {
    static const char *const names[ONNX_KINDS] = {
        [ONNX_NOTHING] = "nothing",
        [ONNX_CONST] = "a constant",
        [ONNX_TENSOR] = "a tensor",
        [ONNX_VIEW] = "a tensor cut into parts, as into heads",
        [ONNX_MEAN] = "the mean over channels",
        [ONNX_CENTRED] = "a tensor less its mean",
        [ONNX_SQUARED] = "squares of a tensor less its mean",
        [ONNX_VARIANCE] = "the variance over channels",
        [ONNX_DEVIATION] = "the deviation over channels",
        [ONNX_NORMED] = "a normalised tensor",
        [ONNX_SCORES] = "queries times keys",
        [ONNX_SHARES] = "the softmax of queries times keys",
    };
    return names[kind];
}

void onnx_term_result(onnx_call *c, onnx_kind kind, const onnx_value *x, onnx_term t) {
    onnx_term *own = HP_NEW(c->r->scratch, onnx_term, 1);
    *own = t;
    own->node = c->node;
    c->out->kind = kind;
    c->out->type = ONNX_FLOAT;
    c->out->quant = NULL;
    c->out->view = NULL;
    c->out->term = own;
    c->out->tensor = t.x.tensor;
    c->out->n_dim = x->n_dim;
    memmove(c->out->dim, x->dim, sizeof c->out->dim);
}

bool onnx_is_number(const onnx_value *v, double *number) {
    if (v->kind != ONNX_CONST || v->c.count != 1 || !v->c.data) return false;
    *number = onnx_real(&v->c, 0);
    return true;
}
