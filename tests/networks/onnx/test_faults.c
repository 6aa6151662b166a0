/* test_faults.c - faulty models: messages name the node and the fix; arbitrary bytes are survived. */
#include "networks/graph/fuse.h"
#include "networks/graph/graph_check.h"
#include "tests/support/onnx/onnx_odd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* --- messages --- */

typedef void change(onnx_writer *w);

static void of_unknown_operator(onnx_writer *w) {
    w->graph.node[0]->op_type = (char *)(uintptr_t) "Frobnicate";
}

static void of_unknown_attribute(onnx_writer *w) {
    onnx_write_int(w, w->graph.node[0], "twist", 1);
}

static void of_bad_attribute(onnx_writer *w) {
    onnx_write_int(w, w->graph.node[0], "group", 2);
}

static void of_missing_input(onnx_writer *w) {
    w->graph.node[0]->input[0] = (char *)(uintptr_t) "nowhere";
}

static void of_cycle(onnx_writer *w) {
    w->graph.node[3]->input[0] = (char *)(uintptr_t) "last";
}

static void of_two_images(onnx_writer *w) {
    const int64_t dim[4] = {1, 3, 8, 8};
    onnx_write_input(w, "second", 4, dim);
    onnx_write_node(w, "Add", "last second", "both");
    onnx_write_output(w, "both");
}

