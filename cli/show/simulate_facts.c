/* simulate_facts.c - what a selected plan does that its strategy does not tell: layers of an int8 network
 * that stay real, and ZeRO that saves nothing. */
#include "cli/show/simulate_show.h"
#include "base/units.h"

#include <string.h>

/* Is the computing layer real: does it neither read a quantised tensor nor quantise its input? */
static bool stays_real(const hp_graph *g, const hp_layer *l) {
    if (l->op == HP_INPUT || l->op == HP_QUANT || l->op == HP_DEQUANT || l->deployed.dynamic) return false;
    for (int k = 0; k < l->n_in; k++)
        if (g->tensor[l->in[k]].store == HP_STORE_U8) return false;
    return true;
}

/* With int8-dynamic all tensors are real, and what counts is the layers with products. */
static bool is_counted(const hp_layer *l, int32_t prec) {
    const bool matrix = l->op == HP_CONV || l->op == HP_CONVT || l->op == HP_LINEAR;
    return l->op != HP_INPUT && l->op != HP_QUANT && l->op != HP_DEQUANT &&
           (prec != HP_PREC_INT8_DYNAMIC || matrix);
}

void simulate_find_facts(hp_arena *arena, const simulate_setup *s, simulate_found *f) {
    if (!f->n) return;
    const hp_strategy *best = &f->list[f->chosen].strategy;
    hp_error ignored = {0};
    hp_plan plan = simulate_plan(s, best, f->batch);
    const bool low = best->prec == HP_PREC_INT8 || best->prec == HP_PREC_INT8_DYNAMIC;
    if (low && s->step.mode == HP_MODE_INFER && hp_plan_graph(arena, &plan, &plan.graph, &ignored) == HP_OK) {
        f->facts.real_layer = HP_NEW(arena, const char *, plan.graph->n_layer);
        for (int i = 0; i < plan.graph->n_layer; i++) {
            const hp_layer *l = &plan.graph->layer[i];
            if (!is_counted(l, best->prec)) continue;
            f->facts.n_counted++;
            if (stays_real(plan.graph, l)) f->facts.real_layer[f->facts.n_real++] = l->name;
        }
    }
    if (best->zero.stage) {
        hp_strategy without = *best;
        hp_evaluation e;
        without.zero.stage = 0;
        if (hp_evaluate(simulate_eval(arena, s, f->batch), arena, &without, HP_EVAL_PLACED, &e, &ignored) ==
                HP_OK &&
            !e.reject.code)
            f->facts.without_zero_bytes = e.figures.memory_bytes;
    }
}

/* "int8: 2 of 24 layers stay real: avgpool, fc", in lines of at most 80 columns. */
void simulate_print_real(const simulate_found *f) {
    enum { COLUMNS = 80 };
    char plain[256];
    if (!f->facts.n_counted) return;
    int at = printf("int8: %d of %d layers stay real%s", f->facts.n_real, f->facts.n_counted,
                    f->facts.n_real ? ":" : "");
    for (int i = 0; i < f->facts.n_real; i++) {
        const char *name = cli_plain(f->facts.real_layer[i], plain, sizeof plain);
        const int n = (int)strlen(name) + 1 + (i < f->facts.n_real - 1);
        if (at + n > COLUMNS) at = printf("\n ") - 1;
        at += printf(" %s%s", name, i < f->facts.n_real - 1 ? "," : "");
    }
    printf("\n");
}

bool simulate_zero_note(const simulate_found *f, char out[200]) {
    char with[32], without[32];
    const hp_evaluation *best = f->n ? &f->list[f->chosen] : NULL;
    if (!best || f->facts.without_zero_bytes <= 0 || best->figures.memory_bytes < f->facts.without_zero_bytes)
        return false;
    snprintf(
        out, 200,
        "zero=%d saves no memory here: %s of the fullest rank, %s with zero=0 (its blocks take more than "
        "the parts save)",
        best->strategy.zero.stage, hp_format_bytes((double)best->figures.memory_bytes, with),
        hp_format_bytes((double)f->facts.without_zero_bytes, without));
    return true;
}
