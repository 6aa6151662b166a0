/* strategy.c - strategy strings: one row per key, in canonical order (the command line's contract). */
#include "plan/strategy.h"

#include "plan/base/units.h"

#include <string.h>

enum { MAX_DEGREE = 65536, DEFAULT_FUSE = 25000000 };

static const char *const sched_names[] = {"lp", "gpipe", "1f1b", "interleaved", NULL};
static const char *const recompute_names[] = {"none", "boundary", "full", "except-last", NULL};

typedef enum key_kind { KEY_DEGREE, KEY_NAME, KEY_CUT, KEY_BYTES, KEY_LATER } key_kind;

typedef struct key {
    const char *name;
    key_kind kind;
    size_t offset;            /* int32_t field of hp_strategy (KEY_BYTES: int64_t) */
    const char *const *names; /* KEY_NAME */
    const char *only;         /* KEY_LATER: the one value this version has */
} key;

static const key keys[] = {
    {"dp", KEY_DEGREE, offsetof(hp_strategy, dp), NULL, NULL},
    {"stages", KEY_DEGREE, offsetof(hp_strategy, stages), NULL, NULL},
    {"chunks", KEY_DEGREE, offsetof(hp_strategy, chunks), NULL, NULL},
    {"cut", KEY_CUT, 0, NULL, NULL},
    {"sp", KEY_LATER, 0, NULL, "1x1"},
    {"cp", KEY_LATER, 0, NULL, "1"},
    {"tp", KEY_LATER, 0, NULL, "1"},
    {"ep", KEY_LATER, 0, NULL, "1"},
    {"seq", KEY_LATER, 0, NULL, "1"},
    {"zero", KEY_LATER, 0, NULL, "0"},
    {"ldp", KEY_LATER, 0, NULL, "1"},
    {"tail", KEY_LATER, 0, NULL, "own"},
    {"micro", KEY_DEGREE, offsetof(hp_strategy, micro), NULL, NULL},
    {"sched", KEY_NAME, offsetof(hp_strategy, sched), sched_names, NULL},
    {"gems", KEY_LATER, 0, NULL, "1"},
    {"halo", KEY_LATER, 0, NULL, "1"},
    {"bn", KEY_LATER, 0, NULL, "sync"},
    {"recompute", KEY_NAME, offsetof(hp_strategy, recompute), recompute_names, NULL},
    {"clients", KEY_LATER, 0, NULL, "1"},
    {"prec", KEY_LATER, 0, NULL, "fp32"},
    {"comm", KEY_LATER, 0, NULL, "auto"},
    {"fuse", KEY_BYTES, offsetof(hp_strategy, fuse_bytes), NULL, NULL},
    {"compress", KEY_LATER, 0, NULL, "none"},
};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

static int32_t *field(const hp_strategy *s, const key *k) {
    return (int32_t *)(void *)((char *)(uintptr_t)s + k->offset);
}

hp_strategy hp_strategy_default(void) {
    return (hp_strategy){
        .dp = 1, .stages = 1, .chunks = 1, .micro = 1, .cp = 1, .ldp = 1, .gems = 1, .halo = 1, .clients = 1,
        .sched = HP_SCHED_LP, .fuse_bytes = DEFAULT_FUSE};
}

static hp_sched default_sched(const hp_strategy *s) {
    return s->micro > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
}

static hp_status parse_cut(const char *value, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT];
    snprintf(copy, sizeof copy, "%s", value);
    s->n_cut = 0;
    char *rest = NULL;
    for (char *part = strtok_r(copy, ":", &rest); part; part = strtok_r(NULL, ":", &rest)) {
        int64_t units = 0;
        HP_TRY(hp_parse_int(part, "strategy: cut", 1, MAX_DEGREE, &units, err));
        if (s->n_cut == HP_MAX_STAGES)
            return hp_fail(err, HP_EUSAGE, "strategy: cut has more than %d entries", HP_MAX_STAGES);
        s->cut[s->n_cut++] = (int32_t)units;
    }
    if (!s->n_cut)
        return hp_fail(err, HP_EUSAGE,
                       "strategy: cut is empty; write units per stage, for example cut=9:9:9:11");
    return HP_OK;
}

static hp_status parse_name(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    for (int i = 0; k->names[i]; i++) {
        if (strcmp(k->names[i], value) == 0) {
            *field(s, k) = i;
            return HP_OK;
        }
    }
    if (k->names == sched_names && (strcmp(value, "gems") == 0 || strcmp(value, "zb") == 0))
        return hp_fail(err, HP_EUNAVAIL,
                       "strategy: sched=%s is not in this version; it has lp, gpipe, 1f1b, interleaved",
                       value);
    char all[128] = "";
    for (int i = 0; k->names[i]; i++) {
        strcat(all, i ? ", " : "");
        strcat(all, k->names[i]);
    }
    return hp_fail(err, HP_EUSAGE, "strategy: %s=%.40s is unknown; choose one of %s", k->name, value, all);
}

