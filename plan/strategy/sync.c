/* sync.c - see sync.h. */
#include "plan/strategy/sync.h"

#include "plan/base/units.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SERVERS = 65536 };

static hp_status parse_ps(const char *servers, hp_strategy *s, hp_error *err) {
    int64_t n = 0;
    if (*servers) HP_TRY(hp_parse_int(servers + 1, "strategy: sync=ps:", 1, MOST_SERVERS, &n, err));
    s->sync = HP_SYNC_PS;
    s->servers = (int32_t)n;
    return HP_OK;
}

hp_status hp_sync_parse(const char *value, hp_strategy *s, hp_error *err) {
    const size_t word = strcspn(value, ":");
    s->sync = HP_SYNC_ALLREDUCE;
    s->servers = 0;
    if (strcmp(value, "allreduce") == 0) return HP_OK;
    if (word == 2 && strncmp(value, "ps", word) == 0) return parse_ps(value + word, s, err);
    return hp_fail(err, HP_EUSAGE,
                   "strategy: sync=%.40s is unknown; choose allreduce, ps, or ps:1 for a single server",
                   value);
}

void hp_sync_text(const hp_strategy *s, char *out) {
    if (s->sync != HP_SYNC_PS)
        strcpy(out, "allreduce");
    else if (s->servers)
        sprintf(out, "ps:%d", s->servers);
    else
        strcpy(out, "ps");
}

bool hp_legal_sync(const hp_legal_case *c, hp_reject *why) {
    if (c->s->sync != HP_SYNC_PS || !c->g->deployed) return true;
    hp_refuse(why, HP_REJECT_SYNC, "sync=ps: a deployed network has no gradients to send to a server");
    return hp_fix(why, "sync=allreduce");
}

int hp_sync_server(const hp_strategy *s, int size, int k) {
    const int servers = s->servers && s->servers < size ? s->servers : size;
    return s->sync == HP_SYNC_PS ? k % servers : -1;
}
