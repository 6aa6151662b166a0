/* test_infer.c - inference on a GPU or its stand-in: layers of every kind, over drawn shapes, stores and
 * boxes, have the processor's bytes where outputs are quantised, and otherwise its numbers within rounding. A
 * fence behind a kernel's memory is checked. */
#include "exec/cuda/runtime/cuda_runtime_device.h"
#include "exec/cuda/dnn/dnn.h"
#include "exec/cuda/dnn/lt.h"
#include "networks/graph/acts.h"
#include "plan/memory/memory_device.h"
#include "tests/support/exec/infer_matrix.h"
#include "tests/support/plan/law_cases.h"

/* --- one task on the GPU --- */

enum { FENCE = 64, FILL = 0x5a };

/* Memory of exactly that size on the GPU, with a fence behind it. */
static hp_memory gpu_memory; /* opened before the first test */

typedef struct block {
    unsigned char *at;
    int64_t bytes;
} block;

static block block_new(const void *from, int64_t bytes) {
    block b = {NULL, bytes};
    unsigned char *fill = malloc((size_t)bytes + FENCE);
    memset(fill, FILL, (size_t)bytes + FENCE);
    if (from) memcpy(fill, from, (size_t)bytes);
    assert_int_equal(gpu_memory.ops->alloc(&gpu_memory, bytes + FENCE, (void **)&b.at, NULL), HP_OK);
    assert_int_equal(gpu_memory.ops->put(&gpu_memory, b.at, fill, bytes + FENCE, NULL), HP_OK);
    free(fill);
    return b;
}

static void block_end(block *b, void *to) {
    unsigned char fence[FENCE];
    if (!b->at) return;
    if (to) assert_int_equal(gpu_memory.ops->get(&gpu_memory, to, b->at, b->bytes, NULL), HP_OK);
    assert_int_equal(gpu_memory.ops->get(&gpu_memory, fence, b->at + b->bytes, FENCE, NULL), HP_OK);
    for (int i = 0; i < FENCE; i++) assert_int_equal(fence[i], FILL);
    gpu_memory.ops->free(&gpu_memory, b->at, b->bytes + FENCE);
}

/* As open_tables of cuda/cuda_device.c, for a single task. */
static void open_gpu(hp_device *d, const hp_device_config *config, hp_arena *arena) {
    hp_error err;
    *d = (hp_device){.config = *config, .arena = arena, .packed = HP_NEW(arena, bool, 2)};
    d->cuda = hp_cuda_of(&gpu_memory);
    if (hp_dnn_open(d->cuda, &d->dnn, &err) != HP_OK || hp_lt_open(d->cuda, &d->lt, &err) != HP_OK)
        fail_msg("%s", err.text);
}

static void close_gpu(hp_device *d) {
    hp_dnn_close(d->dnn);
    hp_lt_close(d->lt);
}

/* Runs a task whose operands are in host memory: y is written, and read first if it holds an addend. */
static void run_on_gpu(cell *c, const hp_bound *host, int64_t pack_bytes, int64_t scratch_bytes) {
    hp_buffer buffer = {.bytes = pack_bytes};
    int32_t pack_of[2] = {0, 0};
    const hp_role role = {.buffer = &buffer, .pack_forward = pack_of};
    hp_device_config config = c->config;
    hp_cuda_launch l = {0};
    hp_bound b = *host;
    hp_device d;
    hp_error err;
    config.role = &role;
    open_gpu(&d, &config, c->arena);
    block in[MOST_IN] = {{0}}, y = block_new(host->y, b.out_elems * hp_dtype_bytes(b.stored.y)),
          pack = block_new(NULL, pack_bytes), scratch = block_new(NULL, scratch_bytes);
    for (int k = 0; k < b.n_in; k++) {
        const bool first = k == 0 || c->s.layer[1].op == HP_MUL || c->s.layer[1].op == HP_CONCAT;
        const int64_t elems = !first   ? b.out_elems
                              : k == 0 ? b.in_elems
                                       : hp_box_elems(&((const hp_box *)b.copy.src)[k]);
        if (!host->x[k]) continue;
        in[k] = block_new(host->x[k], elems * hp_dtype_bytes(b.stored.x[k]));
        b.x[k] = in[k].at;
    }
    b.y = y.at;
    b.pack.forward = pack.at;
    b.scratch.at = scratch.at;
    b.scratch.bytes = scratch_bytes;
    if (hp_cuda_infer[b.layer->op](&d, &b, &l, &err) != HP_OK || l.run(&d, &b, l.self, &err) != HP_OK)
        fail_msg("%s: %s", cell_said(c), err.text);
    block_end(&y, host->y);
    block_end(&pack, NULL);
    block_end(&scratch, NULL);
    for (int k = 0; k < b.n_in; k++) block_end(&in[k], NULL);
    close_gpu(&d);
}

/* --- comparing --- */

