/* onnx_cases.h - runs the cases of ONNX's backend test suite (Debian: libonnx-testdata): a model, inputs and the
 * outputs that are expected. Inputs beside the image become constants of the model; which input is the image is
 * tried in turn. */
#ifndef TESTS_ONNX_CASES_H
#define TESTS_ONNX_CASES_H

#include "plan/onnx/onnx.h"
#include "plan/onnx/onnx_file.h"
#include "plan/tile.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers of a TensorProto as double; NULL for types that are none --- */

static double *case_numbers(hp_arena *a, const Onnx__TensorProto *t, int64_t *count) {
    *count = 1;
    for (size_t d = 0; d < t->n_dims; d++) *count *= t->dims[d];
    double *out = HP_NEW(a, double, *count);
    const unsigned char *raw = t->has_raw_data ? t->raw_data.data : NULL;
    for (int64_t i = 0; i < *count; i++) {
        float f;
        int64_t n;
        int32_t k;
        switch (t->data_type) {
        case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
            f = raw ? 0 : t->float_data[i];
            if (raw) memcpy(&f, raw + 4 * i, 4);
            out[i] = (double)f;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
            if (raw) memcpy(&out[i], raw + 8 * i, 8);
            else out[i] = t->double_data[i];
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
            n = raw ? 0 : t->int64_data[i];
            if (raw) memcpy(&n, raw + 8 * i, 8);
            out[i] = (double)n;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
            k = raw ? 0 : t->int32_data[i];
            if (raw) memcpy(&k, raw + 4 * i, 4);
            out[i] = k;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
            out[i] = raw ? raw[i] : t->int32_data[i];
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
            out[i] = raw ? (signed char)raw[i] : t->int32_data[i];
            break;
        default:
            return NULL;
        }
    }
    return out;
}

/* --- files --- */

static void *case_file(hp_arena *a, const char *folder, const char *name, size_t *size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    void *data = hp_arena_alloc(a, *size + 1);
    if (fread(data, 1, *size, f) != *size) *size = 0;
    fclose(f);
    return data;
}

static Onnx__TensorProto *case_tensor(hp_arena *a, const char *folder, const char *kind, int i) {
    char name[64];
    size_t size = 0;
    snprintf(name, sizeof name, "test_data_set_0/%s_%d.pb", kind, i);
    void *data = case_file(a, folder, name, &size);
    return data ? onnx__tensor_proto__unpack(NULL, size, data) : NULL;
}

/* --- one case --- */

enum { CASE_MOST_INPUTS = 8 };

/* Computes one sample: image and *out are (H, W, C). false with err: it cannot be run. */
typedef bool case_runner(hp_arena *a, const hp_onnx_model *m, const double *image, double *out, hp_error *err);

typedef enum case_result { CASE_PASSED, CASE_REFUSED, CASE_FAILED } case_result;

static int64_t case_extent(const hp_graph *g, int tensor, int64_t batch, int axis) {
    const hp_tensor *t = &g->tensor[tensor];
    return axis == HP_AXIS_N ? batch : axis == HP_AXIS_H ? t->h : axis == HP_AXIS_W ? t->w : t->c;
}

/* Place in (N, H, W, C) of element `at` of ONNX's order. */
static int64_t case_place(const hp_graph *g, int tensor, int64_t batch, const int32_t *order, int64_t at) {
    int64_t k[HP_AXES];
    for (int i = HP_AXES - 1; i >= 0; i--) {
        const int64_t n = case_extent(g, tensor, batch, order[i]);
        k[order[i]] = at % n;
        at /= n;
    }
    const hp_tensor *t = &g->tensor[tensor];
    return ((k[HP_AXIS_N] * t->h + k[HP_AXIS_H]) * t->w + k[HP_AXIS_W]) * t->c + k[HP_AXIS_C];
}

