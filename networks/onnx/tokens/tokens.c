/* tokens.c - the sources of tokens: table rows selected by ids, a class token in front, positions; and the
 * head tied to the table of ids. */
#include "networks/graph/layer.h"
#include "networks/onnx/tokens/terms.h"

#include <inttypes.h>
#include <string.h>

/* --- ids --- */

/* The output has x's dimensions and, as the last one, the table's columns as channels. */
static void result_of_ids(onnx_call *c, const onnx_value *ids, int32_t y, int64_t columns) {
    onnx_value like = *ids;
    int n = 0;
    like.dim[like.n_dim++] = columns;
    like.type = ONNX_FLOAT;
    for (int i = 0; i < HP_AXES; i++)
        if (ids->order[i] != HP_AXIS_C) like.order[n++] = ids->order[i];
    like.order[n] = HP_AXIS_C;
    onnx_result_like(c, y, &like);
}

hp_status onnx_term_embedding(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_const *table = &in[0]->c;
    const onnx_value *ids = in[1];
    int64_t axis = 0;
    int32_t y;
    (void)fits;
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &axis));
    if (axis != 0 || table->n_dim != 2 || table->count < 1 || ids->n_dim >= ONNX_MOST_DIMS)
        return onnx_fail(c, "takes something else than rows of a table by ids");
    if (ids->tensor != 0 || onnx_extent(c->r, ids, HP_AXIS_C) != 1 || !onnx_type_of(ids->type)->whole)
        return onnx_fail(c, "its ids are not the model's input, whole numbers of (N, tokens)");
    const hp_layer l = {.op = HP_EMBEDDING, .n_in = 1, .in = {ids->tensor}};
    HP_TRY(onnx_emit(c, l, table->dim[1], &y));
    HP_TRY(onnx_emit_param(c, HP_PARAM_TABLE, table->name, "weight", 2, table->dim, table->dim[1],
                           (hp_onnx_param){onnx_floats(c, table)}));
    in[0]->table = c->r->graph->n_param;
    result_of_ids(c, ids, y, table->dim[1]);
    return HP_OK;
}

/* The parameter that equals the transposed constant; -1: none. */
static int32_t table_of(const onnx_reader *r, const onnx_const *w) {
    const int32_t i = w->turned ? onnx_names_find(&r->names, w->turned) : -1;
    return i < 0 ? -1 : r->value[i].table - 1;
}

hp_status onnx_term_tied(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_const *w = &in[1]->c;
    const onnx_value *x = in[0];
    const int32_t table = table_of(c->r, w);
    int32_t y;
    *fits = table >= 0 && w->n_dim == 2 && onnx_is_channel_dim(c->r, x, x->n_dim - 1) &&
            w->dim[0] == onnx_extent(c->r, x, HP_AXIS_C);
    if (!*fits) return HP_OK;
    HP_TRY(onnx_emit(c, hp_pixel_layer(x->tensor), w->dim[1], &y));
    HP_TRY(onnx_emit_tied(c, table));
    onnx_value like = *x;
    like.dim[like.n_dim - 1] = w->dim[1];
    onnx_result_like(c, y, &like);
    return HP_OK;
}

/* --- the class token --- */

/* Is it tokens (N, H W, C), with rows and columns in dimension `axis`? */
static bool is_tokens(const onnx_reader *r, const onnx_value *x, int axis) {
    int of[HP_AXES];
    if (x->n_dim != 3 || axis != 1 || !onnx_axes(r, x, of)) return false;
    for (int i = 0, last = -1; i < HP_AXES; i++) {
        const int at = x->order[i];
        if (of[at] < 0) continue;
        if (at < last && at != HP_AXIS_N) return false;
        last = at;
    }
    return of[HP_AXIS_N] <= 0 && (of[HP_AXIS_H] < 0 || of[HP_AXIS_H] == axis) &&
           (of[HP_AXIS_W] < 0 || of[HP_AXIS_W] == axis) && onnx_is_channel_dim(r, x, 2);
}

/* Are the rows the same for all samples? */
static bool rows_alike(const onnx_const *k, int64_t samples) {
    const int64_t n = k->count / samples;
    for (int64_t i = n; k->data && i < k->count; i++)
        if (onnx_real(k, i) != onnx_real(k, i % n)) return false;
    return true;
}

