/* store.c - reads and writes plans in SQLite. A stored plan carries a hash of its content. Reading recomputes
 * it, so that a flipped byte is a rejected plan, never a different one. */
#include "plan/store/store.h"

#include "base/alloc.h"
#include "plan/store/blob.h"
#include "networks/deploy/deploy.h"
#include "networks/graph/graph_json.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/summands.h"
#include "base/units.h"
#include "plan/lower/lower.h"
#include "plan/check/check.h"

#include <string.h>

/* --- hashing and writing: one visitor each --- */

typedef struct hasher {
    uint64_t a, b;
} hasher;

static void hash_add(hasher *h, const void *data, size_t size) {
    h->a = hp_hash64(data, size, h->a);
    h->b = hp_hash64(data, size, h->b ^ 0x9E3779B97F4A7C15u);
}

static hp_status hash_part(void *self, int role, const char *part, const void *data, size_t size,
                           hp_error *err) {
    (void)role;
    (void)err;
    hash_add(self, part, strlen(part));
    hash_add(self, data, size);
    return HP_OK;
}

/* The scalar fields, as stored in table meta. */
enum { N_FIELDS = 17 };
typedef struct field {
    const char *key;
    char *value;
} field;

static void plan_fields(hp_arena *arena, const hp_plan *p, field f[N_FIELDS]) {
    char strategy[HP_STRATEGY_TEXT];
    const field all[N_FIELDS] = {
        {"net", hp_arena_strdup(arena, p->net)},
        {"image_h", hp_arena_printf(arena, "%d", p->image_h)},
        {"image_w", hp_arena_printf(arena, "%d", p->image_w)},
        {"classes", hp_arena_printf(arena, "%d", p->classes)},
        {"mode", hp_arena_printf(arena, "%d", p->mode)},
        {"dtype", hp_arena_printf(arena, "%d", p->dtype)},
        {"batch", hp_arena_printf(arena, "%lld", (long long)p->batch)},
        {"seed", hp_arena_printf(arena, "%llu", (unsigned long long)p->seed)},
        {"optimizer", hp_arena_strdup(arena, hp_optimizer_infos[p->optimizer].name)},
        {"clips", hp_arena_printf(arena, "%d", p->clips)},
        {"device", hp_arena_strdup(arena, p->device->name)},
        {"model", hp_arena_strdup(arena, p->model ? p->model : "")},
        {"float_layers", hp_arena_strdup(arena, p->float_layers ? p->float_layers : "")},
        {"strategy", hp_arena_strdup(arena, hp_strategy_text(&p->strategy, strategy))},
        {"machine", hp_machine_text(arena, &p->machine)},
        {"step_s", hp_arena_printf(arena, "%.17g", p->step_s)},
        {"graph",
         hp_arena_printf(
             arena, "%s",
             hp_hash_bytes(hp_graph_text(arena, p->graph), strlen(hp_graph_text(arena, p->graph))).hex)},
    };
    memcpy(f, all, sizeof all);
}

static hp_hash plan_hash(const hp_plan *p) {
    hp_arena *arena = hp_arena_new();
    field f[N_FIELDS];
    hasher h = {0, 1};
    plan_fields(arena, p, f);
    for (int i = 0; i < N_FIELDS; i++) {
        hash_add(&h, f[i].key, strlen(f[i].key) + 1);
        hash_add(&h, f[i].value, strlen(f[i].value) + 1);
    }
    hp_program_visit(p->program, p->graph, hash_part, &h, NULL);
    if (p->eval) hp_program_visit(p->eval, p->graph, hash_part, &h, NULL);
    hp_arena_free(arena);
    hp_hash out;
    snprintf(out.hex, sizeof out.hex, "%016llx%016llx", (unsigned long long)h.a, (unsigned long long)h.b);
    return out;
}

typedef struct part_io {
    hp_db *db;
    sqlite3_stmt *st;
    const char *kind;
} part_io;

