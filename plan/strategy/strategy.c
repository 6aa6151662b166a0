/* strategy.c - strategy strings: one row per key, in canonical order (the command line's contract). */
#include "networks/graph/deploy.h"
#include "plan/strategy/family.h"
#include "plan/strategy/grids.h"
#include "plan/strategy/layout.h"
#include "plan/strategy/place.h"
#include "plan/strategy/proportions_text.h"
#include "plan/strategy/sequence.h"
#include "plan/strategy/sync.h"
#include "plan/strategy/zero.h"

#include "base/nearest.h"
#include "base/units.h"

#include <string.h>

enum { MAX_DEGREE = HP_MAX_DEGREE, DEFAULT_FUSE = 25000000, DEFAULT_GEMS = 2 };
static const char BALANCED[] = "balanced"; /* cut by cost */

static const char *const sched_names[] = {"lp", "gpipe", "1f1b", "interleaved", "zb", "gems", NULL};
static const char *const recompute_names[] = {"none", "boundary", "full", "except-last", NULL};
static const char *const tail_names[] = {"own", "shared", NULL};
static const char *const overlap_names[] = {"none", "interior", NULL};
static const char *const bn_names[] = {"sync", "all", "local", NULL};

typedef struct key key;

/* How the values of a kind of key are read and written, and whether the canonical string leaves them out: where
 * they are the default, or what other keys imply. */
typedef struct key_kind {
    hp_status (*parse)(const key *k, const char *value, hp_strategy *s, hp_error *err);
    void (*print)(const key *k, const hp_strategy *s, char *value);
    bool (*omits)(const key *k, const hp_strategy *s);
    /* of kinds with a file of their own */
    hp_status (*read)(const char *value, hp_strategy *s, hp_error *err);
    void (*write)(const hp_strategy *s, char *value);
} key_kind;

struct key {
    const char *name;
    const key_kind *kind;
    size_t offset;            /* int32_t field of hp_strategy */
    const char *const *names; /* of a name's values */
    const char *only;         /* the one value this version has */
};

static const int32_t *field(const hp_strategy *s, const key *k) {
    return (const int32_t *)(const void *)((const char *)s + k->offset);
}

static void set_field(hp_strategy *s, const key *k, int32_t value) {
    memcpy((char *)s + k->offset, &value, sizeof value);
}

/* --- degrees --- */

static hp_status parse_degree(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    char what[48];
    int64_t degree = 0;
    snprintf(what, sizeof what, "strategy: %s", k->name);
    HP_TRY(hp_parse_int(value, what, 1, MAX_DEGREE, &degree, err));
    set_field(s, k, (int32_t)degree);
    return HP_OK;
}

static void print_degree(const key *k, const hp_strategy *s, char *value) {
    snprintf(value, HP_STRATEGY_TEXT, "%d", *field(s, k));
}

static bool is_one(const key *k, const hp_strategy *s) {
    return *field(s, k) == 1;
}

static bool is_default_gems(const key *k, const hp_strategy *s) {
    (void)k;
    return s->gems == (s->sched == HP_SCHED_GEMS ? DEFAULT_GEMS : 1);
}

static const key_kind degree = {parse_degree, print_degree, is_one, NULL, NULL},
                      gems_kind = {parse_degree, print_degree, is_default_gems, NULL, NULL};

/* --- names --- */

static hp_status parse_name(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    for (int i = 0; k->names[i]; i++) {
        if (strcmp(k->names[i], value) == 0) {
            set_field(s, k, i);
            return HP_OK;
        }
    }
    char all[128] = "";
    for (int i = 0; k->names[i]; i++) {
        strcat(all, i ? ", " : "");
        strcat(all, k->names[i]);
    }
    return hp_fail(err, HP_EUSAGE, "strategy: %s=%.40s is unknown; choose one of %s", k->name, value, all);
}

static void print_name(const key *k, const hp_strategy *s, char *value) {
    snprintf(value, HP_STRATEGY_TEXT, "%s", k->names[*field(s, k)]);
}

static bool is_zero(const key *k, const hp_strategy *s) {
    return *field(s, k) == 0;
}

