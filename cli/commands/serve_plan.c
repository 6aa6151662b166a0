/* serve_plan.c - from a request to a stored inference plan. */
#include "cli/commands/serve_plan.h"
#include "cli/options/simulate.h"

#include <string.h>

bool serve_impossible(hp_status s) {
    return s == HP_EPLAN || s == HP_EUNAVAIL;
}

static const char *number_text(hp_arena *arena, int64_t value) {
    return value ? hp_arena_printf(arena, "%lld", (long long)value) : NULL;
}

static const char *strategy_text(hp_arena *arena, const serve_request *r) {
    return strcmp(r->prec, "fp32") == 0 ? r->strategy
                                        : hp_arena_printf(arena, "%s,prec=%s", r->strategy, r->prec);
}

/* The network of a stored plan in another precision. */
static hp_status serve_another(hp_arena *arena, const serve_request *r, const char *path, hp_plan *plan,
                               hp_error *err) {
    hp_prediction p = {0};
    *plan = *r->of;
    plan->mode = HP_MODE_INFER;
    plan->float_layers = r->float_layers;
    if (r->device) HP_TRY(hp_plan_on_device(plan, r->device, err));
    HP_TRY(hp_strategy_parse(strategy_text(arena, r), &plan->strategy, err));
    plan->batch =
        r->batch ? r->batch : hp_strategy_batch(&plan->strategy, hp_strategy_devices(&plan->strategy));
    HP_TRY(hp_predict(arena, plan, r->under, &p, err));
    return hp_predict_store(path, plan, &p, NULL, err);
}

hp_status serve_plan_write(hp_arena *arena, const serve_request *r, const char *path, hp_plan *plan,
                           hp_error *err) {
    if (r->of) return serve_another(arena, r, path, plan, err);
    const simulate_options o = {
        .network.net = r->net,
        .network.onnx = r->onnx,
        .network.float_layers = r->float_layers,
        .network.image = r->image_h ? hp_arena_printf(arena, "%dx%d", r->image_h, r->image_w) : NULL,
        .network.classes = number_text(arena, r->classes),
        .step.mode = "infer",
        .step.batch = number_text(arena, r->batch),
        .machine.device = r->device,
        .strategy = strategy_text(arena, r)};
    simulate_setup s;
    hp_prediction p = {0};
    HP_TRY(simulate_prepare(arena, &o, &s, err));
    const int64_t batch =
        s.step.batch ? s.step.batch
                     : hp_strategy_batch(&s.curves.strategy, hp_strategy_devices(&s.curves.strategy));
    *plan = simulate_plan(&s, &s.curves.strategy, batch);
    HP_TRY(hp_predict(arena, plan, &s.eval, &p, err));
    return hp_predict_store(path, plan, &p, NULL, err);
}
