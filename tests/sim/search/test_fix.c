/* test_fix.c - every fix works: read back from its text and applied to strategy and options, it is feasible
 * with placed buffers, for every kind of reject; if there is none, the text says so. */
#include "base/units.h"
#include "networks/graph/graph_json.h"
#include "sim/search/fix.h"
#include "tests/support/plan/law_cases.h"
#include "tests/support/plan/random_deployed.h"
#include "tests/support/plan/wild_strategy.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A draw with a plan, so that a fix may ask for another network. */
typedef struct draw {
    hp_arena *arena;
    hp_plan plan;
    hp_machine machine;
    hp_eval_setup setup;
    hp_question q;
    char said[HP_FIX_TEXT];
} draw;

static void build(draw *w, hp_eval_setup *setup, const hp_plan *plan) {
    hp_graph *g;
    hp_error err = {HP_OK, ""};
    if (hp_plan_graph(w->arena, plan, &g, &err) != HP_OK) fail_msg("%s", err.text);
    setup->graph = g;
    setup->mode = (hp_mode)plan->mode;
}

/* Set up as in `simulate`; the network has the strategy's precision. model: for a network without a name. */
static draw make_draw(const char *net, const hp_graph *model, int image, hp_mode mode, int prec) {
    static const char machine[] = "thesis-a100";
    draw w = {.arena = hp_arena_new()};
    hp_cost_table *table = NULL;
    hp_error err = {HP_OK, ""};
    if (hp_machine_load(machine, &w.machine, &err) != HP_OK ||
        hp_cost_load(w.arena, NULL, &w.machine, &table, &err) != HP_OK)
        fail_msg("%s", err.text);
    w.plan = (hp_plan){.image_h = image,
                       .image_w = image,
                       .classes = 10,
                       .mode = (int32_t)mode,
                       .strategy = hp_strategy_default()};
    w.plan.strategy.prec = prec;
    snprintf(w.plan.net, sizeof w.plan.net, "%s", net);
    if (model) {
        w.plan.model = hp_graph_json(w.arena, model);
        w.plan.image_h = model->image_h;
        w.plan.image_w = model->image_w;
    }
    w.setup = (hp_eval_setup){.table = table, .straggler_rank = -1, .device = &hp_devices[HP_DEVICE_CPU]};
    w.setup.dtype = w.setup.device->dtype;
    build(&w, &w.setup, &w.plan);
    return w;
}

/* `w` must no longer move. */
static hp_eval *eval_of(draw *w) {
    w->setup.machine = &w->machine;
    w->setup.plan = &w->plan;
    w->setup.batch = hp_question_batch(&w->q);
    return hp_eval_new(w->arena, &w->setup);
}

/* The changed question, evaluated by a planner without any cached state. */
static hp_evaluation evaluate_anew(draw *w, const hp_question *q) {
    hp_eval_setup setup = w->setup;
    hp_plan plan = w->plan;
    char text[HP_STRATEGY_TEXT];
    hp_question again = *q;
    hp_evaluation v;
    hp_error err = {HP_OK, ""};
    assert_int_equal(hp_strategy_parse(hp_strategy_text(&q->s, text), &again.s, &err), HP_OK);
    plan.image_h = q->image_h;
    plan.image_w = q->image_w;
    plan.mode = (int32_t)(q->infer ? HP_MODE_INFER : HP_MODE_TRAIN);
    plan.strategy = again.s;
    build(w, &setup, &plan);
    setup.plan = &plan;
    setup.batch = hp_question_batch(&again);
    setup.device = q->device;
    setup.dtype = q->device->dtype;
    if (hp_question_evaluate(hp_eval_new(w->arena, &setup), &again, HP_EVAL_PLACED, w->arena, &v, &err) !=
        HP_OK)
        fail_msg("%s: %s", text, err.text);
    return v;
}

/* Checks a fix by a separate evaluation; returns whether there was one. */
static bool check_fix(draw *w, const hp_reject *why) {
    char change[HP_FIX_TEXT], bytes[32], text[HP_STRATEGY_TEXT];
    hp_question q = w->q;
    hp_error err = {HP_OK, ""};
    assert_true(strlen(why->fix) < sizeof why->fix - 1 && why->limit[0]);
    if (strncmp(why->fix, "none found", 10) == 0) return false;
    snprintf(change, sizeof change, "%s", why->fix);
    char *arrow = strstr(change, " -> ");
    assert_non_null(arrow); /* before what it needs */
    if (arrow) *arrow = 0;
    if (hp_change_apply(&q, change, &err) != HP_OK) fail_msg("'%s': %s", change, err.text);
    if (q.keys_only) assert_true(strncmp(change, "--", 2) != 0);
    const hp_evaluation v = evaluate_anew(w, &q);
    if (v.reject.code)
        fail_msg("%s: %s; '%s' leads to %s: %s", hp_strategy_text(&w->q.s, text), why->limit, why->fix,
                 hp_reject_text(v.reject.code), v.reject.limit);
    assert_string_equal(arrow + 4, hp_format_bytes((double)v.figures.memory_bytes, bytes));
    return true;
}