static hp_sched plain_sched(const hp_strategy *s) {
    return s->micro > 1 ? HP_SCHED_GPIPE : HP_SCHED_LP;
}

/* What a string without `sched` means. */
static hp_sched implied_sched(const hp_strategy *s) {
    if (s->gems > 1) return HP_SCHED_GEMS;
    return s->chunks > 1 ? HP_SCHED_INTERLEAVED : plain_sched(s);
}

/* Only the contract's defaults are left out, and only where reading brings them back. */
static bool is_implied_sched(const key *k, const hp_strategy *s) {
    (void)k;
    const hp_sched sched = (hp_sched)s->sched;
    return sched == plain_sched(s) && sched == implied_sched(s);
}

static const key_kind name = {parse_name, print_name, is_zero, NULL, NULL},
                      sched_kind = {parse_name, print_name, is_implied_sched, NULL, NULL};

/* --- lists --- */

static hp_status parse_cut(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    (void)k;
    char copy[HP_STRATEGY_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    s->n_cut = 0;
    if (strcmp(value, BALANCED) == 0) return HP_OK;
    if (!copy[0])
        return hp_fail(err, HP_EUSAGE,
                       "strategy: cut is empty; write units per stage, for example cut=9:9:9:11");
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        int64_t units = 0;
        HP_TRY(hp_parse_int(part, "strategy: cut", 1, MAX_DEGREE, &units, err));
        if (s->n_cut == HP_MAX_STAGES)
            return hp_fail(err, HP_EUSAGE, "strategy: cut has more than %d entries", HP_MAX_STAGES);
        s->cut[s->n_cut++] = (int32_t)units;
    }
    return HP_OK;
}

static void print_cut(const key *k, const hp_strategy *s, char *value) {
    (void)k;
    if (!s->n_cut) strcpy(value, BALANCED);
    for (int i = 0; i < s->n_cut; i++)
        snprintf(value + strlen(value), HP_STRATEGY_TEXT - strlen(value), "%s%d", i ? ":" : "", s->cut[i]);
}

/* A single stage takes all units. */
static bool is_balanced(const key *k, const hp_strategy *s) {
    (void)k;
    return !s->n_cut || (s->n_cut == 1 && (int64_t)s->stages * s->chunks == 1);
}

static bool has_no_tiles(const key *k, const hp_strategy *s) {
    (void)k;
    return s->n_sp == 0;
}

static const key_kind cut_list = {parse_cut, print_cut, is_balanced, NULL, NULL};

/* --- kinds with a file of their own --- */

static hp_status parse_elsewhere(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    return k->kind->read(value, s, err);
}

static void print_elsewhere(const key *k, const hp_strategy *s, char *value) {
    k->kind->write(s, value);
}

static const key_kind tile_list = {parse_elsewhere, print_elsewhere, has_no_tiles, hp_grids_parse,
                                   hp_grids_text},
                      zero_kind = {parse_elsewhere, print_elsewhere, is_zero, hp_zero_parse, hp_zero_text},
                      sync_kind = {parse_elsewhere, print_elsewhere, is_zero, hp_sync_parse, hp_sync_text},
                      place_kind = {parse_elsewhere, print_elsewhere, is_zero, hp_place_parse, hp_place_text},
                      seq_kind = {parse_elsewhere, print_elsewhere, is_one, hp_seq_parse, hp_seq_text};

/* --- proportions --- */

static hp_proportions *weights(const hp_strategy *s, const key *k) {
    return (hp_proportions *)(void *)((char *)(uintptr_t)s + k->offset);
}

static hp_status parse_weights(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    return hp_proportions_read(k->name, value, weights(s, k), err);
}

static void print_weights(const key *k, const hp_strategy *s, char *value) {
    hp_proportions_write(weights(s, k), value);
}

static bool is_even(const key *k, const hp_strategy *s) {
    return weights(s, k)->n == 0;
}

static const key_kind proportions = {parse_weights, print_weights, is_even, NULL, NULL};

/* --- bytes --- */