static hp_status write_part(void *self, int role, const char *part, const void *data, size_t size,
                            hp_error *err) {
    part_io *io = self;
    hp_db_bind(io->st, "sisb", io->kind, (int64_t)role, part, size ? data : "", (int)size);
    return hp_db_step_done(io->db, io->st, err);
}

static hp_status write_program(hp_db *db, const char *kind, const hp_program *p, const hp_graph *g,
                               hp_error *err) {
    part_io io = {db, NULL, kind};
    HP_TRY(hp_db_prepare(db, "INSERT INTO program(kind, role, part, data) VALUES(?,?,?,?)", &io.st, err));
    const hp_status s = hp_program_visit(p, g, write_part, &io, err);
    sqlite3_finalize(io.st);
    return s;
}

static hp_status write_meta(hp_db *db, const char *key, const char *value, hp_error *err) {
    return hp_db_exec(db, err, "INSERT INTO meta(key, value) VALUES(?,?)", "ss", key, value);
}

hp_status hp_plan_write(hp_db *db, const hp_plan *plan, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    field f[N_FIELDS];
    plan_fields(arena, plan, f);
    hp_status s = HP_OK;
    for (int i = 0; i < N_FIELDS && s == HP_OK; i++) s = write_meta(db, f[i].key, f[i].value, err);
    hp_arena_free(arena);
    HP_TRY(s);
    HP_TRY(write_meta(db, "hash", plan->hash.hex, err));
    HP_TRY(write_program(db, "main", plan->program, plan->graph, err));
    return plan->eval ? write_program(db, "eval", plan->eval, plan->graph, err) : HP_OK;
}

/* --- building --- */

static hp_status build_program(hp_arena *arena, const hp_plan *plan, hp_mode mode, hp_program **out,
                               hp_error *err) {
    const hp_lower_options o = {.mode = mode,
                                .dtype = (hp_dtype)plan->dtype,
                                .batch = plan->batch,
                                .device = plan->device,
                                .machine = &plan->machine,
                                .comm = plan->comm,
                                .place = true};
    HP_TRY(hp_lower(arena, plan->graph, &plan->strategy, &o, out, err));
    return hp_program_check(*out, plan->graph, err);
}

hp_status hp_plan_on_device(hp_plan *plan, const char *device, hp_error *err) {
    HP_TRY(hp_device_find(device, &plan->device, err));
    plan->dtype = (int32_t)plan->device->dtype;
    return HP_OK;
}

hp_status hp_plan_graph(hp_arena *arena, const hp_plan *plan, hp_graph **graph, hp_error *err) {
    const hp_deploy_options o = {.prec = plan->strategy.prec, .float_layers = plan->float_layers};
    hp_graph *trained = NULL;
    if (plan->model)
        HP_TRY(hp_graph_from_json(arena, plan->model, &trained, err));
    else
        HP_TRY(hp_net_build(arena, plan->net, plan->image_h, plan->image_w, plan->classes, &trained, err));
    if (plan->mode == HP_MODE_INFER) return hp_graph_deploy(arena, trained, &o, graph, err);
    *graph = hp_graph_train_in(arena, trained, plan->strategy.prec);
    if (plan->strategy.tp > 1) *graph = hp_graph_with_summands(arena, *graph, plan->strategy.tp);
    (*graph)->optimizer = plan->optimizer;
    (*graph)->clips = plan->clips;
    return HP_OK;
}

hp_status hp_plan_build(hp_arena *arena, hp_plan *plan, const double *unit_cost, hp_error *err) {
    hp_reject why;
    HP_TRY(hp_plan_graph(arena, plan, &plan->graph, err));
    if (!hp_strategy_legal(&plan->strategy, plan->graph, plan->batch, 0, &why) ||
        !hp_device_allows(plan->device, &plan->strategy, plan->graph->deployed, &why))
        return hp_fail(err, HP_EPLAN, "%s: %s", hp_reject_text(why.code), why.limit);
    hp_strategy_fill_cut(plan->graph, unit_cost, &plan->strategy);
    HP_TRY(build_program(arena, plan, (hp_mode)plan->mode, &plan->program, err));
    plan->eval = NULL;
    if (plan->mode == HP_MODE_TRAIN) HP_TRY(build_program(arena, plan, HP_MODE_INFER, &plan->eval, err));
    plan->hash = plan_hash(plan);
    return HP_OK;
}

