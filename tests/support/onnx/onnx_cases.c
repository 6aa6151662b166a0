/* onnx_cases.c - runs the cases of ONNX's backend test suite; see onnx_cases.h. */
#include "tests/support/onnx/onnx_cases.h"

/* --- numbers of a TensorProto as double; NULL for unsupported types --- */

static double case_short(int type, int bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float f;
    const uint32_t wide = (uint32_t)bits << 16;
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__INT16) return (int16_t)bits;
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT16) return bits;
    memcpy(&f, &wide, sizeof f);
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16) return (double)f;
    return (bits & 0x8000 ? -1 : 1) *
           (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* Some files contain something other than a tensor. */
static bool case_is_tensor(const Onnx__TensorProto *t, int64_t count) {
    const size_t typed =
        t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data + t->n_uint64_data;
    return t->has_raw_data ? (int64_t)t->raw_data.len >= count : (int64_t)typed == count;
}

static double *case_numbers(hp_arena *a, const Onnx__TensorProto *t, int64_t *count) {
    *count = 1;
    for (size_t d = 0; d < t->n_dims; d++) *count *= t->dims[d];
    if (!case_is_tensor(t, *count)) return NULL;
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
            if (raw)
                memcpy(&out[i], raw + 8 * i, 8);
            else
                out[i] = t->double_data[i];
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
            n = raw ? 0 : t->int64_data[i];
            if (raw) memcpy(&n, raw + 8 * i, 8);
            out[i] = (double)n;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
            n = raw ? 0 : (int64_t)t->uint64_data[i];
            if (raw) memcpy(&n, raw + 8 * i, 8);
            out[i] = (double)n;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
            out[i] = raw ? raw[i] : t->int32_data[i];
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
            k = raw ? 0 : t->int32_data[i];
            if (raw) memcpy(&k, raw + 4 * i, 4);
            out[i] = k;
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
        case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
        case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
            k = raw ? raw[2 * i] | raw[2 * i + 1] << 8 : t->int32_data[i];
            out[i] = case_short(t->data_type, k & 0xffff);
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

enum { CASE_MOST_INPUTS = 12 };

typedef enum case_result { CASE_PASSED, CASE_REFUSED, CASE_FAILED } case_result;

static int64_t case_extent(const hp_graph *g, int tensor, int64_t batch, int axis) {
    const hp_tensor *t = &g->tensor[tensor];
    return axis == HP_AXIS_N ? batch : axis == HP_AXIS_H ? t->h : axis == HP_AXIS_W ? t->w : t->c;
}

/* Index in (N, H, W, C) of element `at` in ONNX's order. */
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

/* ONNX's own tolerance: onnx.backend.test.runner, rtol 1e-3 and atol 1e-7; integers exactly. Two roundings of
 * a half may differ by one step. */
static bool case_close(double got, double wanted, int type, bool quantised) {
    const double exact = 1e-7 + 1e-3 * fabs(wanted), bfloat = 0.01 * fabs(wanted); /* 8 bits */
    if (quantised) return fabs(got - wanted) <= 1;
    if (isinf(got)) return fabs(wanted) > (double)FLT_MAX; /* a double beyond the device's floats */
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16) return fabs(got - wanted) <= bfloat;
    if (type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT || type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
        type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16)
        return fabs(got - wanted) <= exact;
    return nearbyint(got) == wanted;
}

static case_result case_compare(hp_arena *a, const hp_onnx_model *m, const double *out, int64_t batch,
                                const Onnx__TensorProto *expected, char *why, size_t n_why) {
    const hp_graph *g = m->graph;
    const int last = g->n_tensor - 1;
    int64_t count;
    const double *wanted = case_numbers(a, expected, &count);
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
        const double v =
            m->output.quantised ? case_quantised(&m->output, out[at], at % g->tensor[last].c) : out[at];
        if (case_close(v, wanted[i], expected->data_type, m->output.quantised)) continue;
        snprintf(why, n_why, "element %lld is %.9g, not %.9g", (long long)i, v, wanted[i]);
        return CASE_FAILED;
    }
    return CASE_PASSED;
}

