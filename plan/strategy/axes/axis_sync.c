/* axis_sync.c - see axis_sync.h. That `zero` goes with allreduce alone is said here. */
#include "plan/strategy/axes/axis_sync.h"

#include "plan/strategy/axis_kinds.h"

#include "base/units.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/precision.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 65536 };

static hp_status parse_ps(const char *servers, hp_strategy *s, hp_error *err) {
    int64_t n = 0;
    if (*servers) HP_TRY(hp_parse_int(servers + 1, "strategy: sync=ps:", 1, MOST, &n, err));
    s->sync.how = HP_SYNC_PS;
    s->sync.servers = (int32_t)n;
    return HP_OK;
}

static hp_status parse_local(const char *steps, hp_strategy *s, hp_error *err) {
    int64_t n = 0;
    HP_TRY(hp_parse_int(*steps ? steps + 1 : "", "strategy: sync=local:", 1, MOST, &n, err));
    s->sync.how = HP_SYNC_LOCAL;
    s->sync.local = (int32_t)n;
    return HP_OK;
}

static hp_status parse_sync(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    const size_t word = strcspn(value, ":");
    s->sync.how = HP_SYNC_ALLREDUCE;
    s->sync.servers = s->sync.local = 0;
    if (strcmp(value, "allreduce") == 0) return HP_OK;
    if (word == 2 && strncmp(value, "ps", word) == 0) return parse_ps(value + word, s, err);
    if (word == 5 && strncmp(value, "local", word) == 0) return parse_local(value + word, s, err);
    return hp_fail(err, HP_EUSAGE,
                   "strategy: sync=%.40s is unknown; choose allreduce, ps, ps:1 for a single server, local:8 "
                   "to average every 8 steps",
                   value);
}

static void print_sync(const hp_axis *a, const hp_strategy *s, char *out) {
    (void)a;
    if (s->sync.how == HP_SYNC_LOCAL)
        sprintf(out, "local:%d", s->sync.local);
    else if (s->sync.how != HP_SYNC_PS)
        strcpy(out, "allreduce");
    else if (s->sync.servers)
        sprintf(out, "ps:%d", s->sync.servers);
    else
        strcpy(out, "ps");
}

static bool legal_sync(const hp_legal_case *c, hp_reject *why) {
    if (c->s->sync.how == HP_SYNC_ALLREDUCE) return true;
    if (c->g->deployed) {
        hp_refuse(why, HP_REJECT_SYNC, "a deployed network has no gradients to synchronise, sync=%s",
                  c->s->sync.how == HP_SYNC_PS ? "ps" : "local");
        return hp_fix(why, "sync=allreduce");
    }
    if (c->s->zero.stage) {
        hp_refuse(why, HP_REJECT_SYNC, "zero=%d: each rank updates its part of every bucket, sync=%s",
                  c->s->zero.stage, c->s->sync.how == HP_SYNC_PS ? "ps" : "local");
        return hp_fix(why, "sync=allreduce");
    }
    if (c->s->sync.how != HP_SYNC_LOCAL) return true;
    if (!hp_optimizer_of(c->g)->linear)
        hp_refuse(
            why, HP_REJECT_SYNC,
            "sync=local:%d: the mean of what %s makes of the replicas' gradients is not what it makes of "
            "their mean",
            c->s->sync.local, hp_optimizer_of(c->g)->name);
    else if (hp_graph_metric_first(c->g))
        hp_refuse(
            why, HP_REJECT_SYNC,
            "sync=local:%d: updates wait for the metrics of all replicas, where the loss is over pixels "
            "or scaled (fp16), or gradients are clipped",
            c->s->sync.local);
    else
        return true;
    return hp_fix(why, "sync=allreduce");
}

int hp_sync_server(const hp_strategy *s, int size, int k) {
    const int servers = s->sync.servers && s->sync.servers < size ? s->sync.servers : size;
    return s->sync.how == HP_SYNC_PS ? k % servers : -1;
}

const hp_axis hp_axis_sync = {.name = "sync",
                              .example = "sync=ps",
                              .usual = "allreduce",
                              .means = "how replicas agree: ps parameter servers; local:8 each updates its "
                                       "own parameters, which are averaged every 8 steps",
                              .at = offsetof(hp_strategy, sync.how),
                              .parse = parse_sync,
                              .print = print_sync,
                              .omits = hp_field_is_zero,
                              .legal = legal_sync};