/* Evaluates the question. If it is rejected: with which code, and is there a fix that works? */
static hp_reject_code try_question(draw *w, bool *fixed) {
    hp_evaluation v;
    hp_error err = {HP_OK, ""};
    hp_eval *e = eval_of(w);
    *fixed = false;
    if (hp_question_evaluate(e, &w->q, HP_EVAL_FITS, w->arena, &v, &err) != HP_OK) fail_msg("%s", err.text);
    if (!v.reject.code) return HP_FEASIBLE;
    const hp_reject_code code = v.reject.code;
    if (hp_search_fix(e, &w->q, HP_FIX_QUICK, &v.reject, &err) != HP_OK) fail_msg("%s", err.text);
    assert_int_equal(v.reject.code, code);
    snprintf(w->said, sizeof w->said, "%s", v.reject.fix);
    *fixed = check_fix(w, &v.reject);
    return code;
}

static void ask(draw *w, const char *strategy, int64_t batch, int devices) {
    hp_strategy s;
    hp_error err = {HP_OK, ""};
    if (hp_strategy_parse(strategy, &s, &err) != HP_OK) fail_msg("%s", err.text);
    w->q = (hp_question){.s = s,
                         .batch = batch,
                         .n_devices = devices,
                         .image_h = w->plan.image_h,
                         .image_w = w->plan.image_w,
                         .infer = w->plan.mode == HP_MODE_INFER,
                         .device = w->setup.device};
}

/* --- every code --- */