static double case_quantised(const hp_onnx_layout *o, double v, int64_t channel) {
    const int64_t i = o->n_scale == 1 ? 0 : channel;
    return fmin(fmax(nearbyint(v / o->scale[i]) + o->zero[i], o->low), o->high);
}

/* ONNX's own tolerance: onnx.backend.test.runner, rtol 1e-3 and atol 1e-7; whole numbers exactly. Two roundings of
 * a half may differ by one step. */
static bool case_close(double got, double wanted, bool whole, bool quantised) {
    if (quantised) return fabs(got - wanted) <= 1;
    if (whole) return nearbyint(got) == wanted;
    return fabs(got - wanted) <= 1e-7 + 1e-3 * fabs(wanted);
}

static case_result case_compare(hp_arena *a, const hp_onnx_model *m, const double *out, int64_t batch,
                                const Onnx__TensorProto *expected, char *why, size_t n_why) {
    const hp_graph *g = m->graph;
    const int last = g->n_tensor - 1;
    int64_t count;
    const double *wanted = case_numbers(a, expected, &count);
    const bool whole = expected->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
                       expected->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
    if (!wanted || count != batch * hp_tensor_elems(g, last) || (size_t)m->output.n_dim != expected->n_dims) {
        snprintf(why, n_why, "another number of outputs or dimensions");
        return CASE_FAILED;
    }
    for (size_t d = 0; d < expected->n_dims; d++)
        if (m->output.dim[d] != expected->dims[d]) {
            snprintf(why, n_why, "dimension %zu is %lld", d, (long long)m->output.dim[d]);
            return CASE_FAILED;
        }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = case_place(g, last, batch, m->output.order, i);
        const double v = m->output.quantised ? case_quantised(&m->output, out[at], at % g->tensor[last].c) : out[at];
        if (case_close(v, wanted[i], whole, m->output.quantised)) continue;
        snprintf(why, n_why, "element %lld is %.9g, not %.9g", (long long)i, v, wanted[i]);
        return CASE_FAILED;
    }
    return CASE_PASSED;
}

static case_result case_run_model(hp_arena *a, const hp_onnx_model *m, const Onnx__TensorProto *input,
                                  const Onnx__TensorProto *expected, case_runner *run, char *why, size_t n_why) {
    const hp_graph *g = m->graph;
    const int64_t in_elems = hp_tensor_elems(g, 0), out_elems = hp_tensor_elems(g, g->n_tensor - 1);
    int64_t count;
    hp_error err = {0};
    const double *numbers = case_numbers(a, input, &count);
    const int64_t batch = numbers ? count / in_elems : 0;
    if (!numbers || batch < 1 || batch * in_elems != count) {
        snprintf(why, n_why, "another number of inputs");
        return CASE_FAILED;
    }
    double *image = HP_NEW(a, double, count), *out = HP_NEW(a, double, batch * out_elems);
    for (int64_t i = 0; i < count; i++) image[case_place(g, 0, batch, m->input.order, i)] = numbers[i];
    for (int64_t n = 0; n < batch; n++)
        if (!run(a, m, image + n * in_elems, out + n * out_elems, &err)) {
            snprintf(why, n_why, "%.200s", err.text);
            return CASE_FAILED;
        }
    return case_compare(a, m, out, batch, expected, why, n_why);
}

/* The model with input `image` left and the others as constants, packed again. */
static void *case_repack(hp_arena *a, Onnx__ModelProto *m, Onnx__TensorProto *const *input, int n, int image,
                         size_t *size) {
    Onnx__GraphProto *g = m->graph;
    Onnx__GraphProto changed = *g;
    Onnx__TensorProto **all = HP_NEW(a, Onnx__TensorProto *, g->n_initializer + (size_t)n);
    memcpy(all, g->initializer, sizeof *all * g->n_initializer);
    changed.initializer = all;
    for (int i = 0; i < n; i++) {
        if (i == image || !input[i]) continue;
        input[i]->name = g->input[i]->name;
        bool given = false;
        for (size_t k = 0; k < g->n_initializer; k++) given |= strcmp(g->initializer[k]->name, g->input[i]->name) == 0;
        if (!given) all[changed.n_initializer++] = input[i];
    }
    m->graph = &changed;
    *size = onnx__model_proto__get_packed_size(m);
    void *data = hp_arena_alloc(a, *size);
    onnx__model_proto__pack(m, data);
    m->graph = g;
    return data;
}

