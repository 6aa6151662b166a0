/* model.c - networks from files: ONNX models, and the databases that `hplan import` makes of them, which hold
 * the model without its weights. */
#include "networks/onnx/model.h"

#include "base/input.h"
#include "base/db.h"
#include "base/st_write.h"
#include "base/units.h"
#include "networks/graph/fuse.h"
#include "networks/graph/graph_json.h"
#include "networks/onnx/onnx_file.h"

#include <string.h>

/* --- writing --- */

static hp_status write_meta(hp_db *db, const char *key, const char *value, hp_error *err) {
    return hp_db_exec(db, err, "INSERT INTO meta(key, value) VALUES(?,?)", "ss", key, value);
}

static hp_status write_size(hp_db *db, const char *key, int value, hp_error *err) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return write_meta(db, key, text, err);
}

static hp_status write_rows(hp_db *db, const hp_graph *g, const void *data, size_t size, hp_error *err) {
    HP_TRY(write_meta(db, "format", "model", err));
    HP_TRY(write_meta(db, "net", g->net, err));
    HP_TRY(write_size(db, "image_h", g->image_h, err));
    HP_TRY(write_size(db, "image_w", g->image_w, err));
    return hp_db_exec(db, err, "INSERT INTO program(kind, role, part, data) VALUES('model', 0, 'onnx', ?)",
                      "b", data, (int)size);
}

hp_status hp_model_write(const char *path, const char *onnx, const hp_graph *g, hp_error *err) {
    hp_arena *arena = hp_arena_new();
    hp_db db = {0};
    void *data = NULL;
    size_t size = 0;
    hp_status s = hp_onnx_strip(arena, onnx, &data, &size, err);
    if (s == HP_OK && size > 1 << 29)
        s = hp_fail(err, HP_EDATA, "%.500s: too large, even without its weights, to be stored", onnx);
    if (s == HP_OK) s = hp_db_create(path, &db, err);
    if (s == HP_OK) s = write_rows(&db, g, data, size, err);
    if (s == HP_OK) s = hp_db_commit(&db, err);
    hp_db_close(&db);
    hp_arena_free(arena);
    return s;
}

static const void *param_data(void *self, int i, hp_error *err) {
    (void)err;
    return ((const hp_onnx_model *)self)->param[i].data;
}

hp_status hp_model_write_weights(const char *path, const hp_onnx_model *m, hp_error *err) {
    hp_arena *scratch = hp_arena_new();
    const hp_graph *g = m->graph;
    hp_st_tensor *tensor = HP_NEW(scratch, hp_st_tensor, g->n_param + 1);
    const hp_st_source source = {param_data, (void *)(uintptr_t)m};
    for (int i = 0; i < g->n_param; i++) {
        const hp_param *p = &g->param[i];
        tensor[i] = (hp_st_tensor){.name = p->name, .dtype = HP_ST_F32, .n_dim = p->n_dim};
        for (int d = 0; d < p->n_dim; d++) tensor[i].dim[d] = p->dim[d];
    }
    const hp_status s = hp_safetensors_write(path, tensor, g->n_param, &source, err);
    hp_arena_free(scratch);
    return s;
}

/* --- reading --- */

static hp_status no_model(const hp_db *db, hp_error *err) {
    return hp_fail(err, HP_EDATA,
                   "%.500s contains no model: make one with hplan import model.onnx -o model.db", db->path);
}

static hp_status read_meta(hp_arena *arena, hp_db *db, const char *key, const char **value, hp_error *err) {
    sqlite3_stmt *st;
    bool row;
    HP_TRY(hp_db_prepare(db, "SELECT value FROM meta WHERE key = ?", &st, err));
    hp_db_bind(st, "s", key);
    hp_status s = hp_db_next(db, st, &row, err);
    if (s == HP_OK && !row) s = no_model(db, err);
    if (s == HP_OK) *value = hp_arena_strdup(arena, hp_db_text(st, 0));
    sqlite3_finalize(st);
    return s;
}

static hp_status read_size(hp_arena *arena, hp_db *db, const char *key, int *size, hp_error *err) {
    const char *text = "";
    int64_t v = 0;
    if (*size > 0) return HP_OK;
    HP_TRY(read_meta(arena, db, key, &text, err));
    HP_TRY(hp_parse_int(text, key, 1, 1 << 24, &v, err));
    *size = (int)v;
    return HP_OK;
}

static hp_status parse_row(hp_arena *arena, hp_db *db, sqlite3_stmt *st, const char *net, int h, int w,
                           hp_onnx_model *m, hp_error *err) {
    bool row;
    HP_TRY(hp_db_next(db, st, &row, err));
    if (!row || sqlite3_column_type(st, 0) != SQLITE_BLOB) return no_model(db, err);
    const char *name = strncmp(net, "onnx:", 5) == 0 ? net + 5 : net;
    return hp_onnx_parse(arena, hp_arena_printf(arena, "%s.onnx", name), sqlite3_column_blob(st, 0),
                         (size_t)sqlite3_column_bytes(st, 0), true, h, w, false, m, err);
}

static hp_status read_db(hp_arena *arena, hp_db *db, int h, int w, hp_onnx_model *m, hp_error *err) {
    const char *format = "", *net = "";
    sqlite3_stmt *st;
    HP_TRY(read_meta(arena, db, "format", &format, err));
    if (strcmp(format, "model") != 0) return no_model(db, err);
    HP_TRY(read_meta(arena, db, "net", &net, err));
    HP_TRY(read_size(arena, db, "image_h", &h, err));
    HP_TRY(read_size(arena, db, "image_w", &w, err));
    HP_TRY(hp_db_prepare(db, "SELECT data FROM program WHERE kind = 'model' AND role = 0 AND part = 'onnx'",
                         &st, err));
    const hp_status s = parse_row(arena, db, st, net, h, w, m, err);
    sqlite3_finalize(st);
    return s;
}

static bool is_database(const char *path) {
    char head[16] = {0};
    FILE *f = hp_input_fopen(path);
    if (!f) return false;
    const bool read = fread(head, 1, sizeof head, f) == sizeof head;
    fclose(f);
    return read && memcmp(head, "SQLite format 3", 16) == 0;
}

hp_status hp_model_read(hp_arena *arena, const char *path, int image_h, int image_w, hp_graph **graph,
                        hp_error *err) {
    hp_onnx_model m;
    if (is_database(path)) {
        hp_db db = {0};
        HP_TRY(hp_db_open(path, &db, err));
        const hp_status s = read_db(arena, &db, image_h, image_w, &m, err);
        hp_db_close(&db);
        HP_TRY(s);
    } else {
        HP_TRY(hp_onnx_read(arena, path, image_h, image_w, false, &m, err));
    }
    *graph = hp_graph_fuse(arena, m.graph);
    return HP_OK;
}
