/* table.c - rows in a sorted array, and the choice of tables for a machine. */
#include "costmodels/cost_rows.h"
#include "base/input.h"
#include "traces/trace_text.h"

#include <string.h>
#include <unistd.h>

const char *const hp_source_names[] = {"measured", "paper", "datasheet", "guess"};

const char *const hp_gpu_statuses[] = {"never run", "one GPU", "cluster", NULL};

const hp_row_info hp_row_infos[HP_ROW_KINDS] = {
    [HP_ROW_ATTEND] = {"attend",
                       {"rows", "penalty", "fill", "softmax", "moved", "flops", "bytes", "launch", "power",
                        "cache", "cached"},
                       .positive = 1u << HP_ATTEND_ROWS | 1u << HP_ATTEND_PENALTY | 1u << HP_ATTEND_FLOPS |
                                   1u << HP_ATTEND_BYTES | 1u << HP_ATTEND_POWER},
    [HP_ROW_BLOCK] = {"block", {NULL}},
    [HP_ROW_COLLECTIVE] = {"collective", {NULL}},
    [HP_ROW_COMPUTE] = {"compute", {NULL}},
    [HP_ROW_EFFICIENCY] = {"efficiency", {"flops", "bytes", NULL}},
    [HP_ROW_ERROR] = {"error", {"relative", "seconds", NULL}},
    [HP_ROW_FIT] = {"fit",
                    {"launch", "flops", "bytes", "bytes_least", "bytes_most", "intensity_least",
                     "intensity_most", "fastest"},
                    3},
    [HP_ROW_JITTER] = {"jitter", {"cv", "tau", "task"}},
    [HP_ROW_LINK] = {"link", {"latency", "bandwidth", "rate"}},
    [HP_ROW_P2P] = {"p2p", {NULL}},
    [HP_ROW_PATH] = {"path", {"latency", "copies", "host", "hop"}},
    [HP_ROW_REGIME] = {"regime", {"most", "latency", "copies", "block", "stage"}},
    [HP_ROW_SHARE] = {"share", {"share", NULL, NULL}},
    [HP_ROW_STAGE] = {"stage", {"most", "latency", "out", "back"}},
    [HP_ROW_TILE] = {"tile",
                     {"rows", "cols", "least", "penalty", "fill", "depth", "split", "flops", "bytes",
                      "launch", "power", "cache", "cached"},
                     5,
                     1u << HP_TILE_ROWS | 1u << HP_TILE_COLS | 1u << HP_TILE_LEAST | 1u << HP_TILE_PENALTY},
    [HP_ROW_UNITS] = {"units", {"count", NULL}, .positive = 1u << HP_UNITS_COUNT},
    [HP_ROW_YARDSTICK] = {"yardstick", {"quiet", "mean", "spread"}},
};

hp_cost_table *hp_rows_new(hp_arena *arena, const char *machine, const char *date) {
    hp_cost_table *t = HP_NEW(arena, hp_cost_table, 1);
    t->arena = arena;
    t->origin = "data sheet";
    t->speed = hp_speed_quiet();
    snprintf(t->machine, sizeof t->machine, "%s", machine);
    snprintf(t->date, sizeof t->date, "%s", date);
    return t;
}

void hp_rows_add(hp_cost_table *t, const hp_row *row) {
    HP_ROOM(t->arena, t->row, t->n, t->capacity);
    hp_row *r = &t->row[t->n++];
    *r = *row;
    r->class = hp_arena_strdup(t->arena, row->class);
    r->key = hp_arena_strdup(t->arena, row->key);
    r->where = hp_arena_strdup(t->arena, row->where ? row->where : "");
    r->x = HP_NEW(t->arena, double, row->n);
    r->y = HP_NEW(t->arena, double, row->n);
    memcpy(r->x, row->x, sizeof(double) * (size_t)row->n);
    memcpy(r->y, row->y, sizeof(double) * (size_t)row->n);
}

