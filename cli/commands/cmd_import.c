/* cmd_import.c - reads an ONNX model: says what is in it, writes its structure as model.db and its weights as
 * safetensors beside it; or, of a quantised model, the file of its int8 program. */
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "base/units.h"
#include "networks/onnx/model.h"
#include "networks/onnx/int8/int8.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

typedef struct options {
    const char *output, *image, *mean, *std;
    bool json;
} options;

typedef struct imported {
    const char *path;
    hp_onnx_model model;
    int64_t macs, parameters;
    char weights[PATH_MAX]; /* the file beside the database */
    bool wants8;            /* the output is the int8 program's file */
    hp_onnx_int8 int8;
} imported;

/* "a/model.db": "a/model.safetensors" */
static hp_status name_weights(const char *output, char out[PATH_MAX], hp_error *err) {
    const size_t n = strlen(output), cut = n > 3 && strcmp(output + n - 3, ".db") == 0 ? n - 3 : n;
    if (snprintf(out, PATH_MAX, "%.*s.safetensors", (int)cut, output) < PATH_MAX) return HP_OK;
    return hp_fail(err, HP_ECREATE, "the name '%.64s...' is too long; give a shorter one", output);
}

/* --- what is in it --- */

typedef struct op_row {
    int layers;
    int64_t parameters, macs;
} op_row;

static void count_ops(const hp_graph *g, op_row row[HP_LAYER_OPS]) {
    for (int l = 0; l < g->n_layer; l++) {
        const hp_layer *layer = &g->layer[l];
        op_row *r = &row[layer->op];
        r->layers++;
        r->macs += hp_layer_macs(g, l);
        for (int i = 0; i < layer->n_param; i++) /* tied ones once */
            if (g->param[layer->param[i]].layer == l) r->parameters += g->param[layer->param[i]].count;
    }
}

static void sum_up(imported *m) {
    op_row row[HP_LAYER_OPS] = {0};
    count_ops(m->model.graph, row);
    for (int op = 0; op < HP_LAYER_OPS; op++) {
        m->macs += row[op].macs;
        m->parameters += row[op].parameters;
    }
}

static void show_head(const imported *m) {
    const hp_onnx_model *o = &m->model;
    const hp_graph *g = o->graph;
    char plain[4096];
    printf("model    %s (opset %" PRId64 ", %" PRId64 " nodes)\n", cli_plain(m->path, plain, sizeof plain),
           o->opset, o->n_node);
    printf("network  %s\n", g->net);
    printf("input    %s %dx%dx%d", o->input_name, g->image_h, g->image_w, g->image_c);
    if (o->declared_h > 0 && o->declared_w > 0 &&
        (o->declared_h != g->image_h || o->declared_w != g->image_w))
        printf(" (made for %dx%d)", o->declared_h, o->declared_w);
    if (o->declared_h <= 0 || o->declared_w <= 0) printf(" (any size)");
    printf("\noutput   %s (", o->output_name);
    for (int d = 0; d < o->output.n_dim; d++) printf("%s%" PRId64, d ? ", " : "", o->output.dim[d]);
    printf(")%s\n", o->n_output > 1 ? "; the model's other outputs are left out" : "");
    if (o->n_qparam)
        printf("8 bits   %d tensors have a scale and zero point in the model; the weights are written %s\n",
               o->n_qparam, m->wants8 ? "as its integers" : "as reals");
    if (m->wants8)
        printf("int8     %d layers with the model's integers; %d stay real%s%s\n", m->int8.n_weights8,
               m->int8.n_float, m->int8.n_float ? ": " : "", m->int8.float_layers);
}

static void show_ops(const imported *m) {
    op_row row[HP_LAYER_OPS] = {0};
    count_ops(m->model.graph, row);
    printf("\n%-10s %8s %14s %18s\n", "operator", "layers", "parameters", "multiply-adds");
    for (int op = 0; op < HP_LAYER_OPS; op++)
        if (row[op].layers)
            printf("%-10s %8d %14" PRId64 " %18" PRId64 "\n", hp_layer_infos[op].name, row[op].layers,
                   row[op].parameters, row[op].macs);
    printf("%-10s %8d %14" PRId64 " %18" PRId64 "\n", "all", m->model.graph->n_layer, m->parameters, m->macs);
}