static void of_external_data(onnx_writer *w) {
    w->graph.initializer[0]->has_data_location = 1;
    w->graph.initializer[0]->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static void of_short_data(onnx_writer *w) {
    w->graph.initializer[5]->n_float_data--;
}

static void of_huge_constant(onnx_writer *w) {
    for (size_t d = 0; d < 4; d++) w->graph.initializer[5]->dims[d] = INT64_C(1) << 33;
}

static void of_negative_dimension(onnx_writer *w) {
    w->graph.initializer[5]->dims[0] = -1;
}

static void of_new_opset(onnx_writer *w) {
    w->opset.version = 99;
}

static void of_no_output(onnx_writer *w) {
    w->graph.n_output = 0;
}

static void of_name_twice(onnx_writer *w) {
    w->graph.node[1]->output[0] = w->graph.node[0]->output[0];
}

static void of_function_of_a_tensor(onnx_writer *w) {
    onnx_write_node(w, "Exp", "last", "exp");
    onnx_write_output(w, "exp");
}

static Onnx__NodeProto *named(Onnx__NodeProto *n, const char *name) {
    n->name = (char *)(uintptr_t)name;
    return n;
}

/* Pixels become channels, across axes; the convolution that reads them is not at fault. */
static void of_a_regrouping(onnx_writer *w) {
    onnx_write_integers(w, "to", 1, (const int64_t[]){4}, (const int64_t[]){1, 4, 8, 16});
    named(onnx_write_node(w, "Reshape", "last to", "mixed"), "the_mix");
    named(onnx_write_node(w, "Identity", "mixed", "same"), "the_copy");
    named(onnx_write_node(w, "Relu", "same", "relu"), "the_reader");
    onnx_write_output(w, "relu");
}

static void of_cut_channels(onnx_writer *w) {
    onnx_write_integers(w, "to", 1, (const int64_t[]){6}, (const int64_t[]){1, 2, 4, 4, 4, 4});
    named(onnx_write_node(w, "Reshape", "last to", "cut"), "the_cut");
    named(onnx_write_node(w, "Transpose", "cut", "turned"), "the_turn");
    onnx_write_ints(w, w->graph.node[w->graph.n_node - 1], "perm", 6, (const int64_t[]){0, 5, 1, 4, 3, 2});
    named(onnx_write_node(w, "Relu", "turned", "relu"), "the_reader");
    onnx_write_output(w, "relu");
}

static void of_a_second_output(onnx_writer *w) {
    const int64_t two[2] = {2, 2};
    Onnx__NodeProto *n = named(onnx_write_node(w, "MaxPool", "last", "pooled places"), "the_pool");
    onnx_write_ints(w, n, "kernel_shape", 2, two);
    named(onnx_write_node(w, "Cast", "places", "cast"), "the_cast");
    onnx_write_int(w, w->graph.node[w->graph.n_node - 1], "to", 1);
    onnx_write_output(w, "cast");
}

static void of_a_function(onnx_writer *w) {
    static Onnx__FunctionProto f, *list[1] = {&f};
    onnx__function_proto__init(&f);
    f.name = (char *)(uintptr_t) "Relu"; /* takes precedence over the operator */
    f.domain = (char *)(uintptr_t) "";
    w->model.functions = list;
    w->model.n_functions = 1;
}

static void of_three_unknown(onnx_writer *w) {
    onnx_write_node(w, "TopK", "last", "top");
    onnx_write_node(w, "Frobnicate", "top", "frob");
    onnx_write_node(w, "TopK", "frob", "again");
    onnx_write_output(w, "again");
}

static void of_mode(onnx_writer *w) {
    for (size_t i = 0; i < w->graph.n_node; i++)
        if (strcmp(w->graph.node[i]->op_type, "Resize") == 0)
            onnx_write_text(w, w->graph.node[i], "mode", "lanczos");
}

static void messages_name_the_node_and_the_fix(void **state) {
    static const struct {
        change *make;
        const char *says[2];
    } cases[] = {
        {of_unknown_operator, {"node 'c1' (Frobnicate)", "not supported"}},
        {of_unknown_attribute, {"node 'c1' (Conv)", "attribute 'twist' is not supported"}},
        {of_bad_attribute, {"2 groups do not divide", "3 inputs"}},
        {of_missing_input, {"node 'c1' (Conv): nothing makes 'nowhere'", "export the model again"}},
        {of_cycle, {"which is made of its own result", "a cycle"}},
        {of_two_images, {"'pixels' and 'second'", "make the others constants"}},
        {of_external_data, {"another file", "save_as_external_data=False"}},
        {of_short_data, {"constant 's.many'", "another number of elements"}},
        {of_huge_constant, {"constant 's.many'", "too large"}},
        {of_negative_dimension, {"constant 's.many'", "negative"}},
        {of_new_opset, {"opset 99", "export with opset"}},
        {of_no_output, {"no output", ""}},
        {of_name_twice, {"two things make 'c1'", ""}},
        {of_function_of_a_tensor, {"node 'exp' (Exp)", "only of constants"}},
        {of_a_regrouping, {"node 'the_copy' (Identity)", "after node 'the_mix' (Reshape)"}},
        {of_cut_channels, {"node 'the_turn' (Transpose)", "after node 'the_cut' (Reshape)"}},
        {of_a_second_output, {"node 'the_pool' (MaxPool): its output 2, 'places'", ""}},
        {of_a_function, {"(Relu): is a function of the model", "inline it"}},
        {of_three_unknown, {"node 'top' (TopK): this operator is not supported; nor", "read Frobnicate"}},
        {of_mode, {"mode 'lanczos'", "nearest, linear and cubic are"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hp_arena *a = hp_arena_new();
        onnx_writer w = odd_model(a);
        hp_onnx_model m;
        hp_error err = {0};
        cases[i].make(&w);
        assert_int_equal(odd_parse(&w, 8, 8, &m, &err), HP_EDATA);
        for (int k = 0; k < 2; k++)
            if (!strstr(err.text, cases[i].says[k]))
                fail_msg("'%s' does not say '%s'", err.text, cases[i].says[k]);
        assert_non_null(strstr(err.text, "dir/a_model.onnx: "));
        assert_null(strstr(err.text, "the_reader"));
        hp_arena_free(a);
    }
}

static void an_open_size_asks_for_the_image(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    hp_onnx_model m;
    hp_error err = {0};
    assert_int_equal(odd_parse(&w, 0, 0, &m, &err), HP_EUSAGE);
    assert_non_null(strstr(err.text, "--image"));
    hp_arena_free(a);
}

/* --- bytes from strangers --- */

/* Either an error with a message, or a graph that passes every check. */
static void assert_harmless(const void *data, size_t size, bool structure) {
    hp_arena *a = hp_arena_new();
    hp_onnx_model m;
    hp_error err = {0};
    const hp_status s = hp_onnx_parse(a, "x.onnx", data, size, structure, 8, 8, !structure, &m, &err);
    if (s == HP_OK && hp_graph_check(m.graph, &err) != HP_OK) fail_msg("%s", err.text);
    if (s == HP_OK && hp_graph_check(hp_graph_fuse(a, m.graph), &err) != HP_OK) fail_msg("%s", err.text);
    if (s != HP_OK) assert_true(err.text[0] != 0 && (s == HP_EDATA || s == HP_EPLAN || s == HP_EUSAGE));
    hp_arena_free(a);
}

static void every_cut_and_every_changed_byte_is_harmless(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    size_t size;
    unsigned char *data = onnx_writer_pack(&w, &size);
    for (size_t n = 0; n <= size; n++) assert_harmless(data, n, n % 2);
    for (size_t i = 0; i < size; i++) {
        static const unsigned char with[] = {0x01, 0x80, 0xff, 0x10};
        for (size_t k = 0; k < sizeof with; k++) {
            data[i] ^= with[k];
            assert_harmless(data, size, k % 2);
            data[i] ^= with[k];
        }
    }
    hp_arena_free(a);
}

/* A truncated model is not taken for another kind of file. */
static void a_cut_model_is_said_to_be_cut(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    size_t size;
    w.model.producer_name = (char *)(uintptr_t) "pytorch";
    w.model.producer_version = (char *)(uintptr_t) "2.9.0";
    const unsigned char *data = onnx_writer_pack(&w, &size);
    for (size_t n = size / 2; n < size; n += 7) {
        hp_onnx_model m;
        hp_error err = {0};
        assert_int_equal(hp_onnx_parse(a, "x.onnx", data, n, false, 8, 8, true, &m, &err), HP_EDATA);
        assert_null(strstr(err.text, "it is an ONNX model"));
        assert_non_null(strstr(err.text, "export it again"));
    }
    hp_arena_free(a);
}

/* Encloses the end of the buffer in length-delimited field `number`; returns the new beginning. */
static unsigned char *wrap(unsigned char *at, const unsigned char *end, int number) {
    uint64_t n = (uint64_t)(end - at);
    unsigned char varint[10];
    int bytes = 0;
    do {
        varint[bytes++] = (unsigned char)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
        n >>= 7;
    } while (n);
    at -= bytes;
    memcpy(at, varint, (size_t)bytes);
    *--at = (unsigned char)(number << 3 | 2);
    return at;
}

/* Graphs in attributes of nodes of graphs ...: protobuf-c would recurse to that depth. */
static void deep_nesting_is_refused(void **state) {
    enum { DEPTH = 100000, ROOM = DEPTH * 3 * 8 };
    (void)state;
    hp_arena *a = hp_arena_new();
    unsigned char *room = hp_arena_alloc(a, ROOM), *end = room + ROOM, *at = end;
    for (int i = 0; i < DEPTH; i++) at = wrap(wrap(wrap(at, end, 6), end, 5), end, 1);
    at = wrap(at, end, 7);
    hp_onnx_model m;
    hp_error err = {0};
    assert_int_equal(hp_onnx_parse(a, "x.onnx", at, (size_t)(end - at), false, 8, 8, true, &m, &err),
                     HP_EDATA);
    assert_non_null(strstr(err.text, "nested too deep"));
    hp_arena_free(a);
}

/* A million empty nodes take two megabytes in the file and would take two hundred times that in memory. */
static void many_messages_are_refused(void **state) {
    enum { NODES = 2000000 };
    (void)state;
    hp_arena *a = hp_arena_new();
    unsigned char *room = hp_arena_alloc(a, 2 * NODES + 64), *end = room + 2 * NODES + 64, *at = end;
    for (int i = 0; i < NODES; i++) {
        *--at = 0;
        *--at = 1 << 3 | 2;
    }
    at = wrap(at, end, 7);
    hp_onnx_model m;
    hp_error err = {0};
    assert_int_equal(hp_onnx_parse(a, "x.onnx", at, (size_t)(end - at), false, 8, 8, true, &m, &err),
                     HP_EDATA);
    assert_non_null(strstr(err.text, "too many messages"));
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_name_the_node_and_the_fix),
        cmocka_unit_test(an_open_size_asks_for_the_image),
        cmocka_unit_test(every_cut_and_every_changed_byte_is_harmless),
        cmocka_unit_test(a_cut_model_is_said_to_be_cut),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(many_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