int hp_row_order(const hp_row *a, const hp_row *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    const int class = strcmp(a->class, b->class);
    return class ? class : strcmp(a->key, b->key);
}

static int row_compare(const void *a, const void *b) {
    return hp_row_order(a, b);
}

void hp_rows_sort(hp_cost_table *t) {
    if (t->n > 0) qsort(t->row, (size_t)t->n, sizeof *t->row, row_compare);
}

void hp_rows_keep(hp_cost_table *t, const hp_cost_table *before) {
    hp_rows_sort(t);
    const hp_cost_table here = {.n = t->n, .row = t->row};
    for (int i = 0; before && i < before->n; i++) {
        const hp_row *r = &before->row[i];
        if (!hp_rows_find(&here, r->kind, r->class, r->key)) hp_rows_add(t, r);
    }
    hp_rows_sort(t);
}

static const hp_row *find_here(const hp_cost_table *t, hp_row_kind kind, const char *class, const char *key) {
    const hp_row wanted = {.kind = kind, .class = class, .key = key};
    return t->n ? bsearch(&wanted, t->row, (size_t)t->n, sizeof *t->row, row_compare) : NULL;
}

const hp_row *hp_rows_find(const hp_cost_table *t, hp_row_kind kind, const char *class, const char *key) {
    for (; t; t = t->base) {
        const hp_row *r = find_here(t, kind, class, key);
        if (!r) r = find_here(t, kind, "*", key);
        if (r) return r;
    }
    return NULL;
}

const char *hp_key_family(const char *key, char *out, size_t n) {
    const int length = hp_key_class(key, NULL);
    const char *space = strchr(key, ' '), *last = key + length;
    while (last > key && last[-1] != ' ') last--;
    if (!space || space == last - 1 || last == key)
        snprintf(out, n, "%.*s", length, key);
    else
        snprintf(out, n, "%.*s %.*s", (int)(space - key), key, (int)(key + length - last), last);
    return out;
}

const char *hp_key_fit(const char *key, char *out, size_t n) {
    const char *groups = strstr(key, " g"), *type;
    char family[80];
    int g = 1;
    hp_key_family(key, family, sizeof family);
    type = strchr(family, ' ');
    const bool apart = strstr(family, ".depthwise") != NULL; /* has a family of its own already */
    if (apart || !groups || !type || sscanf(groups, " g%d ", &g) != 1 || g <= 1)
        snprintf(out, n, "%s", family);
    else
        snprintf(out, n, "%.*s.grouped%s", (int)(type - family), family, type);
    return out;
}

int hp_key_class(const char *key, int *width) {
    const char *last = strrchr(key, ' ');
    int w = 0;
    if (last && sscanf(last, " w%d", &w) == 1 && w > 0) {
        if (width) *width = w;
        return (int)(last - key);
    }
    if (width) *width = 0;
    return (int)strlen(key);
}

const char *hp_cost_machine_path(const char *machine, char *out, size_t n) {
    char file[80];
    snprintf(file, sizeof file, "%s.cost", machine);
    return hp_cache_path(file, out, n);
}

const char *hp_cost_origin(const hp_cost_table *t) {
    return t->origin;
}

const char *hp_cost_processor(const hp_cost_table *t) {
    return t->processor;
}

/* Does the table have rows on the class's general speed? The number of multiprocessors is known for all
 * classes; kernels of libraries and collectives are known for some. */
static bool has_class(const hp_cost_table *t, const char *class) {
    for (; t; t = t->base)
        for (int i = 0; i < t->n; i++) {
            const hp_row_kind kind = t->row[i].kind;
            const bool special = kind == HP_ROW_UNITS || kind == HP_ROW_TILE || kind == HP_ROW_ATTEND ||
                                 kind == HP_ROW_COLLECTIVE;
            if (!special && strcmp(t->row[i].class, class) == 0) return true;
        }
    return false;
}