static json_t *ops_json(const hp_graph *g) {
    op_row row[HP_LAYER_OPS] = {0};
    json_t *array = json_array();
    count_ops(g, row);
    for (int op = 0; op < HP_LAYER_OPS; op++)
        if (row[op].layers)
            json_array_append_new(array,
                                  json_pack("{s:s, s:i, s:I, s:I}", "op", hp_layer_infos[op].name, "layers",
                                            row[op].layers, "parameters", (json_int_t)row[op].parameters,
                                            "macs", (json_int_t)row[op].macs));
    return array;
}

static json_t *output_json(const hp_onnx_model *o) {
    json_t *dims = json_array();
    for (int d = 0; d < o->output.n_dim; d++) json_array_append_new(dims, json_integer(o->output.dim[d]));
    return json_pack("{s:s, s:o}", "name", o->output_name, "shape", dims);
}

static hp_status show_json(const imported *m, const options *o, hp_error *err) {
    const hp_graph *g = m->model.graph;
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:{s:s, s:[i,i,i]}, s:o, s:i, s:I, s:I, s:i, s:o}",
                             "schema", 1, "net", g->net, "opset", (json_int_t)m->model.opset, "nodes",
                             (json_int_t)m->model.n_node, "input", "name", m->model.input_name, "shape",
                             g->image_h, g->image_w, g->image_c, "output", output_json(&m->model), "layers",
                             g->n_layer, "parameters", (json_int_t)m->parameters, "macs", (json_int_t)m->macs,
                             "quantised_tensors", m->model.n_qparam, "operators", ops_json(g));
    if (root && !m->wants8) json_object_set_new(root, "model_file", json_string(o->output));
    if (root) json_object_set_new(root, "weights_file", json_string(m->wants8 ? o->output : m->weights));
    if (root && m->wants8) {
        json_object_set_new(root, "int8_layers", json_integer(m->int8.n_weights8));
        json_object_set_new(root, "float_layers", json_string(m->int8.float_layers));
    }
    return cli_print_json(root, err);
}

/* --- files --- */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static hp_status read_list(const char *text, const char *option, double value[4], int32_t *n, hp_error *err) {
    char copy[256], *save = NULL;
    *n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (*n == 4) return hp_fail(err, HP_EUSAGE, "%s has more than four numbers", option);
        HP_TRY(hp_parse_double(word, option, -1e6, 1e6, &value[(*n)++], err));
    }
    return *n ? HP_OK : hp_fail(err, HP_EUSAGE, "%s has no number; for example %s 0.5", option, option);
}

/* As hplan run takes them. */
static hp_status read_pixels(const options *o, hp_onnx_pixels *p, hp_error *err) {
    int32_t n_std = 0;
    HP_TRY(read_list(o->mean ? o->mean : "0.5", "--mean", p->mean, &p->n, err));
    HP_TRY(read_list(o->std ? o->std : "0.5", "--std", p->std, &n_std, err));
    const bool one = n_std == 1 || p->n == 1;
    if (n_std != p->n && !one) return hp_fail(err, HP_EUSAGE, "--mean and --std have as many numbers");
    for (int i = p->n; i < n_std; i++) p->mean[i] = p->mean[0];
    for (int i = n_std; i < p->n; i++) p->std[i] = p->std[0];
    p->n = n_std > p->n ? n_std : p->n;
    for (int i = 0; i < p->n; i++)
        if (p->std[i] <= 0) return hp_fail(err, HP_EUSAGE, "--std must be positive");
    return HP_OK;
}