hp_status onnx_term_classtoken(onnx_call *c, onnx_value *const *in, bool *fits) {
    onnx_const token = in[0]->c;
    const onnx_value *x = in[1];
    int64_t given = 0;
    int axis;
    int32_t y;
    (void)fits;
    HP_TRY(onnx_attr_int(c, "axis", -ONNX_MOST_DIMS, ONNX_MOST_DIMS, &given));
    HP_TRY(onnx_axis(c, given, x->n_dim, &axis));
    const int64_t channels = onnx_extent(c->r, x, HP_AXIS_C);
    if (!is_tokens(c->r, x, axis) || token.n_dim != 3 || token.dim[0] != x->dim[0] || token.dim[1] != 1 ||
        token.dim[2] != channels || !rows_alike(&token, x->dim[0]))
        return onnx_fail(
            c, "joins a constant and a tensor: supported is one class token of (N, 1, C) before tokens of "
               "(N, tokens, C), the same for all samples");
    token.count = channels;
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_CLASSTOKEN, .n_in = 1, .in = {x->tensor}}, 0, &y));
    HP_TRY(onnx_emit_param(c, HP_PARAM_TOKEN, token.name, "token", 1, &channels, channels,
                           (hp_onnx_param){onnx_floats(c, &token)}));
    onnx_value like = *x;
    like.dim[1]++;
    onnx_result_like(c, y, &like);
    return HP_OK;
}

/* --- places --- */

/* Is it a number for each row, column and channel of x, the same for all samples? */
static bool is_map(const onnx_reader *r, const onnx_value *x, const onnx_const *k) {
    int of[HP_AXES];
    if (k->n_dim > x->n_dim || !onnx_axes(r, x, of)) return false;
    for (int d = 0; d < x->n_dim; d++) {
        const int own = d - (x->n_dim - k->n_dim);
        const int64_t size = own >= 0 ? k->dim[own] : 1, wish = of[HP_AXIS_N] == d ? 1 : x->dim[d];
        if (size != wish) return false;
    }
    return k->count == hp_tensor_elems(r->graph, x->tensor);
}

/* In the order (H, W, C). */
static const float *map_floats(const onnx_call *c, const onnx_value *x, const onnx_const *k) {
    const hp_tensor *t = &c->r->graph->tensor[x->tensor];
    int64_t step[HP_AXES] = {0}, n = 1;
    if (!k->data || (!c->r->weights && k->count > INT64_C(1) << 16)) return NULL;
    for (int i = HP_AXES - 1; i >= 0; i--) {
        step[x->order[i]] = n;
        n *= x->order[i] == HP_AXIS_N ? 1 : onnx_extent(c->r, x, x->order[i]);
    }
    float *f = HP_NEW(c->r->arena, float, k->count);
    for (int64_t i = 0; i < k->count; i++)
        f[i] = (float)onnx_real(k, i / t->c / t->w * step[HP_AXIS_H] + i / t->c % t->w * step[HP_AXIS_W] +
                                       i % t->c * step[HP_AXIS_C]);
    return f;
}

hp_status onnx_term_position(onnx_call *c, onnx_value *const *in, bool *fits) {
    const onnx_value *x = in[0];
    const onnx_const *k = &in[1]->c;
    int32_t y;
    *fits = !onnx_per_channel(c->r, x, k) && is_map(c->r, x, k);
    if (!*fits) return HP_OK;
    const hp_tensor t = c->r->graph->tensor[x->tensor];
    const int64_t dim[2] = {(int64_t)t.h * t.w, t.c};
    HP_TRY(onnx_emit(c, (hp_layer){.op = HP_POSITION, .n_in = 1, .in = {x->tensor}}, 0, &y));
    HP_TRY(onnx_emit_param(c, HP_PARAM_TABLE, k->name, "table", 2, dim, t.c,
                           (hp_onnx_param){map_floats(c, x, k)}));
    onnx_value like = *x;
    like.type = ONNX_FLOAT;
    onnx_result_like(c, y, &like);
    return HP_OK;
}