/* Bound for numbers added in another order, or stored in 16 bits from such sums. */
static double bound_of(const cell *c, hp_dtype x) {
    const hp_dtype y = dtype_of(c, c->s.layer[1].out);
    if (x == HP_BF16 || y == HP_BF16) return 0x1p-6;
    return x == HP_F16 || y == HP_F16 ? 0x1p-9 : 0x1p-17;
}

typedef struct tally {
    int64_t bytes, differ;
} tally;

/* A GPU's e^x and tanh differ in the last bits, so a byte computed from them may be off by one. */
static bool is_smooth(const cell *c) {
    static const bool smooth[HP_ACTS] = {
        [HP_ACT_SIGMOID] = true,   [HP_ACT_TANH] = true, [HP_ACT_ERF] = true,     [HP_ACT_GELU] = true,
        [HP_ACT_GELU_TANH] = true, [HP_ACT_SILU] = true, [HP_ACT_MISH] = true,    [HP_ACT_ELU] = true,
        [HP_ACT_CELU] = true,      [HP_ACT_SELU] = true, [HP_ACT_SOFTPLUS] = true};
    const hp_layer *l = &c->s.layer[1];
    const bool table =
        l->op == HP_ACT && dtype_of(c, 0) == HP_U8 && dtype_of(c, l->out) == HP_U8; /* the host's */
    return smooth[l->act] && !table;
}

static void compare_bytes(cell *c, const unsigned char *cpu, const unsigned char *gpu, int64_t n, int worst,
                          tally *all) {
    for (int64_t i = 0; i < n; i++) {
        if (abs(cpu[i] - gpu[i]) > worst)
            fail_msg("%s: byte %lld is %d instead of %d", cell_said(c), (long long)i, gpu[i], cpu[i]);
        all->bytes++;
        all->differ += cpu[i] != gpu[i];
    }
}

static void compare(cell *c, const unsigned char *cpu, const unsigned char *gpu, int64_t n, bool bits,
                    tally *all) {
    const int y = c->s.layer[1].out;
    const hp_dtype t = dtype_of(c, y);
    double most = 1;
    if (t == HP_U8 || (bits && !is_smooth(c))) {
        compare_bytes(c, cpu, gpu, n * hp_dtype_bytes(t), is_smooth(c), all);
        return;
    }
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(value_at(cpu, t, c->q[y], i)));
    for (int64_t i = 0; i < n; i++) {
        const double want = value_at(cpu, t, c->q[y], i), have = value_at(gpu, t, c->q[y], i);
        if (!(fabs(want - have) <= bound_of(c, dtype_of(c, 0)) * most))
            fail_msg("%s: element %lld is %g instead of %g", cell_said(c), (long long)i, have, want);
    }
}

static unsigned char *copy_of(const void *from, int64_t bytes) {
    unsigned char *copy = malloc((size_t)bytes + 1);
    assert_non_null(copy);
    return memcpy(copy, from, (size_t)bytes);
}

/* --- matrix layers --- */

static hp_box some_output(cell *c) {
    const hp_box whole = hp_box_whole(&c->s.g, c->s.layer[1].out, c->s.samples);
    return draw(&c->d, 0, 1) ? whole : draw_output(&c->d, &c->s);
}

static void matrix_has_the_cpus_numbers(matrix_cell *m, tally *all) {
    cell *c = &m->c;
    hp_shape whole;
    fill_tensors(m, HP_F32);
    matrix_part p = {.out = some_output(c)};
    if (hp_box_empty(&p.out)) return;
    if (layer_of(m)->deployed.dynamic) { /* it reads its whole input: groups are not cut apart */
        p.out.lo[HP_AXIS_C] = 0;
        p.out.hi[HP_AXIS_C] = c->s.tensor[layer_of(m)->out].c;
    }
    prepare_matrix_part(m, &p, ON_CPU);
    const hp_box in = hp_box_whole(&c->s.g, 0, c->s.samples),
                 out = hp_box_whole(&c->s.g, layer_of(m)->out, c->s.samples);
    whole = hp_shape_between(&c->s.g, 1, &in, &out);
    const int64_t bytes = p.b.out_elems * hp_dtype_bytes(p.b.stored.y);
    hp_bound gpu = p.b;
    gpu.y = copy_of(p.b.y, bytes);
    run_on_gpu(c, &gpu, hp_gpu_infer_pack_bytes(&c->s.g, 1, &whole, HP_F32),
               hp_gpu_infer_scratch_bytes(&c->s.g, 1, &p.b.shape, HP_F32));
    assert_int_equal(p.kernel.run(p.kernel.self, &p.b, NULL), HP_OK);
    compare(c, p.b.y, gpu.y, p.b.out_elems, false, all);
    free(gpu.y);
    matrix_part_end(&p);
}

static void matrix_layers_have_the_processors_bytes_and_numbers(void **state) {
    (void)state;
    tally all = {0};
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        matrix_cell *m = matrix_cell_new(seed);
        matrix_has_the_cpus_numbers(m, &all);
        matrix_cell_free(m);
    }
}

