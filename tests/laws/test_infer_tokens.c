/* test_infer_tokens.c - a deployed transformer, or network of gathers and group norms, gives the logits of
 * the training forward pass, layer by layer, from the same file. */
#include "tests/support/exec/infer_once.h"
#include "tests/support/exec/source_weights.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_tokens.h"

#include <unistd.h>

/* --- the forward pass that is trained --- */

static void load(const hp_buffer *b, const double *image, unsigned char *arena) {
    memcpy(arena + b->offset, image, (size_t)hp_box_elems(&b->box) * sizeof *image);
}

/* One sample on the reference, up to the input of the loss. */
static double *trained_logits(hp_arena *a, const hp_graph *g, const char *path, const double *image) {
    const hp_strategy one = hp_strategy_default();
    const hp_lower_options o = {.mode = HP_MODE_INFER, .dtype = HP_F64, .batch = 1, .place = true};
    hp_program *p = NULL;
    hp_device *device = NULL;
    hp_error err;
    if (hp_lower(a, g, &one, &o, &p, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_role *r = &p->role[0];
    unsigned char *arena = HP_NEW(a, unsigned char, r->arena_bytes + 64);
    arena += (64 - (uintptr_t)arena % 64) % 64;
    const hp_weights w = {.graph = g,
                          .role = r,
                          .dtype = HP_F64,
                          .mode = HP_MODE_INFER,
                          .weights = arena + r->buffer[HP_BUF_WEIGHTS].offset,
                          .state = arena + r->buffer[HP_BUF_STATE].offset};
    if (hp_weights_load(path, &w, &err) != HP_OK) fail_msg("%s", err.text);
    const hp_device_config config = {.program = p, .graph = g, .role = r, .arena = arena, .threads = 1};
    assert_int_equal(hp_device_ref.open(&config, &device, &err), HP_OK);
    double *logits = NULL;
    for (int t = 0; t < r->n_task && !logits; t++) {
        const hp_task *task = &r->task[t];
        const int32_t *operand = &r->operand[task->operand];
        if (task->op == HP_TASK_LOAD)
            load(&r->buffer[operand[0]], image, arena);
        else if (task->op == HP_TASK_LOSS)
            logits = (double *)(void *)(arena + r->buffer[operand[1]].offset);
        else if (hp_task_infos[task->op].queue == HP_QUEUE_COMPUTE &&
                 hp_device_ref.run(device, t, &(hp_step){0}, &err) != HP_OK)
            fail_msg("%s", err.text);
    }
    hp_device_ref.close(device);
    assert_non_null(logits);
    return logits;
}

/* --- both --- */

static double *draw_image(hp_arena *a, const hp_graph *g, uint64_t seed) {
    const int64_t n = (int64_t)g->image_h * g->image_w * g->image_c;
    const int32_t ids = hp_graph_ids(g);
    double *image = HP_NEW(a, double, n);
    for (int64_t i = 0; i < n; i++)
        image[i] = ids ? (double)hp_rng_below(seed, 71, (uint64_t)i, (uint64_t)ids)
                       : 2 * (double)(float)hp_rng_uniform(seed, 71, (uint64_t)i) - 1;
    return image;
}

static bool has_norm(const hp_graph *g) {
    for (int l = 0; l < g->n_layer; l++)
        if (g->layer[l].op == HP_BN) return true;
    return false;
}

/* file: the network whose weights are in the file. bound: relative to the largest logit. */
static void agree_from(hp_arena *a, const hp_graph *file, const hp_graph *g, uint64_t seed,
                       const char *device, double bound) {
    char path[] = "/tmp/hplan-logits-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    source_weights w = source_draw(a, file, HP_F32);
    source_save(path, &w);
    const int64_t n = hp_tensor_elems(g, g->layer[g->n_layer - 1].out);
    double *image = draw_image(a, g, seed), *have = HP_NEW(a, double, n), size = 1e-3;
    const double *want = trained_logits(a, g, path, image);
    infer_once r;
    hp_error err;
    if (infer_once_open(&r, g, device, path, &err) != HP_OK) fail_msg("seed %d: %s", (int)seed, err.text);
    assert_int_equal(infer_once_run(&r, image, have, &err), HP_OK);
    for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(have[i] - want[i]) <= bound * size))
            fail_msg("seed %d on %s: logit %d is %.12g, layer by layer %.12g", (int)seed, device, (int)i,
                     have[i], want[i]);
    infer_once_close(&r);
    unlink(path);
}

static void agree(hp_arena *a, const hp_graph *g, uint64_t seed, const char *device, double bound) {
    agree_from(a, g, g, seed, device, bound);
}

/* Constants are float32: the file's, exact in float64; folded batch norms are rounded to it. */
static void deployed_logits_are_those_of_training_s_forward_pass(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        dice d = {seed, 7100};
        hp_arena *a = hp_arena_new();
        const hp_graph *g = random_layers(a, seed, roll(&d, 2, 6));
        agree(a, g, seed, "ref", has_norm(g) ? 1e-5 : 1e-12);
        hp_arena_free(a);
    }
}

/* Compared with float64: sums of at most 512 products in each of some forty layers, one float32 eps each. */
static void on_the_processor_within_rounding(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= law_cases(120); seed++) {
        dice d = {seed, 7200};
        hp_arena *a = hp_arena_new();
        agree(a, random_layers(a, seed, roll(&d, 2, 6)), seed, "cpu", 512 * 40 * 0x1p-24);
        hp_arena_free(a);
    }
}

/* As built: row layers and their sums, tied heads, and matrices that files store transposed or joined. */
static void so_are_those_of_vit_and_gpt(void **state) {
    static const char *const nets[] = {"vit:2,24,3,8", "gpt:2,32,4,16,64"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g = NULL;
        hp_error err;
        assert_int_equal(hp_net_build(a, nets[k % 2], 32, 24, 10, &g, &err), HP_OK);
        agree(a, g, (uint64_t)k + 1, k < 2 ? "ref" : "cpu", k < 2 ? 1e-12 : 512 * 40 * 0x1p-24);
        hp_arena_free(a);
    }
}

static const hp_graph *vit_of(hp_arena *a, int h, int w) {
    hp_graph *g = NULL;
    hp_error err;
    assert_int_equal(hp_net_build(a, "vit:2,24,3,8", h, w, 10, &g, &err), HP_OK);
    return g;
}

/* Learned positions for an image size other than the file's. */
static void places_are_stretched_as_for_training(void **state) {
    (void)state;
    hp_arena *a = hp_arena_new();
    agree_from(a, vit_of(a, 32, 32), vit_of(a, 40, 56), 5, "ref", 1e-12);
    agree_from(a, vit_of(a, 32, 32), vit_of(a, 40, 56), 6, "cpu", 512 * 40 * 0x1p-24);
    hp_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_stretched_as_for_training),
        cmocka_unit_test(so_are_those_of_vit_and_gpt),
        cmocka_unit_test(deployed_logits_are_those_of_training_s_forward_pass),
        cmocka_unit_test(on_the_processor_within_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