static void every_kind_of_reject_gets_a_fix_that_works(void **state) {
    (void)state;
    static const struct {
        const char *strategy, *net;
        hp_reject_code code;
        int64_t batch;
        int image, devices, prec;
        bool infer, mpi4dl;
        int64_t memory;
    } rows[] = {
        {"dp=4,stages=4", "resnet18", HP_REJECT_GPUS, .image = 64, .devices = 8},
        {"dp=2000", "resnet18", HP_REJECT_GPUS, .image = 64},
        {"dp=32,stages=64", "resnet18", HP_REJECT_GPUS, .image = 64},
        {"stages=64", "resnet18", HP_REJECT_STAGES, .image = 64},
        {"dp=2,stages=64", "resnet18", HP_REJECT_STAGES, .image = 64, .devices = 128, .batch = 128},
        {"stages=2,cut=1:1", "resnet18", HP_REJECT_CUT, .image = 64},
        {"sp=2x2:2x1", "resnet18", HP_REJECT_SP, .image = 64},
        {"sp=4x1,rows=1:2:3", "resnet18", HP_REJECT_SP, .image = 64},
        {"cols=1:2", "resnet18", HP_REJECT_SP, .image = 64},
        {"share=3:1", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"dp=3,share=3:1", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"dp=2,share=3", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"dp=2,share=1:1:1", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"sp=2x1,rows=1:1:1", "resnet18", HP_REJECT_SP, .image = 64},
        {"dp=2,share=3:1,clients=2", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"dp=2,share=3:1,sync=ps", "resnet18", HP_REJECT_SHARE, .image = 64},
        {"dp=2,share=3:1", "resnet18", HP_REJECT_BATCH, .image = 64, .batch = 6},
        {"stages=3,sp=2x2,tail=shared", "resnet18", HP_REJECT_TAIL, .image = 64},
        {"sp=2x2,ldp=2", "resnet18", HP_REJECT_TAIL, .image = 64},
        {"cp=1000", "resnet18", HP_REJECT_CP, .image = 64},
        {"tp=2", "resnet18", HP_REJECT_TP, .image = 64},
        {"tp=2,cp=2", "vit:2,32,4,8", HP_REJECT_TP, .image = 32},
        {"tp=5", "vit:2,32,4,8", HP_REJECT_TP, .image = 32},
        {"seq=2", "resnet18", HP_REJECT_SEQ, .image = 64},
        {"seq=2,cp=2", "vit:2,32,4,8", HP_REJECT_SEQ, .image = 32},
        {"seq=2:a2a", "swin-t", HP_REJECT_SEQ, .image = 32},
        {"seq=5:a2a", "vit:2,32,4,8", HP_REJECT_SEQ, .image = 32},
        {"tp=4,seq=2:a2a", "vit:2,32,4,8", HP_REJECT_SEQ, .image = 32},
        {"prec=tf32", "cnn", HP_REJECT_PREC, .image = 32, .prec = HP_PREC_TF32},
        {"sp=2x1,prec=int8-dynamic", "resnet18", HP_REJECT_PREC, .image = 64, .prec = HP_PREC_INT8_DYNAMIC,
         .infer = true},
        {"strips=4", "resnet18", HP_REJECT_STRIPS, .image = 64},
        {"strips=4", "resnet18", HP_REJECT_STRIPS, .image = 64, .batch = 2, .infer = true},
        {"stages=2,micro=4,sched=lp", "resnet18", HP_REJECT_SCHED, .image = 64},
        {"stages=2,chunks=2,micro=3", "resnet18", HP_REJECT_SCHED, .image = 64, .batch = 63},
        {"stages=3,gems=3", "resnet18", HP_REJECT_GEMS, .image = 64},
        {"dp=3", "resnet18", HP_REJECT_BATCH, .image = 64, .batch = 64},
        {"dp=4,micro=2", "resnet18", HP_REJECT_BATCH, .image = 64, .batch = 4, .memory = 220000000},
        {"dp=1", "resnet18", HP_REJECT_MEM, .image = 256, .batch = 8, .memory = 300000000},
        {"dp=2,stages=2", "resnet18", HP_REJECT_MEM, .image = 256, .batch = 8, .memory = 200000000},
        {"stages=2,sp=2x2,tail=shared", "resnet18", HP_REJECT_MPI4DL, .image = 96, .mpi4dl = true},
        {"dp=2,stages=2,micro=2,sched=zb,zero=2", "resnet18", HP_REJECT_ZERO, .image = 64},
        {"stages=2,sched=gems,zero=3", "resnet18", HP_REJECT_ZERO, .image = 64},
        {"dp=2,zero=1,sync=ps", "resnet18", HP_REJECT_SYNC, .image = 64},
        {"dp=2,zero=1,compress=allreduce:bf16", "resnet18", HP_REJECT_COMPRESS, .image = 64},
        {"clients=2,comm=nccl", "resnet18", HP_REJECT_COMM, .image = 64},
        {"comm=nccl", "resnet18", HP_REJECT_COMM, .image = 64},
        {"dp=2,sync=ps", "resnet18", HP_REJECT_SYNC, .image = 64, .infer = true},
        {"dp=2,zero=1,sync=local:4", "resnet18", HP_REJECT_SYNC, .image = 64},
        {"dp=2,zero=1", "resnet18", HP_REJECT_ZERO, .image = 64, .infer = true},
        {"dp=2,sp=2x2,place=1:0", "resnet18", HP_REJECT_PLACE, .image = 64},
        {"dp=2,place=0:1:2", "resnet18", HP_REJECT_PLACE, .image = 64},
        {"stages=2,compress=stage:bf16", "resnet18", HP_REJECT_COMPRESS, .image = 64, .infer = true},
        {"dp=2,stages=2,zero=2", "gpt:2,32,4,16,64", HP_REJECT_TIED, .image = 16},
        {"dp=2,stages=2,sync=ps", "gpt:2,32,4,16,64", HP_REJECT_TIED, .image = 16},
    };
    bool seen[HP_REJECTS] = {false};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hp_mode mode = rows[i].infer ? HP_MODE_INFER : HP_MODE_TRAIN;
        draw w = make_draw(rows[i].net, NULL, rows[i].image, mode, rows[i].prec);
        bool fixed;
        w.setup.rules = rows[i].mpi4dl ? HP_RULES_MPI4DL : HP_RULES_HPLAN;
        w.setup.memory_limit = rows[i].memory;
        ask(&w, rows[i].strategy, rows[i].batch, rows[i].devices);
        const hp_reject_code code = try_question(&w, &fixed);
        if (code != rows[i].code || !fixed)
            fail_msg("%s: %s, fixed %d: %s", rows[i].strategy, hp_reject_text(code), fixed, w.said);
        seen[code] = true;
        hp_arena_free(w.arena);
    }
    for (int code = 1; code < HP_REJECTS; code++)
        /* not for networks without a name (see below); a network on a device, whatever the strategy:
         * tests/machines/device/test_devices.c */
        if (!seen[code] && code != HP_REJECT_TRAIN && code != HP_REJECT_LAYER)
            fail_msg("%s does not occur", hp_reject_text((hp_reject_code)code));
}

/* --- random ones --- */

/* A network for inference only; nothing but another mode helps. */
static void what_cannot_be_trained_can_be_inferred(void **state) {
    (void)state;
    int refused = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        hp_arena *a = hp_arena_new();
        const hp_graph *g = random_infer_net(a, seed, 4);
        if (!hp_graph_trains(g, NULL)) {
            draw w = make_draw("", g, 0, HP_MODE_TRAIN, HP_PREC_FP32);
            bool fixed;
            ask(&w, "dp=1", 0, 0);
            assert_int_equal(try_question(&w, &fixed), HP_REJECT_TRAIN);
            assert_true(fixed && strstr(w.said, "--mode infer"));
            hp_arena_free(w.arena);
            refused++;
        }
        hp_arena_free(a);
    }
    assert_true(refused > 0);
}