static case_result case_run_model(hp_arena *a, const hp_onnx_model *m, const Onnx__TensorProto *input,
                                  const Onnx__TensorProto *expected, case_runner *run, char *why,
                                  size_t n_why) {
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
    double *image = HP_NEW(a, double, count), *out = HP_NEW(a, double, batch *out_elems);
    for (int64_t i = 0; i < count; i++) image[case_place(g, 0, batch, m->input.order, i)] = numbers[i];
    for (int64_t n = 0; n < batch; n++)
        if (!run(a, m, image + n * in_elems, out + n * out_elems, &err)) {
            snprintf(why, n_why, "%.200s", err.text);
            return CASE_FAILED;
        }
    return case_compare(a, m, out, batch, expected, why, n_why);
}

/* The model with input `image` kept (-1: none) and the others as constants. */
static onnx_writer case_writer(hp_arena *a, const Onnx__ModelProto *m, Onnx__TensorProto *const *input, int n,
                               int image) {
    onnx_writer w = onnx_writer_from(a, m);
    for (int i = 0; i < n; i++) {
        const char *name = m->graph->input[i]->name;
        if (i == image || !input[i] || onnx_writer_has_constant(&w, name)) continue;
        Onnx__TensorProto *constant = HP_NEW(a, Onnx__TensorProto, 1);
        *constant = *input[i];
        constant->name = (char *)(uintptr_t)name;
        onnx_write_tensor(&w, constant);
    }
    return w;
}

/* Adds the output as (count) to an image (1, count) of zeros: whatever was folded is
 * then the graph's bias. */