static hp_status write_int8(frame *f, imported *m, hp_error *err) {
    const options *o = f->options;
    hp_onnx_pixels pixels = {0};
    HP_TRY(read_pixels(o, &pixels, err));
    HP_TRY(hp_onnx_deploy_int8(f->arena, &m->model, &m->int8, err));
    return hp_onnx_write_int8(o->output, &m->model, &m->int8, &pixels,
                              hp_arena_printf(f->arena, "%s", m->model.graph->net), err);
}

static hp_status write_files(frame *f, imported *m, hp_error *err) {
    const options *o = f->options;
    if (m->wants8) return write_int8(f, m, err);
    HP_TRY(hp_model_write_weights(m->weights, &m->model, err));
    return hp_model_write(o->output, m->path, m->model.graph, err);
}

/* A plan for the model, and a run with its weights. */
static void show_next(const imported *m, const options *o) {
    char file[4096], weights[4096];
    const bool whole = !m->wants8;
    next_command plan = next_start("simulate"), run = next_start("run plan.db");
    next_option(&plan, "--onnx", whole ? o->output : m->path);
    next_option(&plan, "--image", whole ? NULL : o->image);
    next_option(&plan, "--machine", "local");
    next_option(&plan, "--mode", "infer");
    next_option(&plan, "--prec", whole ? NULL : "int8");
    next_option(&plan, "--float-layers", m->int8.n_float ? m->int8.float_layers : NULL);
    next_option(&run, "--init", whole ? m->weights : o->output);
    fprintf(stderr, "wrote %s%s%s\n", cli_plain(o->output, file, sizeof file), whole ? " and " : "",
            whole ? cli_plain(m->weights, weights, sizeof weights) : "");
    next_print(stderr, &plan);
    next_print(stderr, &run);
}

/* --- the command --- */

static hp_status import_model(frame *f, hp_error *err) {
    const options *o = f->options;
    imported m = {.path = f->word[0], .wants8 = ends_with(o->output, ".safetensors")};
    int h = 0, w = 0;
    if (o->image) HP_TRY(cli_parse_image(o->image, &h, &w, err));
    HP_TRY(name_weights(o->output, m.weights, err));
    if (strcmp(o->output, m.path) == 0 || strcmp(m.weights, m.path) == 0)
        return hp_fail(err, HP_EUSAGE, "the output would replace the model itself; give another -o");
    HP_TRY(hp_onnx_read(f->arena, m.path, h, w, true, &m.model, err));
    sum_up(&m);
    HP_TRY(write_files(f, &m, err));
    if (o->json) return show_json(&m, o, err);
    show_head(&m);
    show_ops(&m);
    show_next(&m, o);
    return cli_finish_stdout(err);
}

static bool has_output(const void *options_) {
    return ((const options *)options_)->output;
}

int cmd_import(int argc, char **argv) {
    static const frame_option list[] = {
        {"output", 'o', "FILE", offsetof(options, output), 0,
         "where to write the model, its weights go beside it; Q.safetensors: a quantised model's integers"},
        {"image", 0, "SIZE", offsetof(options, image), 0, "rows x columns, where the model leaves them open"},
        {"mean", 0, "X,..", offsetof(options, mean), 0,
         "mean of the pixels a quantised model was made for (0.5)"},
        {"std", 0, "X,..", offsetof(options, std), 0, "their standard deviation (0.5)"},
        {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
        {0}};
    static const frame_command command = {
        .option = list,
        .usage = "MODEL.onnx -o MODEL.db",
        .doc =
            "Reads an ONNX model, opsets 7 to 24, and writes what hplan needs of it: its structure as "
            "MODEL.db, for "
            "any image size, and its weights as MODEL.safetensors. With -o Q.safetensors, of a quantised "
            "model (QLinearConv; QuantizeLinear and DequantizeLinear): its integers, scales and zero points "
            "as they are, for int8 programs, as hplan quantize writes them.",
        .min_word = 1,
        .max_word = 1,
        .too_few = "needs a model and an output. For example: hplan import model.onnx -o model.db",
        .too_many = "one model at a time: '%s' is one word too many",
        .complete = has_output,
        .run = import_model};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