void hp_plan_set_step(hp_plan *plan, double step_s) {
    plan->step_s = step_s;
    plan->hash = plan_hash(plan);
}

void hp_plan_use(hp_plan *plan, hp_program *program) {
    HP_ASSERT(plan->mode == HP_MODE_INFER);
    plan->program = program;
    plan->eval = NULL;
    plan->hash = plan_hash(plan);
}

/* --- reading --- */

static hp_status read_meta(hp_arena *arena, hp_db *db, const char *key, char **value, hp_error *err) {
    sqlite3_stmt *st = NULL;
    bool row = false;
    HP_TRY(hp_db_prepare(db, "SELECT value FROM meta WHERE key = ?", &st, err));
    hp_db_bind(st, "s", key);
    hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && !row)
        s = hp_fail(err, HP_EDATA, "%s: holds no plan ('%s' is missing); `hplan simulate` writes one",
                    db->path, key);
    if (s == HP_OK) *value = hp_arena_strdup(arena, hp_db_text(st, 0));
    sqlite3_finalize(st);
    return s;
}

static hp_status read_int(hp_arena *arena, hp_db *db, const char *key, int64_t low, int64_t high,
                          int64_t *value, hp_error *err) {
    char *text = NULL;
    HP_TRY(read_meta(arena, db, key, &text, err));
    if (hp_parse_int(text, key, low, high, value, err) != HP_OK)
        return hp_fail(err, HP_EDATA, "%s: damaged: %s is not from %lld to %lld", db->path, key,
                       (long long)low, (long long)high);
    return HP_OK;
}

static hp_status find_device(const hp_db *db, const char *name, const hp_device_info **device,
                             hp_error *err) {
    hp_error why;
    if (hp_device_find(name, device, &why) == HP_OK) return HP_OK;
    return hp_fail(err, HP_EDATA, "%s: %s", db->path, why.text);
}

static hp_status read_scalars(hp_arena *arena, hp_db *db, hp_plan *p, hp_error *err) {
    char *text = NULL;
    int64_t v = 0;
    HP_TRY(read_meta(arena, db, "net", &text, err));
    snprintf(p->net, sizeof p->net, "%s", text);
    HP_TRY(read_int(arena, db, "image_h", 1, 1 << 20, &v, err));
    p->image_h = (int32_t)v;
    HP_TRY(read_int(arena, db, "image_w", 1, 1 << 20, &v, err));
    p->image_w = (int32_t)v;
    HP_TRY(read_int(arena, db, "classes", 1, 1 << 24, &v, err));
    p->classes = (int32_t)v;
    HP_TRY(read_int(arena, db, "mode", 0, 1, &v, err));
    p->mode = (int32_t)v;
    HP_TRY(read_int(arena, db, "dtype", 0, 1, &v, err));
    p->dtype = (int32_t)v;
    HP_TRY(read_int(arena, db, "batch", 1, INT64_C(1) << 40, &p->batch, err));
    HP_TRY(read_meta(arena, db, "seed", &text, err));
    p->seed = strtoull(text, NULL, 10);
    HP_TRY(read_meta(arena, db, "optimizer", &text, err));
    if (hp_optimizer_find(text, &p->optimizer, NULL) != HP_OK)
        return hp_fail(err, HP_EDATA, "%s: damaged: there is no optimiser '%.40s'", db->path, text);
    HP_TRY(read_int(arena, db, "clips", 0, 1, &v, err));
    p->clips = (int32_t)v;
    HP_TRY(read_meta(arena, db, "device", &text, err));
    HP_TRY(find_device(db, text, &p->device, err));
    HP_TRY(read_meta(arena, db, "model", &text, err));
    p->model = text[0] ? text : NULL;
    HP_TRY(read_meta(arena, db, "float_layers", &text, err));
    p->float_layers = text[0] ? text : NULL;
    HP_TRY(read_meta(arena, db, "step_s", &text, err));
    p->step_s = strtod(text, NULL);
    HP_TRY(read_meta(arena, db, "machine", &text, err));
    if (hp_machine_parse(text, db->path, &p->machine, NULL) != HP_OK)
        return hp_fail(
            err, HP_EDATA,
            "%s: its machine cannot be read (damaged, or written by another version): simulate again",
            db->path);
    HP_TRY(read_meta(arena, db, "strategy", &text, err));
    return hp_strategy_parse(text, &p->strategy, err);
}