static void case_append_sum(onnx_writer *w, int64_t count) {
    const int64_t all = -1, shape[2] = {1, count};
    const char *output = w->graph.output[0]->name;
    onnx_write_integers(w, "case.all", 1, &(int64_t){1}, &all);
    onnx_write_int(w, onnx_write_node(w, "Cast", output, "case.real"), "to",
                   ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    onnx_write_node(w, "Reshape", "case.real case.all", "case.flat");
    onnx_write_node(w, "Add", "case.image case.flat", "case.sum");
    onnx_write_input(w, "case.image", 2, shape);
    onnx_write_output(w, "case.sum");
}

/* With every input constant: the folded output as reals, in ONNX's order. */
static case_result case_run_folded(hp_arena *a, const Onnx__ModelProto *m, Onnx__TensorProto *const *input,
                                   int n, const Onnx__TensorProto *expected, char *why, size_t n_why) {
    int64_t count;
    size_t size;
    hp_onnx_model model;
    hp_error err = {0};
    const double *wanted = case_numbers(a, expected, &count);
    onnx_writer w = case_writer(a, m, input, n, -1);
    if (!wanted || count < 1) return CASE_REFUSED;
    case_append_sum(&w, count);
    const void *packed = onnx_writer_pack(&w, &size);
    if (hp_onnx_parse(a, "model.onnx", packed, size, false, 0, 0, true, &model, &err) != HP_OK) {
        snprintf(why, n_why, "%s", err.text);
        return CASE_REFUSED;
    }
    const hp_layer *add = &model.graph->layer[1];
    const float *bias = add->op == HP_SCALE && add->n_param == 2 ? model.param[add->param[1]].data : NULL;
    for (int64_t i = 0; bias && i < count; i++) {
        if (case_close((double)bias[i], wanted[i], expected->data_type, false)) continue;
        snprintf(why, n_why, "folded element %lld is %.9g, not %.9g", (long long)i, (double)bias[i],
                 wanted[i]);
        return CASE_FAILED;
    }
    return bias ? CASE_PASSED : CASE_FAILED;
}

/* Tries each input in turn as the image, and none. */
static case_result case_try(hp_arena *a, const Onnx__ModelProto *m, Onnx__TensorProto *const *input, int n,
                            const Onnx__TensorProto *expected, case_runner *run, char *why, size_t n_why) {
    for (int i = 0; i < n; i++) {
        hp_onnx_model model;
        hp_error err = {0};
        size_t size;
        if (!input[i]) continue;
        onnx_writer w = case_writer(a, m, input, n, i);
        const void *packed = onnx_writer_pack(&w, &size);
        if (hp_onnx_parse(a, "model.onnx", packed, size, false, 0, 0, true, &model, &err) == HP_OK) {
            if (hp_graph_check(model.graph, &err) == HP_OK)
                return case_run_model(a, &model, input[i], expected, run, why, n_why);
            snprintf(why, n_why, "%s", err.text);
            return CASE_FAILED;
        }
        if (i == 0) snprintf(why, n_why, "%s", err.text);
    }
    return CASE_REFUSED;
}

static case_result case_run(const char *folder, case_runner *run, char *why, size_t n_why) {
    hp_arena *a = hp_arena_new();
    size_t size = 0;
    Onnx__TensorProto *input[CASE_MOST_INPUTS] = {0};
    void *data = case_file(a, folder, "model.onnx", &size);
    Onnx__ModelProto *m = data ? onnx__model_proto__unpack(NULL, size, data) : NULL;
    Onnx__TensorProto *expected = case_tensor(a, folder, "output", 0);
    const int n = m && m->graph->n_input < CASE_MOST_INPUTS ? (int)m->graph->n_input : 0;
    case_result result = CASE_REFUSED;
    snprintf(why, n_why, "no tensors");
    for (int i = 0; i < n; i++) input[i] = case_tensor(a, folder, "input", i);
    if (m && expected && run) result = case_try(a, m, input, n, expected, run, why, n_why);
    if (m && expected && !run) result = case_run_folded(a, m, input, n, expected, why, n_why);
    for (int i = 0; i < n; i++)
        if (input[i]) onnx__tensor_proto__free_unpacked(input[i], NULL);
    if (expected) onnx__tensor_proto__free_unpacked(expected, NULL);
    if (m) onnx__model_proto__free_unpacked(m, NULL);
    hp_arena_free(a);
    return result;
}

/* --- all cases --- */

const char case_ops[] =
    " Conv ConvTranspose BatchNormalization MaxPool AveragePool GlobalAveragePool "
    "GlobalMaxPool Resize Upsample Gemm "
    "MatMul Add Sub Mul Div Clip Relu HardSigmoid HardSwish Sigmoid Tanh Gelu Erf Pow "
    "LeakyRelu Elu Celu Selu Softplus Softsign ThresholdedRelu Mish Concat Reshape Flatten Squeeze "
    "Unsqueeze Transpose Softmax Identity Dropout Pad ReduceMean ReduceMax Shape "
    "Gather Slice Cast ConstantOfShape "
    "QLinearConv QuantizeLinear DequantizeLinear ConvInteger QLinearMatMul "
    "MatMulInteger Constant Sum Neg PRelu Max "
    "Min Expand Split LayerNormalization "
    "DepthToSpace SpaceToDepth InstanceNormalization GroupNormalization ArgMax ";

const char case_data[] = "/usr/share/libonnx-testdata/data";

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

void case_run_group(const char *group, const char *ops, case_runner *run, case_counts *n) {
    char folder[600];
    struct dirent **entry;
    snprintf(folder, sizeof folder, "%s/%s", case_data, group);
    const int count = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char why[1200] = "", path[900];
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        const bool bits = strstr(entry[i]->d_name, "BFLOAT16"); /* their files have the bits as uint16 */
        if (entry[i]->d_name[0] != '.' && !bits && case_has_only(path, ops)) {
            const case_result r = case_run(path, run, why, sizeof why);
            n->passed += r == CASE_PASSED;
            n->refused += r == CASE_REFUSED;
            n->failed += r == CASE_FAILED;
            if (r != CASE_PASSED)
                printf("%s %s/%s: %s\n", r == CASE_FAILED ? "FAILED " : "refused", group, entry[i]->d_name,
                       why);
        }
        free(entry[i]);
    }
    if (count >= 0) free(entry);
}