static hp_status parse_fuse(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    (void)k;
    HP_TRY(hp_parse_bytes(value, &s->fuse_bytes, err));
    if (s->fuse_bytes < 1) return hp_fail(err, HP_EUSAGE, "strategy: fuse must be at least 1 byte");
    return HP_OK;
}

static void print_fuse(const key *k, const hp_strategy *s, char *value) {
    (void)k;
    const bool round = s->fuse_bytes % 1000000 == 0;
    snprintf(value, HP_STRATEGY_TEXT, "%lld%s", (long long)(s->fuse_bytes / (round ? 1000000 : 1)),
             round ? "M" : "");
}

static bool is_default_fuse(const key *k, const hp_strategy *s) {
    (void)k;
    return s->fuse_bytes == DEFAULT_FUSE;
}

static const key_kind fuse_size = {parse_fuse, print_fuse, is_default_fuse, NULL, NULL};

/* --- precision --- */

static hp_status parse_prec(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    static const char *const coming[] = {"fp8", "int4"};
    for (size_t i = 0; i < sizeof coming / sizeof *coming; i++)
        if (strcmp(value, coming[i]) == 0)
            return hp_fail(
                err, HP_EUNAVAIL,
                "strategy: prec=%s is not in this version: fp32, tf32, bf16, fp16, int8, int8-dynamic",
                value);
    return parse_name(k, value, s, err);
}

static const key_kind prec_kind = {parse_prec, print_name, is_zero, NULL, NULL};

/* --- back ends --- */

static hp_status parse_comm(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    (void)k;
    return hp_comm_parse(value, s->comm, err);
}

static void print_comm(const key *k, const hp_strategy *s, char *value) {
    (void)k;
    hp_comm_text(s->comm, value, HP_STRATEGY_TEXT);
}

static bool is_auto(const key *k, const hp_strategy *s) {
    (void)k;
    return hp_comm_is_auto(s->comm);
}

static const key_kind comm_kind = {parse_comm, print_comm, is_auto, NULL, NULL};

/* --- codecs --- */

static hp_status parse_compress(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    (void)k;
    return hp_compress_parse(value, s->compress, err);
}

static void print_compress(const key *k, const hp_strategy *s, char *value) {
    (void)k;
    hp_compress_text(s->compress, value, HP_STRATEGY_TEXT);
}

static bool is_none(const key *k, const hp_strategy *s) {
    (void)k;
    return hp_compress_is_none(s->compress);
}

static const key_kind compress_kind = {parse_compress, print_compress, is_none, NULL, NULL};

/* --- units --- */

/* 0: as many as the first stage has. */
static hp_status parse_deep(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    if (strcmp(value, "0") != 0) return parse_degree(k, value, s, err);
    set_field(s, k, 0);
    return HP_OK;
}

static const key_kind deep_kind = {parse_deep, print_degree, is_zero, NULL, NULL};

/* --- keys of later versions --- */

static hp_status parse_later(const key *k, const char *value, hp_strategy *s, hp_error *err) {
    (void)s;
    if (strcmp(value, k->only) == 0) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "strategy: %s=%.60s is not in this version, which has %s=%s only",
                   k->name, value, k->name, k->only);
}

static void print_later(const key *k, const hp_strategy *s, char *value) {
    (void)s;
    strcpy(value, k->only);
}

static bool is_only(const key *k, const hp_strategy *s) {
    (void)k, (void)s;
    return true;
}

static const key_kind later = {parse_later, print_later, is_only, NULL, NULL};

/* --- the table --- */