/* Inputs quantised at run time. */
static void dynamic_layers_have_the_processors_numbers(void **state) {
    (void)state;
    tally all = {0};
    for (uint64_t seed = 1; seed <= law_cases(40); seed++) {
        matrix_cell *m = matrix_cell_new(seed);
        hp_layer *l = layer_of(m);
        l->deployed.dynamic = 1;
        for (int t = 0; t <= l->out; t++) m->c.s.tensor[t].store = HP_STORE_REAL;
        m->c.s.tensor[0].producer = 1;
        matrix_has_the_cpus_numbers(m, &all);
        matrix_cell_free(m);
    }
}

/* --- all other layers --- */

static void layer_has_the_cpus_numbers(cell *c, tally *all) {
    const hp_box out = some_output(c);
    hp_box boxes[MOST_IN] = {{{0}}};
    part p;
    if (hp_box_empty(&out)) return;
    part_start(c, &p, &out, false);
    for (int k = 0; k < c->s.layer[1].n_in; k++) boxes[k] = p.in[k];
    const int64_t bytes = p.b.out_elems * hp_dtype_bytes(p.b.stored.y);
    hp_bound gpu = p.b;
    gpu.copy.src = boxes;
    gpu.y = copy_of(p.b.y, bytes);
    run_on_gpu(c, &gpu, hp_infer_pack_bytes(&c->s.g, 1, &p.b.shape, HP_F32), 0);
    assert_int_equal(p.kernel.run(p.kernel.self, &p.b, NULL), HP_OK);
    compare(c, p.b.y, gpu.y, p.b.out_elems, c->s.layer[1].op != HP_SOFTMAX, all);
    free(gpu.y);
    part_end(&p);
}

static void every_other_layer_has_the_processors_bits(void **state) {
    static const int ops[] = {HP_BN,        HP_SCALE,   HP_ACT,     HP_ADD,     HP_MUL,
                              HP_QUANT,     HP_DEQUANT, HP_MAXPOOL, HP_AVGPOOL, HP_RESIZE,
                              HP_ADAPTPOOL, HP_CONCAT,  HP_PAD,     HP_SOFTMAX};
    (void)state;
    tally all = {0};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (uint64_t seed = 1; seed <= law_cases(30); seed++) {
            cell *c = cell_new(seed, ops[k]);
            if (c->real == HP_F32) layer_has_the_cpus_numbers(c, &all);
            cell_free(c);
        }
}

/* --- bytes of smooth activations --- */

/* Chooses scales as fine as bytes allow for these functions' values. */
static void act_finely(cell *c, int act) {
    hp_layer *l = &c->s.layer[1];
    l->act = act;
    c->q[l->out] = act == HP_ACT_SIGMOID ? (hp_qparam){0x1p-8f, 0}
                   : act == HP_ACT_TANH  ? (hp_qparam){0x1p-7f, 128}
                                         : (hp_qparam){0x1p-5f, 12};
    hp_constants_set_qparam(c->constants, l->out, c->q[l->out]);
}

static bool is_of_bytes(const cell *c) {
    for (int t = 0; t <= c->s.layer[1].out; t++)
        if (dtype_of(c, t) != HP_U8) return false;
    return true;
}

/* hswish consists of sums, products and clamps, which equal the processor's to the last bit. */
static void bytes_of_smooth_activations_are_the_processors_or_next_to_them(void **state) {
    static const int acts[] = {HP_ACT_SIGMOID, HP_ACT_TANH, HP_ACT_HSWISH};
    static const int ops[] = {HP_ACT, HP_BN, HP_ADD, HP_MUL};
    (void)state;
    for (int a = 0; a < 3; a++) {
        tally all = {0};
        for (uint64_t seed = 1; seed <= law_cases(80); seed++) {
            matrix_cell *m = matrix_cell_new(seed);
            if (is_of_bytes(&m->c)) {
                act_finely(&m->c, acts[a]);
                matrix_has_the_cpus_numbers(m, &all);
            }
            matrix_cell_free(m);
            cell *c = cell_new(seed, ops[seed % 4]);
            if (is_of_bytes(c) && c->real == HP_F32) {
                act_finely(c, acts[a]);
                layer_has_the_cpus_numbers(c, &all);
            }
            cell_free(c);
        }
        print_message("%s: %lld of %lld bytes differ\n", hp_act_names[acts[a]], (long long)all.differ,
                      (long long)all.bytes);
        assert_true(all.bytes > 125 * (int64_t)law_cases(80));
        assert_true(all.differ <= 1 + all.bytes / 1000);
    }
}

static int open_memory(void **state) {
    (void)state;
    return hp_memory_open(&hp_memory_cuda, NULL, &gpu_memory, NULL) == HP_OK ? 0 : 1;
}

static int close_memory(void **state) {
    (void)state;
    hp_memory_close(&gpu_memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrix_layers_have_the_processors_bytes_and_numbers),
        cmocka_unit_test(dynamic_layers_have_the_processors_numbers),
        cmocka_unit_test(every_other_layer_has_the_processors_bits),
        cmocka_unit_test(bytes_of_smooth_activations_are_the_processors_or_next_to_them),
    };
    return cmocka_run_group_tests(tests, open_memory, close_memory);
}