static case_result case_run(const char *folder, case_runner *run, char *why, size_t n_why) {
    hp_arena *a = hp_arena_new();
    size_t size = 0;
    Onnx__TensorProto *input[CASE_MOST_INPUTS] = {0};
    case_result result = CASE_REFUSED;
    void *data = case_file(a, folder, "model.onnx", &size);
    Onnx__ModelProto *m = data ? onnx__model_proto__unpack(NULL, size, data) : NULL;
    Onnx__TensorProto *expected = case_tensor(a, folder, "output", 0);
    const int n = m && m->graph->n_input < CASE_MOST_INPUTS ? (int)m->graph->n_input : 0;
    snprintf(why, n_why, m && expected ? "it has no input" : "no tensors");
    for (int i = 0; i < n; i++) input[i] = case_tensor(a, folder, "input", i);
    for (int i = 0; i < n && m && expected && result == CASE_REFUSED; i++) {
        hp_onnx_model model;
        hp_error err = {0};
        if (!input[i]) continue;
        void *packed = case_repack(a, m, input, n, i, &size);
        if (hp_onnx_parse(a, "model.onnx", packed, size, false, 0, 0, true, &model, &err) == HP_OK)
            result = case_run_model(a, &model, input[i], expected, run, why, n_why);
        else if (i == 0)
            snprintf(why, n_why, "%s", err.text);
    }
    for (int i = 0; i < n; i++)
        if (input[i]) {
            input[i]->name = NULL;
            onnx__tensor_proto__free_unpacked(input[i], NULL);
        }
    if (expected) onnx__tensor_proto__free_unpacked(expected, NULL);
    if (m) onnx__model_proto__free_unpacked(m, NULL);
    hp_arena_free(a);
    return result;
}

/* --- all cases --- */

static const char case_data[] = "/usr/share/libonnx-testdata/data";

typedef struct case_counts {
    int passed, refused, failed;
} case_counts;

/* Are all of the model's operators among the words of `ops` (NULL: any)? */
static bool case_has_only(const char *folder, const char *ops) {
    hp_arena *a = hp_arena_new();
    size_t size = 0;
    void *data = case_file(a, folder, "model.onnx", &size);
    Onnx__ModelProto *m = data ? onnx__model_proto__unpack(NULL, size, data) : NULL;
    bool all = m && m->graph && m->graph->n_node > 0;
    for (size_t i = 0; all && i < m->graph->n_node; i++) {
        char word[80];
        snprintf(word, sizeof word, " %.70s ", m->graph->node[i]->op_type);
        all = !ops || strstr(ops, word);
    }
    if (m) onnx__model_proto__free_unpacked(m, NULL);
    hp_arena_free(a);
    return all;
}

/* Runs the cases of one group ("node"); prints those that did not pass. */
static void case_run_group(const char *group, const char *ops, case_runner *run, case_counts *n) {
    char folder[600];
    struct dirent **entry;
    snprintf(folder, sizeof folder, "%s/%s", case_data, group);
    const int count = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char why[1200] = "", path[900];
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && case_has_only(path, ops)) {
            const case_result r = case_run(path, run, why, sizeof why);
            n->passed += r == CASE_PASSED;
            n->refused += r == CASE_REFUSED;
            n->failed += r == CASE_FAILED;
            if (r != CASE_PASSED)
                printf("%s %s/%s: %s\n", r == CASE_FAILED ? "FAILED " : "refused", group, entry[i]->d_name, why);
        }
        free(entry[i]);
    }
    if (count >= 0) free(entry);
}

#endif
