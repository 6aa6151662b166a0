/* test_train.c - training by precision: tasks have separate keys per precision, take the time that the data
 * sheet's rate for it implies, and move as many bytes as their maps store. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "costmodels/table.h"
#include "networks/nets/nets.h"
#include "networks/graph/precision.h"
#include "plan/program/work.h"
#include "tests/support/sim/search_world.h"

/* H200 data sheet, dense, FLOP/s. Half of the peak, as stated for matrix-shaped kernels of unknown libraries;
 * in float32, the A100's assumption (its most similar GPU): the same as a V100. Tiles that fill the device
 * are not considered here (test_tiles.c). */
static const struct {
    int32_t prec;
    const char *type;
    double peak, reached;
    int bytes;
} SHEET[] = {{HP_PREC_FP32, "f32", 67e12, 0.78, 4},
             {HP_PREC_TF32, "tf32", 494e12, 0.5, 4},
             {HP_PREC_BF16, "bf16", 989e12, 0.5, 2},
             {HP_PREC_FP16, "f16", 989e12, 0.5, 2}};
enum { N_SHEET = sizeof SHEET / sizeof *SHEET };

static hp_work work_of(const hp_graph *g, int layer) {
    const hp_tensor *y = &g->tensor[g->layer[layer].out];
    const hp_box out = {{0, 0, 0, 0}, {64, y->h, y->w, y->c}};
    const hp_work_case c = hp_work_case_at(g, layer, HP_TASK_FWD, &out);
    return hp_work_of_case(g, HP_F32, &c);
}

static int first_of(const hp_graph *g, hp_layer_op op, int kernel) {
    for (int l = 1; l < g->n_layer; l++)
        if ((hp_layer_op)g->layer[l].op == op && g->layer[l].window.kh == kernel) return l;
    fail_msg("no such layer");
    return 0;
}

static void convolutions_take_their_precisions_rate(void **state) {
    (void)state;
    world w = make_world("dgx-h200", "resnet50", 224, 64);
    const int conv = first_of(w.g, HP_CONV, 3);
    for (int i = 0; i < N_SHEET; i++) {
        const hp_graph *g = hp_graph_train_in(w.arena, w.g, SHEET[i].prec);
        hp_work k = work_of(g, conv);
        char type[16];
        snprintf(type, sizeof type, " %s ", SHEET[i].type);
        if (!strstr(k.key, type)) fail_msg("'%s' has no '%s'", k.key, type);
        k.bytes = k.rows = 0;
        const double seconds = hp_cost_compute(w.t, &w.m, &k).seconds - w.m.device.launch_s;
        assert_true(fabs(seconds / (k.flops / SHEET[i].reached / SHEET[i].peak) - 1) < 0.01);
    }
    hp_arena_free(w.arena);
}

/* A batch norm is memory-bound; tf32 stores float32. */
static void maps_move_as_they_are_stored(void **state) {
    (void)state;
    world w = make_world("dgx-h200", "resnet50", 224, 64);
    const int norm = first_of(w.g, HP_BN, 0);
    const double whole = work_of(w.g, norm).bytes;
    for (int i = 0; i < N_SHEET; i++) {
        const hp_work k = work_of(hp_graph_train_in(w.arena, w.g, SHEET[i].prec), norm);
        assert_true(fabs(k.bytes / whole - SHEET[i].bytes / 4.0) < 1e-9);
        assert_null(strstr(k.key, "tf32")); /* nothing is multiplied */
    }
    hp_arena_free(w.arena);
}

static hp_cost_table *shipped_table(hp_arena *arena, const hp_machine *m) {
    hp_cost_table *t = NULL;
    assert_int_equal(hp_cost_load(arena, NULL, m, &t, NULL), HP_OK);
    return t;
}

/* A class without rows uses those of the class it is like, at its own rates, and the table names that class;
 * a class with rows uses its own. */
static void kin_stand_in_for_classes_without_rows(void **state) {
    (void)state;
    static const struct {
        const char *class, *kin;
    } rows[] = {{"l40s", "a100-40"},    {"h200", "h100"}, {"h100-nvl", "h100"}, {"h100-pcie", "h100"},
                {"v100-32", "v100-16"}, {"h100", NULL},   {"a100-40", NULL},    {"cpu", NULL}};
    hp_arena *arena = hp_arena_new();
    hp_machine kin, m;
    assert_int_equal(hp_machine_load("thesis-a100", &kin, NULL), HP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool sure;
        const hp_gpu_model *g = hp_gpu_model_find(rows[i].class, 0, &sure);
        m = kin;
        if (g) m.device = g->device;
        if (!g) assert_int_equal(hp_machine_load("local", &m, NULL), HP_OK);
        const char *named = hp_cost_stand_in(shipped_table(arena, &m), &m);
        assert_true(rows[i].kin ? named && !strcmp(named, rows[i].kin) : !named);
        if (!rows[i].kin) continue;
        kin.device = hp_gpu_model_find(rows[i].kin, 0, &sure)->device;
        static const char *const keys[] = {"fwd.conv k3x3 f32 w9", "bwdw.conv k3x3 bf16 w9", "fwd.bn bf16",
                                           "fwd.attention f32"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const bool bf16 = strstr(keys[k], "bf16") != NULL;
            const hp_prec prec = bf16 ? HP_PREC_BF16 : HP_PREC_FP32;
            hp_work work = {.flops = 1e15};
            snprintf(work.key, sizeof work.key, "%s", keys[k]);
            const hp_cost_table *t = shipped_table(arena, &m);
            const hp_cost own = hp_cost_compute(t, &m, &work), other = hp_cost_compute(t, &kin, &work);
            const double own_s = own.seconds - m.device.launch_s,
                         other_s = other.seconds - kin.device.launch_s;
            assert_true(fabs(own_s * hp_device_class_peak(&m.device, prec) /
                                 (other_s * hp_device_class_peak(&kin.device, prec)) -
                             1) < 1e-9);
            assert_true(own.source != HP_SOURCE_MEASURED); /* from another device */
        }
    }
    hp_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions_take_their_precisions_rate),
                                       cmocka_unit_test(maps_move_as_they_are_stored),
                                       cmocka_unit_test(kin_stand_in_for_classes_without_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
