/* legal.c - which strategies are possible for a network, a batch and a number of devices; each refusal
 * carries its code, the limiting number and the smallest fix. */
#include "plan/strategy.h"

#include <stdarg.h>
#include <string.h>

static bool refuse(hp_reject *why, const char *code, const char *fix, const char *limit, ...)
    __attribute__((format(printf, 4, 5)));

static bool refuse(hp_reject *why, const char *code, const char *fix, const char *limit, ...) {
    if (!why) return false;
    va_list ap;
    va_start(ap, limit);
    why->code = code;
    vsnprintf(why->limit, sizeof why->limit, limit, ap);
    va_end(ap);
    snprintf(why->fix, sizeof why->fix, "%s", fix);
    return false;
}

static bool legal_schedule(const hp_strategy *s, hp_reject *why) {
    char fix[96];
    if (s->sched == HP_SCHED_LP && s->micro > 1)
        return refuse(why, "E-SCHED", "sched=gpipe or micro=1",
                      "sched=lp moves one batch at a time, micro=%d", s->micro);
    if ((s->sched == HP_SCHED_INTERLEAVED) != (s->chunks > 1))
        return refuse(why, "E-SCHED", s->chunks > 1 ? "sched=interleaved" : "chunks=2",
                      "chunks=%d: only sched=interleaved has several model chunks per rank", s->chunks);
    if (s->chunks > 1 && s->stages < 2)
        return refuse(why, "E-SCHED", "chunks=1", "sched=interleaved needs at least 2 stages, stages=%d",
                      s->stages);
    if (s->chunks > 1 && s->micro % s->stages != 0) {
        snprintf(fix, sizeof fix, "micro=%d", (s->micro / s->stages + 1) * s->stages);
        return refuse(why, "E-SCHED", fix, "sched=interleaved needs micro divisible by stages: %d %% %d = %d",
                      s->micro, s->stages, s->micro % s->stages);
    }
    return true;
}

static bool legal_cut(const hp_strategy *s, const hp_graph *g, hp_reject *why) {
    char fix[96];
    const int64_t parts = (int64_t)s->stages * s->chunks;
    if (parts > g->n_unit) {
        snprintf(fix, sizeof fix, "stages=%d", g->n_unit / s->chunks > 0 ? g->n_unit / s->chunks : 1);
        return refuse(why, "E-STAGES", fix, "%s has %d units, stages*chunks = %lld", g->net, g->n_unit,
                      (long long)parts);
    }
    if (parts > HP_MAX_STAGES)
        return refuse(why, "E-STAGES", "fewer stages", "at most %d stages", HP_MAX_STAGES);
    if (!s->n_cut) return true;
    int64_t sum = 0;
    for (int i = 0; i < s->n_cut; i++) sum += s->cut[i];
    if (s->n_cut != parts)
        return refuse(why, "E-CUT", "one entry per stage (and chunk)",
                      "cut has %d entries, stages*chunks = %lld", s->n_cut, (long long)parts);
    if (sum != g->n_unit) {
        snprintf(fix, sizeof fix, "make the entries sum to %d (hplan explain lists the units)", g->n_unit);
        return refuse(why, "E-CUT", fix, "cut sums to %lld, %s has %d units", (long long)sum, g->net,
                      g->n_unit);
    }
    return true;
}

bool hp_strategy_legal(const hp_strategy *s, const hp_graph *g, int64_t batch, int n_devices,
                       hp_reject *why) {
    char fix[96];
    if (why) memset(why, 0, sizeof *why);
    const int64_t ranks = (int64_t)s->dp * s->stages;
    if (n_devices && ranks > n_devices) {
        snprintf(fix, sizeof fix, "--gpus %lld", (long long)ranks);
        return refuse(why, "E-GPUS", fix, "dp*stages = %lld ranks, %d devices", (long long)ranks, n_devices);
    }
    if (!legal_schedule(s, why) || !legal_cut(s, g, why)) return false;
    const int64_t group = (int64_t)s->dp * s->micro;
    if (batch < 1 || batch % group != 0) {
        snprintf(fix, sizeof fix, "--batch %lld", (long long)hp_strategy_batch(s, batch));
        return refuse(why, "E-BATCH", fix, "batch %lld is not divisible by dp*micro = %lld", (long long)batch,
                      (long long)group);
    }
    return true;
}
