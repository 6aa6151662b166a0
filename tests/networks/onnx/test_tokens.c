/* test_tokens.c - transformers from ONNX: any exporter's spelling gives the built-in network, layer by layer
 * and number by number; anything else is rejected at its node. */
#include "networks/graph/graph_check.h"
#include "networks/graph/fuse.h"
#include "networks/graph/graph_json.h"
#include "networks/onnx/model.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/onnx_tokens.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { SPELLINGS = 64 * SPLITS };

/* --- networks --- */

static const struct net {
    const char *name;
    int h, w;
    unsigned spellings; /* further spellings make no difference to it */
} nets[] = {
    {"vit:2,8,2,4", 8, 12, SPELLINGS}, {"gpt:2,12,3,5,11", 5, 1, SPELLINGS *MASKS}, {"windows", 16, 24, 64}};

static const hp_graph *built(hp_arena *a, const struct net *net) {
    hp_graph *g;
    hp_error err = {0};
    if (strcmp(net->name, "windows") == 0)
        g = tokens_windows(a, net->h, net->w, &err);
    else if (hp_net_build(a, net->name, net->h, net->w, 7, &g, &err) != HP_OK)
        g = NULL;
    if (!g) fail_msg("%s", err.text);
    return g;
}

static const float *const *drawn_params(hp_arena *a, const hp_graph *g) {
    const float **param = HP_NEW(a, const float *, g->n_param);
    for (int i = 0; i < g->n_param; i++) param[i] = drawn(a, (uint64_t)i + 1, g->param[i].count);
    return param;
}

static hp_status read_model(onnx_writer *w, hp_onnx_model *m, hp_error *err) {
    size_t size;
    const void *data = onnx_writer_pack(w, &size);
    return hp_onnx_parse(w->arena, "model.onnx", data, size, false, 0, 0, true, m, err);
}

static hp_onnx_model parsed(onnx_writer *w) {
    hp_onnx_model m;
    hp_error err = {0};
    if (read_model(w, &m, &err) != HP_OK) fail_msg("%s", err.text);
    if (hp_graph_check(m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    return m;
}

/* --- the same network --- */

static void assert_same_layer(const hp_graph *a, const hp_graph *b, int at) {
    const hp_layer *l = &a->layer[at], *k = &b->layer[at];
    const hp_tensor *x = &a->tensor[l->out], *y = &b->tensor[k->out];
    if (l->op != k->op)
        fail_msg("layer %d is %s, not %s", at, hp_layer_infos[l->op].name, hp_layer_infos[k->op].name);
    assert_int_equal(l->n_in, k->n_in);
    for (int i = 0; i < l->n_in; i++) assert_int_equal(l->in[i], k->in[i]);
    assert_true(x->h == y->h && x->w == y->w && x->c == y->c && x->tp_unit == y->tp_unit);
    assert_true(l->act == k->act && l->tp == k->tp && l->groups == k->groups &&
                l->attention.kv_heads == k->attention.kv_heads &&
                l->attention.causal == k->attention.causal && l->window.pad_h == k->window.pad_h &&
                l->window.pad_w == k->window.pad_w && l->window.kh == k->window.kh &&
                l->window.kw == k->window.kw && l->window.stride_h == k->window.stride_h);
    assert_true(fabs(l->eps - k->eps) <= 1e-6 * k->eps);
    assert_int_equal(l->n_param, k->n_param);
    for (int i = 0; i < l->n_param; i++) assert_int_equal(l->param[i], k->param[i]);
}

static void assert_same_param(const hp_param *p, const float *data, const hp_param *q, const float *wanted) {
    assert_true(p->kind == q->kind && p->n_dim == q->n_dim && p->layer == q->layer && p->fan_in == q->fan_in);
    for (int d = 0; d < p->n_dim; d++) assert_int_equal(p->dim[d], q->dim[d]);
    for (int64_t i = 0; i < p->count; i++)
        if (fabsf(data[i] - wanted[i]) > 1e-6f)
            fail_msg("%s: element %d is %g, not %g", p->name, (int)i, (double)data[i], (double)wanted[i]);
}

static void assert_built_in(const struct net *net, tokens_spelling s) {
    hp_arena *a = hp_arena_new();
    const hp_graph *g = built(a, net);
    const float *const *param = drawn_params(a, g);
    onnx_writer w = tokens_model(a, g, param, s);
    const hp_onnx_model m = parsed(&w);
    assert_int_equal(m.graph->n_layer, g->n_layer);
    assert_int_equal(m.graph->n_param, g->n_param);
    for (int l = 0; l < g->n_layer; l++) assert_same_layer(m.graph, g, l);
    for (int p = 0; p < g->n_param; p++)
        assert_same_param(&m.graph->param[p], m.param[p].data, &g->param[p], param[p]);
    hp_arena_free(a);
}

static void every_spelling_is_the_built_in_network(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++)
        for (unsigned bits = 0; bits < nets[n].spellings; bits++)
            assert_built_in(&nets[n], tokens_spelling_of(bits));
}

static void the_operator_of_opset_23_is_the_same(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++)
        for (unsigned bits = 0; bits < 18; bits++)
            assert_built_in(&nets[n], (tokens_spelling){.norm_op = true,
                                                        .batch = bits % 3 ? 3 : 0,
                                                        .split = bits & 1 ? SPLIT_SLICES : SPLIT_SPLIT,
                                                        .mask = (tokens_mask)(bits % MASKS),
                                                        .fused = bits / 9 ? FUSED_HEADS : FUSED_FLAT});
}