#define AT(member) offsetof(hp_strategy, member)
static const key keys[] = {
    {"dp", &degree, AT(dp), NULL, NULL},
    {"share", &proportions, AT(by[HP_AXIS_N]), NULL, NULL},
    {"stages", &degree, AT(stages), NULL, NULL},
    {"chunks", &degree, AT(chunks), NULL, NULL},
    {"cut", &cut_list, 0, NULL, NULL},
    {"sp", &tile_list, 0, NULL, NULL},
    {"rows", &proportions, AT(by[HP_AXIS_H]), NULL, NULL},
    {"cols", &proportions, AT(by[HP_AXIS_W]), NULL, NULL},
    {"cp", &degree, AT(cp), NULL, NULL},
    {"bp", &degree, AT(bp), NULL, NULL},
    {"tp", &degree, AT(tp), NULL, NULL},
    {"ep", &later, 0, NULL, "1"},
    {"seq", &seq_kind, AT(seq), NULL, NULL},
    {"zero", &zero_kind, AT(zero), NULL, NULL},
    {"sync", &sync_kind, AT(sync), NULL, NULL},
    {"ldp", &degree, AT(ldp), NULL, NULL},
    {"tail", &name, AT(tail), tail_names, NULL},
    {"micro", &degree, AT(micro), NULL, NULL},
    {"sched", &sched_kind, AT(sched), sched_names, NULL},
    {"gems", &gems_kind, AT(gems), NULL, NULL},
    {"halo", &degree, AT(halo), NULL, NULL},
    {"overlap", &name, AT(overlap), overlap_names, NULL},
    {"strips", &degree, AT(strips), NULL, NULL},
    {"deep", &deep_kind, AT(deep), NULL, NULL},
    {"bn", &name, AT(bn), bn_names, NULL},
    {"recompute", &name, AT(recompute), recompute_names, NULL},
    {"clients", &degree, AT(clients), NULL, NULL},
    {"prec", &prec_kind, AT(prec), hp_prec_names, NULL},
    {"comm", &comm_kind, 0, NULL, NULL},
    {"fuse", &fuse_size, 0, NULL, NULL},
    {"compress", &compress_kind, 0, NULL, NULL},
    {"place", &place_kind, AT(place), NULL, NULL},
};
#undef AT
enum { N_KEYS = sizeof keys / sizeof keys[0] };

hp_strategy hp_strategy_default(void) {
    return (hp_strategy){.dp = 1,
                         .stages = 1,
                         .chunks = 1,
                         .micro = 1,
                         .cp = 1,
                         .tp = 1,
                         .seq = 1,
                         .ldp = 1,
                         .bp = 1,
                         .gems = 1,
                         .halo = 1,
                         .strips = 1,
                         .clients = 1,
                         .prefetch = HP_ZERO_PREFETCH,
                         .sched = HP_SCHED_LP,
                         .fuse_bytes = DEFAULT_FUSE};
}

hp_strategy hp_strategy_canonical(const hp_strategy *s) {
    hp_strategy c = *s;
    const bool plain_tail = c.tail == HP_TAIL_OWN && c.ldp == 1;
    while (plain_tail && c.n_sp > 0 && c.n_sp <= c.stages &&
           (int64_t)c.sp_rows[c.n_sp - 1] * c.sp_cols[c.n_sp - 1] == 1)
        c.n_sp--;
    for (int axis = 0; axis < HP_AXIS_C; axis++)
        if (hp_proportions_fit(&c, axis, NULL)) c.by[axis] = hp_proportions_reduced(&c.by[axis]);
    if (c.strips == 1) c.deep = 0;
    if (hp_place_is_plain(&c)) c.place = HP_PLACE_BLOCK;
    if (hp_positions(&c) == 1 && c.chunks == 1 && c.sched != HP_SCHED_GEMS)
        c.sched = (int32_t)plain_sched(&c);
    return c;
}

static const key *find_key(const char *word) {
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(keys[i].name, word) == 0) return &keys[i];
    return NULL;
}

static hp_status unknown_key(const char *word, hp_error *err) {
    const char *names[N_KEYS], *meant = hp_strategy_called(word);
    for (int i = 0; i < N_KEYS; i++) names[i] = keys[i].name;
    const char *near = *meant ? meant : hp_nearest(word, names, N_KEYS);
    if (!near) return hp_fail(err, HP_EUSAGE, "strategy: unknown key '%.40s'; keys are as in dp=4", word);
    return hp_fail(err, HP_EUSAGE, "strategy: unknown key '%.40s': did you mean '%s%s'?", word, near,
                   *meant ? "" : "=");
}