const hp_row *hp_row_of_class(const hp_cost_table *t, hp_row_kind kind, const hp_device_class *d,
                              const char *key) {
    const hp_cost_table here = {.n = t->n, .row = t->row};
    const hp_row *own = hp_rows_find(&here, kind, d->name, key);
    if (own && strcmp(own->class, "*") != 0) return own;
    /* "rtx-5090" is like "rtx-pro-6000", that like "l40s", that like "a100-40", which is like itself */
    const char *like = d->like, *before = "";
    for (; *like && strcmp(like, before) != 0; before = like, like = hp_device_class_like(like)) {
        const hp_row *row = hp_rows_find(&here, kind, like, key);
        if (row && strcmp(row->class, "*") != 0) return row;
    }
    return own;
}

const char *hp_cost_stand_in(const hp_cost_table *t, const hp_machine *m) {
    const char *class = m->device.name, *like = m->device.like;
    while (*like && !has_class(t, class) && !has_class(t, like)) {
        class = like;
        like = hp_device_class_like(class);
        if (strcmp(like, class) == 0) return NULL;
    }
    return *like && !has_class(t, class) ? like : NULL;
}

static hp_status load_file(hp_arena *arena, const char *path, hp_cost_table **t, hp_error *err) {
    char *text = NULL;
    HP_TRY(hp_text_file(arena, path, "cost table", "; hplan calibrate writes one", &text, err));
    HP_TRY(hp_rows_parse(arena, text, path, t, err));
    const char *name = strrchr(path, '/');
    const char *status = (*t)->status;
    const char *origin = hp_arena_printf(
        arena, "%s of %s%s%s%s", name ? name + 1 : path, (*t)->date, *status ? ", " : "", status,
        (*t)->outdated ? ", without its all-reduces, which an older hplan measured: "
                         "hplan calibrate --comm measures them anew"
                       : "");
    (*t)->origin = hp_text_clean(arena, origin);
    return HP_OK;
}

/* Returns false if this machine cannot be calibrated locally. */
static bool default_path(const hp_machine *m, char *path, size_t n) {
    if (!hp_device_of_machine(m->name)) return false;
    hp_cost_machine_path(m->name, path, n);
    return true;
}

/* like=CLASS must lead to rows, directly or through the classes that CLASS is like in turn. */
static hp_status check_like(const hp_cost_table *t, const hp_device_class *d, hp_error *err) {
    const char *class = d->like, *before = "";
    if (d->is_cpu || !*d->like || has_class(t, d->name)) return HP_OK;
    while (*class && !has_class(t, class) && strcmp(class, before) != 0) {
        before = class;
        class = hp_device_class_like(class);
    }
    if (*class && has_class(t, class)) return HP_OK;
    return hp_fail(err, HP_EDATA,
                   "device %s, like=%s: no cost table has rows of such a class; for example like=a100-40, or "
                   "without like= that of the nearest data sheet",
                   d->name, d->like);
}

static hp_status check_classes(const hp_cost_table *t, const hp_machine *m, hp_error *err) {
    if (!m) return HP_OK; /* the table by itself */
    for (int k = 0; k < hp_machine_classes(m); k++) HP_TRY(check_like(t, hp_machine_class(m, k), err));
    return HP_OK;
}

hp_status hp_cost_load(hp_arena *arena, const char *file, const hp_machine *m, hp_cost_table **t,
                       hp_error *err) {
    hp_cost_table *shipped;
    HP_TRY(hp_rows_parse(arena, hp_shipped_table(), "shipped table", &shipped, err));
    shipped->origin = "shipped table and data sheets";
    char path[4096];
    if (!file && default_path(m, path, sizeof path) && access(path, R_OK) == 0) file = path;
    if (!file) {
        *t = shipped;
        return check_classes(*t, m, err);
    }
    HP_TRY(load_file(arena, file, t, err));
    (*t)->base = shipped;
    return check_classes(*t, m, err);
}