/* The model in the database, without weights. */
static void a_database_holds_transformers(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++)
        for (unsigned bits = 8; bits < nets[n].spellings; bits += 64) {
            hp_arena *a = hp_arena_new();
            hp_error err = {0};
            const hp_graph *g = built(a, &nets[n]);
            onnx_writer w = tokens_model(a, g, drawn_params(a, g), tokens_spelling_of(bits));
            const char *path = hp_arena_printf(a, "test_tokens.%d.onnx", (int)getpid()),
                       *db = hp_arena_printf(a, "test_tokens.%d.db", (int)getpid());
            size_t size;
            const void *data = onnx_writer_pack(&w, &size);
            hp_graph *there = NULL;
            FILE *f = fopen(path, "wb");
            assert_true(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
            const hp_onnx_model m = parsed(&w);
            if (hp_model_write(db, path, m.graph, &err) != HP_OK) fail_msg("%s", err.text);
            if (hp_model_read(a, db, 0, 0, &there, &err) != HP_OK) fail_msg("%s", err.text);
            assert_string_equal(hp_graph_text(a, there), hp_graph_text(a, hp_graph_fuse(a, m.graph)));
            unlink(path);
            unlink(db);
            hp_arena_free(a);
        }
}

/* --- refusals --- */

/* Changes a node. */
typedef void change_fn(onnx_writer *w, Onnx__NodeProto *n);

static void another_axis(onnx_writer *w, Onnx__NodeProto *n) {
    (void)w;
    n->attribute[0]->i = 0;
}

static void of_scores_relu(onnx_writer *w, Onnx__NodeProto *n) {
    n->op_type = hp_arena_strdup(w->arena, "Relu");
    n->n_attribute = 0;
}

static void two_indices(onnx_writer *w, Onnx__NodeProto *n) {
    onnx_write_integers(w, "two", 1, (const int64_t[1]){2}, (const int64_t[2]){0, 1});
    n->input[1] = hp_arena_strdup(w->arena, "two");
}

static void other_mask(onnx_writer *w, Onnx__NodeProto *n) {
    const unsigned char none[25] = {1};
    onnx_write_bytes(w, "other", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, 2, (const int64_t[2]){5, 5}, none,
                     sizeof none);
    n->input[0] = hp_arena_strdup(w->arena, "other");
}

static void no_minus_infinity(onnx_writer *w, Onnx__NodeProto *n) {
    write_number(w, "minus.one", -1);
    n->input[1] = hp_arena_strdup(w->arena, "minus.one");
}

static void another_roll(onnx_writer *w, Onnx__NodeProto *n) {
    onnx_write_integers(w, "three", 1, (const int64_t[1]){1}, (const int64_t[1]){3});
    for (size_t i = 0; i < w->graph.n_node; i++) /* both slices of the first roll */
        for (size_t k = 0; k < w->graph.node[i]->n_output; k++)
            for (size_t j = 0; j < n->n_input; j++)
                if (strcmp(w->graph.node[i]->output[k], n->input[j]) == 0)
                    w->graph.node[i]->input[j == 0 ? 1 : 2] = hp_arena_strdup(w->arena, "three");
}

static void uneven_bias(onnx_writer *w, Onnx__NodeProto *n) {
    onnx_write_floats(w, "uneven", 4, (const int64_t[4]){1, 2, 16, 16}, drawn(w->arena, 98, 512));
    n->input[1] = hp_arena_strdup(w->arena, "uneven");
}

static void two_tokens(onnx_writer *w, Onnx__NodeProto *n) {
    onnx_write_floats(w, "tokens", 3, (const int64_t[3]){1, 2, 8}, drawn(w->arena, 99, 16));
    n->input[0] = hp_arena_strdup(w->arena, "tokens");
}

