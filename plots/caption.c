/* caption.c - titles of plots: network, size of a sample, batch, precision, and the machine. */
#include "plots/plots.h"
#include "traces/trace_text.h"

#include <string.h>

/* "resnet50 256x256", "gpt2 1024 tokens" */
static const char *subject(hp_arena *arena, const hp_plot_source *s) {
    if (s->height <= 0 || s->width <= 0) return hp_arena_printf(arena, "%.60s", s->net);
    return s->width == 1 ? hp_arena_printf(arena, "%.60s %d tokens", s->net, s->height)
                         : hp_arena_printf(arena, "%.60s %dx%d", s->net, s->height, s->width);
}

/* The strategy's, "bf16"; without a word on it fp32. */
static const char *precision(hp_arena *arena, const char *strategy) {
    const char *at = strstr(strategy, "prec=");
    if (!at || (at != strategy && at[-1] != ',')) return "fp32";
    at += strlen("prec=");
    return hp_arena_printf(arena, "%.*s", (int)strcspn(at, ","), at);
}

static const hp_trace *trace_of(const hp_plot_source *s) {
    return s->has_exec ? &s->exec : s->has_sim ? &s->sim : NULL;
}

const char *hp_plot_caption(hp_arena *arena, const hp_plot_source *s) {
    const hp_trace *t = trace_of(s);
    if (!t) return hp_text_clean(arena, subject(arena, s));
    const char *batch = s->batch > 0 ? hp_arena_printf(arena, "batch %d, ", s->batch) : "";
    const char *caption =
        hp_arena_printf(arena, "%s, %s%.20s: %.200s, %d rank%s on %.60s (%.30s)", subject(arena, s), batch,
                        precision(arena, t->strategy), t->strategy, t->ranks, t->ranks == 1 ? "" : "s",
                        t->machine, t->device);
    return hp_text_clean(arena, caption); /* truncation may have split a character */
}

/* "batch 16", "batch 1 a device"; "": it varies otherwise */
static const char *batch_of(hp_arena *arena, const hp_plot_source *s) {
    bool same = s->n_candidate > 0, each = same;
    for (int i = 1; i < s->n_candidate; i++) {
        const hp_plot_candidate *a = &s->candidate[0], *b = &s->candidate[i];
        same &= a->batch == b->batch;
        each &= a->batch * b->gpus == b->batch * a->gpus;
    }
    if (!same && !each) return "";
    const hp_plot_candidate *c = s->candidate;
    if (!same && c->gpus > 0) return hp_arena_printf(arena, ", batch %g a device", c->batch / c->gpus);
    return same && c->batch > 0 ? hp_arena_printf(arena, ", batch %.0f", c->batch) : "";
}

/* The candidates' precision; "": they differ. */
static const char *precision_of(hp_arena *arena, const hp_plot_source *s) {
    const char *first = NULL;
    for (int i = 0; i < s->n_candidate; i++) {
        const char *p = precision(arena, s->candidate[i].strategy);
        if (first && strcmp(first, p) != 0) return "";
        first = p;
    }
    return first ? hp_arena_printf(arena, ", %.20s", first) : "";
}

const char *hp_plot_heading(hp_arena *arena, const hp_plot_source *s, const char *what) {
    const hp_trace *t = trace_of(s);
    const char *machine = t ? hp_arena_printf(arena, " on %.60s (%.30s)", t->machine, t->device) : "";
    return hp_text_clean(arena, hp_arena_printf(arena, "%s: %s%s%s%s", what, subject(arena, s),
                                                batch_of(arena, s), precision_of(arena, s), machine));
}