/* One "key=value"; `seen` has one flag per key. */
static hp_status parse_item(char *item, bool *seen, hp_strategy *s, hp_error *err) {
    char *value = strchr(item, '=');
    if (!value && *hp_strategy_called(item)) return unknown_key(item, err);
    if (!value)
        return hp_fail(err, HP_EUSAGE,
                       "strategy: '%.60s' is not key=value, for example dp=2,stages=4,micro=8", item);
    *value++ = 0;
    const key *k = find_key(item);
    if (!k) return unknown_key(item, err);
    if (seen[k - keys]) return hp_fail(err, HP_EUSAGE, "strategy: %s is given twice", k->name);
    seen[k - keys] = true;
    return k->kind->parse(k, value, s, err);
}

hp_status hp_strategy_parse(const char *text, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "strategy: longer than %d characters", HP_STRATEGY_TEXT - 1);
    *s = hp_strategy_default();
    bool seen[N_KEYS] = {false};
    char *rest = NULL;
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        HP_TRY(parse_item(item, seen, s, err));
    if (!seen[find_key("sched") - keys]) s->sched = (int32_t)implied_sched(s);
    if (s->sched == HP_SCHED_GEMS && !seen[find_key("gems") - keys]) s->gems = DEFAULT_GEMS;
    *s = hp_strategy_canonical(s);
    return HP_OK;
}

bool hp_strategy_equal(const hp_strategy *a, const hp_strategy *b) {
    char x[HP_STRATEGY_TEXT], y[HP_STRATEGY_TEXT];
    return strcmp(hp_strategy_text(a, x), hp_strategy_text(b, y)) == 0;
}

/* A key and its value behind those that are there. */
static void append_key(const key *k, const hp_strategy *s, char *out) {
    char value[HP_STRATEGY_TEXT] = "";
    const size_t n = strlen(out);
    k->kind->print(k, s, value);
    snprintf(out + n, HP_STRATEGY_TEXT - n, "%s%s=%s", n ? "," : "", k->name, value);
}

const char *hp_strategy_text(const hp_strategy *s, char *out) {
    const hp_strategy c = hp_strategy_canonical(s);
    out[0] = 0;
    for (int i = 0; i < N_KEYS; i++)
        if (!keys[i].kind->omits(&keys[i], &c)) append_key(&keys[i], &c, out);
    if (!out[0]) strcpy(out, "dp=1");
    return out;
}

/* --- changes --- */

static bool differs(const key *k, const hp_strategy *a, const hp_strategy *b) {
    char x[HP_STRATEGY_TEXT] = "", y[HP_STRATEGY_TEXT] = "";
    const bool a_omits = k->kind->omits(k, a), b_omits = k->kind->omits(k, b);
    if (a_omits || b_omits) return a_omits != b_omits; /* what both leave out follows from other keys */
    k->kind->print(k, a, x);
    k->kind->print(k, b, y);
    return strcmp(x, y) != 0;
}

int hp_strategy_change(const hp_strategy *from, const hp_strategy *to, char *out) {
    const hp_strategy a = hp_strategy_canonical(from), b = hp_strategy_canonical(to);
    int n = 0;
    out[0] = 0;
    for (int i = 0; i < N_KEYS; i++) {
        if (!differs(&keys[i], &a, &b)) continue;
        append_key(&keys[i], &b, out);
        n++;
    }
    return n;
}

hp_status hp_strategy_replace(hp_strategy *s, const char *items, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], all[2 * HP_STRATEGY_TEXT], *rest = NULL;
    bool replaced[N_KEYS] = {false};
    const hp_strategy c = hp_strategy_canonical(s);
    snprintf(copy, sizeof copy, "%s", items);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        item[strcspn(item, "=")] = 0;
        const key *k = find_key(item);
        if (k) replaced[k - keys] = true;
    }
    all[0] = 0;
    for (int i = 0; i < N_KEYS; i++)
        if (!replaced[i] && !keys[i].kind->omits(&keys[i], &c)) append_key(&keys[i], &c, all);
    const size_t n = strlen(all);
    snprintf(all + n, sizeof all - n, "%s%s", n ? "," : "", items);
    return hp_strategy_parse(all, s, err);
}