static const struct refusal {
    int net;
    unsigned bits;
    const char *op;
    int nth; /* node of the operator */
    change_fn *change;
    const char *node, *says;
} refusals[] = {
    {0, 0, "Softmax", 0, another_axis, "(Softmax)", "not the last"},
    {0, 0, "Softmax", 0, of_scores_relu, "(Relu)", "queries times keys"},
    {0, 0, "Gather", 0, two_indices, "(Gather)", "takes 2 indices"},
    {0, 0, "Concat", 0, two_tokens, "(Concat)", "one class token"},
    {1, 0, "Where", 0, other_mask, "(Where)", "hides other tokens"},
    {2, 0, "Concat", 0, another_roll, "(Add)", "its mask hides other tokens"},
    {2, 1, "Add", 1, uneven_bias, "(MatMul)", "by relative position"},
    {1, 0, "Where", 0, no_minus_infinity, "(Where)", "minus infinity"},
};

static void what_is_no_transformer_is_refused_at_its_node(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *r = &refusals[i];
        hp_arena *a = hp_arena_new();
        const hp_graph *g = built(a, &nets[r->net]);
        onnx_writer w = tokens_model(a, g, drawn_params(a, g), tokens_spelling_of(r->bits));
        hp_onnx_model m;
        hp_error err = {0};
        size_t n = 0;
        for (int left = r->nth; strcmp(w.graph.node[n]->op_type, r->op) != 0 || left-- > 0;) n++;
        r->change(&w, w.graph.node[n]);
        const hp_status s = read_model(&w, &m, &err);
        assert_int_equal(s, HP_EDATA);
        if (!strstr(err.text, r->node) || !strstr(err.text, r->says)) fail_msg("%s: %s", r->says, err.text);
        hp_arena_free(a);
    }
}

/* --- the operator of opset 23 --- */

static void softcap(onnx_writer *w, Onnx__NodeProto *n) {
    Onnx__AttributeProto *a =
        onnx_write_attribute(w, n, "softcap", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = 30;
}

/* Seven inputs: keys of earlier steps after the mask, or lengths after these. */
static void give_input(Onnx__NodeProto *n, size_t at) {
    static char nothing[] = "";
    static char *inputs[7];
    for (size_t i = 0; i < 7; i++) inputs[i] = i < 3 ? n->input[i] : i == at ? n->input[1] : nothing;
    n->input = inputs;
    n->n_input = 7;
}

static void past_key(onnx_writer *w, Onnx__NodeProto *n) {
    (void)w;
    give_input(n, 4);
}

static void lengths(onnx_writer *w, Onnx__NodeProto *n) {
    (void)w;
    give_input(n, 6);
}

static void odd_heads(onnx_writer *w, Onnx__NodeProto *n) {
    (void)w;
    n->attribute[0]->i = 5;
}

static void no_heads(onnx_writer *w, Onnx__NodeProto *n) {
    (void)w;
    n->n_attribute = 0;
}

static void read_scores(onnx_writer *w, Onnx__NodeProto *n) {
    static char y[] = "y", nothing[] = "", scores[] = "the_scores";
    static char *outputs[4] = {y, nothing, nothing, scores};
    n->output = outputs;
    n->n_output = 4;
    onnx_write_node(w, "Relu", "the_scores", "of_scores");
    onnx_write_output(w, "of_scores");
}

static void other_opset(onnx_writer *w, Onnx__NodeProto *n) {
    (void)n;
    w->opset.version = 22;
}

static void what_the_operator_has_beside_is_refused_by_name(void **state) {
    static const struct {
        change_fn *change;
        const char *says;
    } cases[] = {{softcap, "attribute softcap = 30 is not supported"},
                 {past_key, "its input past_key is not supported"},
                 {lengths, "its input nonpad_kv_seqlen is not supported"},
                 {odd_heads, "= 5 does not divide"},
                 {no_heads, "or 3 and the attribute q_num_heads"},
                 {read_scores, "its output 4, 'the_scores', is not supported"},
                 {other_opset, "is read from opset 23 on, the model is of 22"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = built(a, &nets[0]);
        onnx_writer w =
            tokens_model(a, g, drawn_params(a, g), (tokens_spelling){.norm_op = true, .fused = FUSED_FLAT});
        hp_onnx_model m;
        hp_error err = {0};
        size_t n = 0;
        while (strcmp(w.graph.node[n]->op_type, "Attention") != 0) n++;
        cases[i].change(&w, w.graph.node[n]);
        assert_int_equal(read_model(&w, &m, &err), HP_EDATA);
        if (!strstr(err.text, "(Attention)") || !strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].says, err.text);
        hp_arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_spelling_is_the_built_in_network),
                                       cmocka_unit_test(the_operator_of_opset_23_is_the_same),
                                       cmocka_unit_test(what_the_operator_has_beside_is_refused_by_name),
                                       cmocka_unit_test(a_database_holds_transformers),
                                       cmocka_unit_test(what_is_no_transformer_is_refused_at_its_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
