/* gate_cells.c - the figures and sentences of a gate, as every form shows them. */
#include "cli/gate/gate.h"
#include "base/units.h"
#include "traces/check/compare.h"

#include <math.h>
#include <string.h>

static const char *number(const hp_check_row *r, double v, char out[32]) {
    if (r->unit == HP_CHECK_SECONDS) return v == 0 ? "0" : hp_format_seconds(v, out);
    if (r->unit == HP_CHECK_BYTES) return hp_format_bytes(v, out);
    if (r->unit == HP_CHECK_STATUS && v < 0) return "incomplete";
    snprintf(out, 32, "%.6g", v);
    return out;
}

const char *gate_value(const hp_check_row *r, const hp_check_value *v, char out[GATE_CELL]) {
    char text[32];
    if (isnan(v->half))
        snprintf(out, GATE_CELL, "%s", number(r, v->median, text));
    else if (isinf(v->half))
        snprintf(out, GATE_CELL, "%s ±   ∞", number(r, v->median, text));
    else
        snprintf(out, GATE_CELL, "%s ±%3.0f%%", number(r, v->median, text), 100 * v->half);
    return out;
}

const char *gate_change(const hp_check *c, const hp_check_row *r, char out[GATE_CELL]) {
    if (isnan(r->delta)) return "";
    if (r->unit == HP_CHECK_SECONDS && c->too_few) return "?";
    if (!isnan(r->p) && r->p >= c->alpha) return "~";
    if (!r->delta_absolute) return hp_format_change(r->delta, out);
    snprintf(out, GATE_CELL, "%+.4g", r->delta);
    return out;
}

const char *gate_p(const hp_check *c, const hp_check_row *r, char out[GATE_CELL]) {
    if (isnan(r->p) || c->too_few) return "";
    snprintf(out, GATE_CELL, r->p < 0.001 ? "<0.001" : "%.3f", r->p);
    return out;
}

const char *gate_word(const hp_check_row *r) {
    const bool word = r->verdict == HP_VERDICT_REGRESSION || r->verdict == HP_VERDICT_BETTER;
    return word ? hp_verdict_names[r->verdict] : "";
}

const char *gate_reason(const hp_check_row *r, char out[GATE_LINE]) {
    if (r->unit == HP_CHECK_STATUS && r->new.median < 0)
        snprintf(out, GATE_LINE, "the run is incomplete");
    else if (r->unit == HP_CHECK_STATUS)
        snprintf(out, GATE_LINE, "the run ended with status %.0f", r->new.median);
    else if (!isfinite(r->new.median))
        snprintf(out, GATE_LINE, "%s is not a finite number", r->name);
    else if (r->delta_absolute)
        snprintf(out, GATE_LINE, "%s is worse than the limit of %.4g", r->name, r->limit);
    else
        snprintf(out, GATE_LINE, "%s is worse than the limit of %.3g%%", r->name, 100 * r->limit);
    return out;
}

/* A text that every run of a side has. */
static const char *common(const hp_check_side *s, size_t at) {
    const char *first = *(const char *const *)(const void *)((const char *)&s->run[0].trace + at);
    for (int i = 1; i < s->n; i++) {
        const char *other = *(const char *const *)(const void *)((const char *)&s->run[i].trace + at);
        if (strcmp(first, other) != 0) return "several";
    }
    return *first ? first : "unknown";
}

void gate_facts(const gate *g, gate_fact fact[GATE_FACTS]) {
    static const struct {
        const char *name;
        size_t at;
    } list[GATE_FACTS] = {
        {"strategy", offsetof(hp_trace, strategy)},   {"machine", offsetof(hp_trace, machine)},
        {"device", offsetof(hp_trace, device)},       {"host", offsetof(hp_trace, host)},
        {"processor", offsetof(hp_trace, processor)}, {"hplan", offsetof(hp_trace, version)}};
    for (int i = 0; i < GATE_FACTS; i++) {
        const char *old = common(g->old, list[i].at), *new = common(g->new, list[i].at);
        fact[i] = (gate_fact){list[i].name, old, new, strcmp(old, new) == 0};
    }
}

const char *gate_chance(const hp_check *c, char out[GATE_LINE]) {
    snprintf(out, GATE_LINE, "±: 95%% interval of the median; ~ may be chance (p >= %.2g)", c->alpha);
    return out;
}

const char *gate_samples(const hp_check *c, char out[GATE_LINE]) {
    const bool all = c->by_run || (c->warmup_old && c->warmup_new);
    snprintf(out, GATE_LINE, "%d and %d %s", c->n_old, c->n_new,
             c->by_run ? "runs, each by its median step"
             : all     ? "steps, the first of each left out as warm-up"
                       : "steps, warm-up included where steps are few");
    return out;
}

const char *gate_result(const hp_check *c, char out[GATE_LINE]) {
    *out = '\0';
    if (c->too_few)
        snprintf(out, GATE_LINE,
                 "not enough %s to tell whether it became slower: %d and %d, %d of each are needed",
                 c->by_run ? "runs" : "steps", c->n_old, c->n_new, c->n_needed);
    else if (c->n_regression == 0)
        snprintf(out, GATE_LINE, "ok: no regression");
    return out;
}
