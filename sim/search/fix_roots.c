/* fix_roots.c - turns a question that some rule rejects into legal ones: follows the rules' proposals and, in
 * addition, other changes that would meet rules on devices, batches and channels. */
#include "sim/search/fix_worlds.h"

#include <string.h>

enum {
    MOST_STEPS = 12,  /* longest chain of proposals */
    MOST_VISITS = 100 /* limit on questions checked against the rules */
};

typedef struct finder {
    fix_worlds *worlds;
    hp_question *found;
    int n, visits;
} finder;

static void legalise(finder *f, const hp_question *q, int steps);

/* Follows a proposed change; ignores texts that do not parse or change nothing. */
static void follow(finder *f, const hp_question *q, const char *change, int steps) {
    const hp_machine *m = f->worlds->setup.machine;
    hp_question next = *q;
    char text[HP_STRATEGY_TEXT];
    if (hp_change_apply(&next, change, NULL) != HP_OK) return;
    if (next.n_devices > hp_machine_devices(m) && !m->device.is_cpu) return;
    if (hp_change_text(q, &next, text, sizeof text) > 0) legalise(f, &next, steps + 1);
}

static void follow_proposals(finder *f, const hp_question *q, const hp_reject *why, int steps) {
    static const char or [] = ", or ";
    const char *at = why->fix;
    while (*at) {
        char one[HP_FIX_TEXT];
        const char *end = strstr(at, or);
        const size_t n = end ? (size_t)(end - at) : strlen(at);
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        follow(f, q, one, steps);
        at += n + (end ? strlen(or) : 0);
    }
}

/* Tries fewer replicas, or fewer ranks per replica, if there are too many. */
static void follow_fewer(finder *f, const hp_question *q, int steps) {
    static const char *const one[] = {"ldp=1", "cp=1", "bp=1", "sp=1x1,tail=own,ldp=1",
                                      "stages=1,chunks=1,cut=balanced"};
    const int most = fix_most_devices(f->worlds->setup.machine, q);
    const int devices = hp_strategy_devices(&q->s), roles = devices / q->s.dp;
    char change[64];
    if (roles <= most) {
        snprintf(change, sizeof change, "dp=%d", most / roles);
        follow(f, q, change, steps);
    }
    for (int n = q->s.stages < HP_MAX_STAGES ? q->s.stages - 1 : HP_MAX_STAGES; n > 1; n--) {
        hp_strategy fewer = q->s;
        fewer.stages = n;
        if (hp_strategy_devices(&fewer) > most) continue;
        snprintf(change, sizeof change, "stages=%d,cut=balanced", n);
        follow(f, q, change, steps);
        break;
    }
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) follow(f, q, one[i], steps);
}

/* Tries degrees that divide the batch. */
static void follow_divisors(finder *f, const hp_question *q, int steps) {
    static const struct {
        const char *key;
        size_t offset;
    } degree[] = {{"micro", offsetof(hp_strategy, micro)},
                  {"dp", offsetof(hp_strategy, dp)},
                  {"ldp", offsetof(hp_strategy, ldp)},
                  {"gems", offsetof(hp_strategy, gems)}};
    char change[64];
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++) {
        hp_strategy s = q->s;
        int32_t *value = (int32_t *)(void *)((char *)&s + degree[i].offset);
        const int64_t rest = hp_strategy_divisor(&s) / *value;
        int64_t fewer = *value - 1;
        while (fewer >= 1 && q->batch % (rest * fewer)) fewer--;
        if (fewer < 1) continue;
        snprintf(change, sizeof change, "%s=%lld", degree[i].key, (long long)fewer);
        follow(f, q, change, steps);
    }
}

static void follow_whole(finder *f, const hp_question *q, int steps) {
    follow(f, q, "cp=1", steps);
}

static const struct {
    hp_reject_code code;
    void (*follow)(finder *f, const hp_question *q, int steps);
} others[] = {
    {HP_REJECT_GPUS, follow_fewer}, {HP_REJECT_BATCH, follow_divisors}, {HP_REJECT_CP, follow_whole}};

static void legalise(finder *f, const hp_question *q, int steps) {
    hp_reject why;
    fix_world *w = f->visits++ < MOST_VISITS && steps <= MOST_STEPS ? fix_world_of(f->worlds, q) : NULL;
    if (!w || f->n == FIX_ROOTS) return;
    if (fix_is_legal(w->eval, q, &why)) {
        f->found[f->n++] = *q;
        return;
    }
    follow_proposals(f, q, &why, steps);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].code == why.code) others[i].follow(f, q, steps);
}

/* Tries replicas alone if the rules lead to nothing closer. */
static void add_plain(finder *f) {
    hp_question plain = *f->worlds->asked;
    const int most = fix_most_devices(f->worlds->setup.machine, &plain),
              devices = hp_strategy_devices(&plain.s);
    plain.s = hp_strategy_default();
    plain.s.dp = most && most < devices ? most : devices;
    plain.s.prec = f->worlds->asked->s.prec;
    f->visits = 0;
    legalise(f, &plain, 0);
}

int fix_near(fix_worlds *w, hp_question found[FIX_ROOTS]) {
    finder f = {.worlds = w, .found = found};
    legalise(&f, w->asked, 0);
    return f.n;
}

int fix_roots(fix_worlds *w, hp_question found[FIX_ROOTS]) {
    finder f = {.worlds = w, .found = found, .n = fix_near(w, found)};
    if (!f.n) add_plain(&f);
    return f.n;
}
