/* test_import.c - hplan import on a model of ONNX's own tests: its output, its files, its errors. Computing
 * with such a model: tests/cli/cli_import.sh. */
#include "tests/support/words/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL "/usr/share/libonnx-testdata/data/pytorch-converted/test_Conv2d_groups/model.onnx"

static bool is_there(const char *name) {
    return !access(name, F_OK);
}

static void need_model(void) {
    if (is_there(MODEL)) return;
    print_message("libonnx-testdata is not installed\n");
    skip();
}

static void what_is_no_model_is_refused(void **state) {
    static const char zeros[4000];
    static const words_row rows[] = {
        {2, "import", NULL, "."},
        {2, "import model.onnx", NULL, "."},
        {65, "import nothing.onnx -o no.db", NULL, "check the path"},
        {65, "import zeros.onnx -o no.db", NULL, "."},
    };
    words_write_bytes("zeros.onnx", zeros, sizeof zeros);
    each_row(*state, rows);
    assert_false(is_there("no.db") || is_there("no.safetensors"));
}

static void operators_and_shapes_are_said(void **state) {
    words *w = *state;
    need_model();
    hplan(w, 0, "import " MODEL " -o m.db");
    out_says(w, "^conv  *1  *78  *1152$");
    out_says(w, "^output .*\\(2, 6, 4, 4\\)");
    hplan(w, 0, "import " MODEL " -o m.db --json");
    near_to(words_number(w, "schema"), 1, 0);
    assert_string_equal(words_text(w, "net"), "onnx:model");
    near_to(words_number(w, "layers"), 2, 0);
    near_to(words_number(w, "parameters"), 78, 0);
    char *in = words_compact(w, "input/shape"), *out = words_compact(w, "output/shape");
    assert_string_equal(in, "[6,5,4]");
    assert_string_equal(out, "[2,6,4,4]");
    free(in);
    free(out);
}

/* Reads a safetensors file: the header length as 8 bytes, least significant first, then the header as
 * JSON. */
static json_t *read_head(const char *name) {
    size_t n, length = 0;
    char *bytes = words_read(name, &n);
    assert_true(bytes && n > 8);
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)bytes[i];
    assert_true(length <= n - 8);
    json_t *head = json_loadb(bytes + 8, length, 0, NULL);
    free(bytes);
    assert_non_null(head);
    return head;
}

static void has_tensor(json_t *head, const char *name, const char *shape) {
    const json_t *tensor = json_object_get(head, name);
    char *is = json_dumps(json_object_get(tensor, "shape"), JSON_COMPACT);
    assert_string_equal(json_string_value(json_object_get(tensor, "dtype")), "F32");
    assert_string_equal(is, shape);
    free(is);
}

static void weights_are_written_beside(void **state) {
    words *w = *state;
    need_model();
    hplan(w, 0, "import " MODEL " -o m.db");
    json_t *head = read_head("m.safetensors");
    has_tensor(head, "1", "[6,2,3,2]");
    has_tensor(head, "2", "[6]");
    json_decref(head);
}

static void files_that_cannot_be_written_are_refused(void **state) {
    static const words_row rows[] = {
        {2, "import " MODEL " -o " MODEL, NULL, "."},
        {65, "import " MODEL " -o q.safetensors", NULL,
         "hplan quantize"}, /* an int8 file from a model without scales */
        {73, "import " MODEL " -o nowhere/m.db", NULL, "."},
    };
    need_model();
    each_row(*state, rows);
    assert_false(is_there("q.safetensors"));
}

static void a_model_is_planned_from_either_file(void **state) {
    static const words_row rows[] = {
        {0, "import " MODEL " -o m.db", NULL, NULL},
        {0, "simulate --onnx m.db --mode infer --gpus 1 --machine local --out a.db", NULL, NULL},
        {0, "simulate --onnx " MODEL " --mode infer --gpus 1 --machine local --image 60x50 --out b.db", NULL,
         NULL},
        {0, "explain a.db", ".", NULL},
    };
    need_model();
    each_row(*state, rows);
}

/* ... gives a rejected file, or changes nothing that is read. */
static void a_changed_byte(void **state) {
    words *w = *state;
    size_t n;
    need_model();
    hplan(w, 0, "import " MODEL " -o m.db");
    char *bytes = words_read("m.db", &n);
    assert_non_null(bytes);
    bytes[n / 2] ^= (char)255;
    words_write_bytes("broken.db", bytes, n);
    free(bytes);
    hplan(w, ANY_STATUS, "simulate --onnx broken.db --mode infer --gpus 1 --machine local --out c.db");
    assert_true(w->status == 0 || w->status == 65);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(operators_and_shapes_are_said),
        cmocka_unit_test(weights_are_written_beside),
        cmocka_unit_test(files_that_cannot_be_written_are_refused),
        cmocka_unit_test(a_model_is_planned_from_either_file),
        cmocka_unit_test(a_changed_byte),
    };
    return cmocka_run_group_tests(tests, words_open, words_close);
}