/* The need of a rank of the whole strategy, or of a single rank, and less. */
static int64_t drawn_limit(dice *d, draw *w, int least) {
    hp_evaluation v;
    hp_error err = {HP_OK, ""};
    hp_question whole = w->q;
    whole.s = hp_strategy_default();
    whole.s.prec = w->q.s.prec;
    whole.batch = 1;
    const hp_question asked = w->q;
    w->q = whole;
    assert_int_equal(hp_question_evaluate(eval_of(w), &whole, HP_EVAL_FITS, w->arena, &v, &err), HP_OK);
    w->q = asked;
    return v.figures.memory_bytes * roll(d, least, 6 * least) / 20;
}

static draw random_draw(uint64_t seed, dice *d) {
    hp_arena *a = hp_arena_new();
    const bool infer = seed % 3 == 0;
    const hp_graph *g = infer ? random_infer_net(a, seed, 5) : random_net(a, seed, 8);
    const bool mpi4dl = seed % 5 == 0; /* it requires other images, which a network without a name cannot
                                        * have */
    draw w = make_draw(mpi4dl ? "resnet18" : "", mpi4dl ? NULL : g, 96, infer ? HP_MODE_INFER : HP_MODE_TRAIN,
                       HP_PREC_FP32);
    w.setup.rules = mpi4dl ? HP_RULES_MPI4DL : HP_RULES_HPLAN;
    w.setup.eager = seed % 7 == 0;
    w.machine.share_cpu = w.machine.device.is_cpu = seed % 4 == 0;
    ask(&w, "dp=1", 0, 0);
    w.q.batch = coin(d) || coin(d) ? 0 : roll(d, 1, 48);
    w.q.n_devices = coin(d) ? 0 : roll(d, 1, 24);
    w.q.keys_only = seed % 6 == 0;
    w.setup.memory_limit = drawn_limit(d, &w, seed % 2 ? 10 : 4);
    hp_arena_free(a);
    return w;
}

/* One-key changes, tried by hand: if one of them works, on as many samples, the fix has a single change. */
static bool one_change_works(draw *w) {
    static const char *const keys[] = {"recompute=boundary", "recompute=full", "micro=2", "strips=4"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        hp_question q = w->q;
        char change[HP_STRATEGY_TEXT];
        if (hp_change_apply(&q, keys[i], NULL) != HP_OK ||
            hp_change_text(&w->q, &q, change, sizeof change) != 1 ||
            hp_question_batch(&q) < hp_question_batch(&w->q))
            continue;
        if (!evaluate_anew(w, &q).reject.code) return true;
    }
    return false;
}

/* Number of keys and options that a fix names. */
static int changes_of(draw *w) {
    char change[HP_FIX_TEXT], again[HP_STRATEGY_TEXT];
    hp_question q = w->q;
    snprintf(change, sizeof change, "%s", w->said);
    *strstr(change, " -> ") = 0;
    assert_int_equal(hp_change_apply(&q, change, NULL), HP_OK);
    return hp_change_text(&w->q, &q, again, sizeof again);
}

typedef struct fix_tally {
    int fixed, none, memory;
} fix_tally;

/* Of a random question, on random devices. */
static void must_fix(uint64_t seed, fix_tally *t) {
    dice d = {seed, 3};
    draw w = random_draw(seed, &d);
    w.q.s =
        seed % 2 ? wild_strategy(&d) : random_strategy_of(&d, w.setup.graph, roll(&d, 1, 12), 24, DRAW_ALL);
    w.q.s.prec = HP_PREC_FP32;
    bool works;
    const hp_reject_code code = try_question(&w, &works);
    if (code == HP_REJECT_MEM) {
        const bool one = one_change_works(&w);
        if (one && (!works || changes_of(&w) > 1))
            fail_msg("seed %d: one change is enough: %s", (int)seed, w.said);
        t->memory++;
    }
    t->fixed += code && works;
    t->none += code && !works;
    hp_arena_free(w.arena);
}

static void fixes_of_random_strategies_work(void **state) {
    (void)state;
    fix_tally t = {0}, more = {0};
    for (uint64_t seed = 1; seed <= law_cases(160); seed++) must_fix(seed, &t);
    assert_true(t.fixed > 2 * t.none && t.none > 0 && (uint64_t)t.memory > law_cases(160) / 16);
    must_fix(1428, &more); /* fewer micro-batches of fewer samples */
    must_fix(1466, &more); /* a chain of layers on one of three branches */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_reject_gets_a_fix_that_works),
        cmocka_unit_test(what_cannot_be_trained_can_be_inferred),
        cmocka_unit_test(fixes_of_random_strategies_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