static hp_status parse_value(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    char what[48];
    int64_t v = 0;
    snprintf(what, sizeof what, "strategy: %s", k->name);
    switch (k->kind) {
    case KEY_DEGREE:
        HP_TRY(hp_parse_int(value, what, 1, MAX_DEGREE, &v, err));
        *field(s, k) = (int32_t)v;
        return HP_OK;
    case KEY_NAME:
        return parse_name(k, value, s, err);
    case KEY_CUT:
        return parse_cut(value, s, err);
    case KEY_BYTES:
        HP_TRY(hp_parse_bytes(value, &s->fuse_bytes, err));
        if (s->fuse_bytes < 1) return hp_fail(err, HP_EUSAGE, "strategy: fuse must be at least 1 byte");
        return HP_OK;
    case KEY_LATER:
        break;
    }
    if (strcmp(value, k->only) == 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "strategy: %s=%.60s is not in this version, which has %s=%s only",
                   k->name, value, k->name, k->only);
}

static const key *find_key(const char *name) {
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(keys[i].name, name) == 0) return &keys[i];
    return NULL;
}

hp_status hp_strategy_parse(const char *text, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "strategy: longer than %d characters", HP_STRATEGY_TEXT - 1);
    *s = hp_strategy_default();
    bool seen[N_KEYS] = {false};
    bool sched_given = false;
    char *rest = NULL;
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (!value)
            return hp_fail(err, HP_EUSAGE,
                           "strategy: '%.60s' is not key=value, for example dp=2,stages=4,micro=8", item);
        *value++ = 0;
        const key *k = find_key(item);
        if (!k) return hp_fail(err, HP_EUSAGE, "strategy: unknown key '%.40s'", item);
        if (seen[k - keys]) return hp_fail(err, HP_EUSAGE, "strategy: %s is given twice", k->name);
        seen[k - keys] = true;
        HP_TRY(parse_value(k, value, s, err));
        sched_given |= k->names == sched_names;
    }
    if (!sched_given) s->sched = s->chunks > 1 ? (int32_t)HP_SCHED_INTERLEAVED : (int32_t)default_sched(s);
    if (s->stages == 1 && s->chunks == 1)
        s->sched = default_sched(s); /* one stage: every order is gradient accumulation */
    return HP_OK;
}

bool hp_strategy_equal(const hp_strategy *a, const hp_strategy *b) {
    char x[HP_STRATEGY_TEXT], y[HP_STRATEGY_TEXT];
    return strcmp(hp_strategy_text(a, x), hp_strategy_text(b, y)) == 0;
}

static void put(char *out, const char *name, const char *value) {
    const size_t n = strlen(out);
    snprintf(out + n, HP_STRATEGY_TEXT - n, "%s%s=%s", n ? "," : "", name, value);
}

static void put_bytes(char *out, const key *k, int64_t bytes) {
    char value[32];
    if (bytes % 1000000 == 0) {
        snprintf(value, sizeof value, "%lldM", (long long)(bytes / 1000000));
    } else {
        snprintf(value, sizeof value, "%lld", (long long)bytes);
    }
    put(out, k->name, value);
}

const char *hp_strategy_text(const hp_strategy *s, char *out) {
    out[0] = 0;
    for (int i = 0; i < N_KEYS; i++) {
        const key *k = &keys[i];
        char value[HP_STRATEGY_TEXT] = "";
        if (k->kind == KEY_DEGREE && *field(s, k) != 1) {
            snprintf(value, sizeof value, "%d", *field(s, k));
            put(out, k->name, value);
        } else if (k->kind == KEY_NAME) {
            const bool one_stage = s->stages == 1 && s->chunks == 1; /* every order is the same there */
            const int32_t standard = k->names == sched_names ? (int32_t)default_sched(s) : 0;
            if (*field(s, k) != standard && !(k->names == sched_names && one_stage))
                put(out, k->name, k->names[*field(s, k)]);
        } else if (k->kind == KEY_CUT && s->n_cut && s->stages * s->chunks > 1) {
            for (int c = 0; c < s->n_cut; c++)
                snprintf(value + strlen(value), sizeof value - strlen(value), "%s%d", c ? ":" : "",
                         s->cut[c]);
            put(out, k->name, value);
        } else if (k->kind == KEY_BYTES && s->fuse_bytes != DEFAULT_FUSE) {
            put_bytes(out, k, s->fuse_bytes);
        }
    }
    if (!out[0]) strcpy(out, "dp=1");
    return out;
}

int64_t hp_strategy_batch(const hp_strategy *s, int64_t at_least) {
    const int64_t group = (int64_t)s->dp * s->micro;
    const int64_t n = (at_least + group - 1) / group;
    return (n < 1 ? 1 : n) * group;
}