static hp_status read_part(void *self, int role, const char *part, void *data, size_t size, hp_error *err) {
    part_io *io = self;
    bool row = false;
    sqlite3_reset(io->st);
    hp_db_bind(io->st, "sis", io->kind, (int64_t)role, part);
    HP_TRY(hp_db_next(io->db, io->st, &row, err));
    if (!row || (size_t)sqlite3_column_bytes(io->st, 0) != size)
        return hp_fail(err, HP_EDATA, "%s: damaged: part %s of stage %d is missing or has another size",
                       io->db->path, part, role);
    if (size && data) memcpy(data, hp_allocated((void *)(uintptr_t)sqlite3_column_blob(io->st, 0)), size);
    return HP_OK;
}

static hp_status read_program(hp_arena *arena, hp_db *db, const char *kind, const hp_graph *g, hp_program **p,
                              hp_error *err) {
    part_io io = {db, NULL, kind};
    HP_TRY(
        hp_db_prepare(db, "SELECT data FROM program WHERE kind = ? AND role = ? AND part = ?", &io.st, err));
    const hp_status s = hp_program_fetch(arena, g, read_part, &io, p, err);
    sqlite3_finalize(io.st);
    return s;
}

static hp_status read_verified(hp_arena *arena, hp_db *db, hp_plan *plan, hp_error *err) {
    char *stored = NULL;
    HP_TRY(read_scalars(arena, db, plan, err));
    HP_TRY(hp_plan_graph(arena, plan, &plan->graph, err));
    hp_reject why;
    if (!hp_strategy_legal(&plan->strategy, plan->graph, plan->batch, 0, &why) ||
        !hp_device_allows(plan->device, &plan->strategy, plan->graph->deployed, &why))
        return hp_fail(err, HP_EDATA, "its strategy is not legal: %s: %s", hp_reject_text(why.code),
                       why.limit);
    hp_strategy_fill_cut(plan->graph, NULL, &plan->strategy); /* one stage: its string has no cut */
    HP_TRY(read_program(arena, db, "main", plan->graph, &plan->program, err));
    if (plan->mode == HP_MODE_TRAIN) HP_TRY(read_program(arena, db, "eval", plan->graph, &plan->eval, err));
    plan->hash = plan_hash(plan);
    HP_TRY(read_meta(arena, db, "hash", &stored, err));
    if (strcmp(stored, plan->hash.hex) != 0)
        return hp_fail(
            err, HP_EDATA,
            "its content does not match its hash (damaged, or written for another version); simulate again");
    HP_TRY(hp_program_check(plan->program, plan->graph, err));
    return plan->eval ? hp_program_check(plan->eval, plan->graph, err) : HP_OK;
}

hp_status hp_plan_read(hp_arena *arena, hp_db *db, hp_plan *plan, hp_error *err) {
    memset(plan, 0, sizeof *plan);
    hp_error why = {HP_OK, ""};
    if (read_verified(arena, db, plan, &why) == HP_OK) return HP_OK;
    if (strstr(why.text, db->path)) return hp_fail(err, HP_EDATA, "%s", why.text);
    return hp_fail(err, HP_EDATA, "%s: %s", db->path, why.text);
}
