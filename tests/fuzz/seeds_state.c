/* seeds_state.c - seeds of hplan's own formats: plan.db, run.db, a checkpoint, a ring, networks as JSON.
 * Databases have pages of 512 bytes, so that they are small, and declare their content as changed on
 * purpose. */
#include "tests/fuzz/seeds.h"
#include "tests/support/traces/trace_fixture.h"

#include "checkpoints/checkpoint_folder.h"
#include "networks/graph/graph_json.h"
#include "plan/store/store.h"
#include "traces/trace_ring.h"

#include <stdlib.h>
#include <sys/stat.h>

static void need(hp_status s, const hp_error *err) {
    if (s == HP_OK) return;
    fprintf(stderr, "seeds: %s\n", err->text);
    exit(1);
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

static int64_t duration(const void *self, int rank, int task, int iter) {
    (void)self;
    return 1000000 + 1000 * rank + 100 * task + iter;
}

/* --- databases --- */

static void shrink(const char *path) {
    sqlite3 *sql = NULL;
    if (sqlite3_open(path, &sql) != SQLITE_OK ||
        sqlite3_exec(sql,
                     "UPDATE meta SET value = 'none' WHERE key = 'content'; PRAGMA page_size = 512; VACUUM",
                     NULL, NULL, NULL) != SQLITE_OK)
        abort();
    sqlite3_close(sql);
}

static void make_plan(hp_arena *a, hp_db *db, hp_mode mode, const char *strategy) {
    hp_error err = {0};
    hp_plan p = {.net = "cnn",
                 .image_h = 4,
                 .image_w = 4,
                 .classes = 2,
                 .mode = mode,
                 .batch = 4,
                 .device = &hp_devices[HP_DEVICE_CPU]};
    const hp_candidate c = {.strategy = "dp=2", .gpus = 2, .step_s = 0.25, .note = "n"};
    const hp_rejected r = {.code = HP_REJECT_MEM, .count = 3, .example = "dp=1", .limit = "x", .fix = "y"};
    need(hp_machine_load("thesis-a100", &p.machine, &err), &err);
    need(hp_strategy_parse(strategy, &p.strategy, &err), &err);
    need(hp_plan_build(a, &p, NULL, &err), &err);
    need(hp_plan_write(db, &p, &err), &err);
    need(hp_candidates_write(db, &c, 1, &r, 1, &err), &err);
}

static void make_database(const char *path, hp_mode mode, const char *strategy, int iters) {
    hp_error err = {0};
    hp_db db = {0};
    hp_arena *a = hp_arena_new();
    need(hp_db_create(path, &db, &err), &err);
    if (strategy) make_plan(a, &db, mode, strategy);
    for (int k = 0; iters && k < 2; k++) {
        const fixture_run run = {.kind = k ? "exec" : "sim",
                                 .ranks = 2,
                                 .span_ranks = 2,
                                 .iters = k ? iters : 1,
                                 .duration = duration};
        const int64_t id = fixture_add(&db, &run);
        for (int i = 0; i < iters; i++) fixture_sample(&db, id, 0, i, HP_COUNTER_LOSS, 1000 * i, 0.5);
    }
    need(hp_db_commit(&db, &err), &err);
    hp_db_close(&db);
    hp_arena_free(a);
    shrink(path);
}

void make_databases(const char *dir) {
    mkdir(path_in(dir, "db"), 0777);
    make_database(path_in(dir, "db/infer"), HP_MODE_INFER, "dp=2", 0);
    make_database(path_in(dir, "db/train"), HP_MODE_TRAIN, "dp=1", 0);
    make_database(path_in(dir, "db/run"), HP_MODE_TRAIN, NULL, 3);
}

/* --- a checkpoint of one rank --- */

void make_checkpoint(const char *dir) {
    static hp_param param[] = {{.name = "w", .count = 6, .n_dim = 2, .dim = {2, 3}}};
    static const hp_graph g = {.n_param = 1, .param = param};
    const hp_state_piece piece[] = {{.kind = HP_STATE_WEIGHTS, .home = true, .count = 6},
                                    {.kind = HP_STATE_OPTIMIZER, .home = true, .count = 6}};
    const float value[12] = {1, 2, 3, 4, 5, 6};
    hp_chunks chunks = {0};
    hp_error err = {0};
    hp_arena *a = hp_arena_new();
    mkdir(path_in(dir, "checkpoint"), 0777);
    const char *folder = hp_arena_strdup(a, path_in(dir, "saved"));
    mkdir(folder, 0777);
    need(hp_checkpoint_put(&hp_disk, folder, 1, 0, &g, piece, 2, HP_F32, value, &chunks, &err), &err);
    const hp_manifest m = {.net = "n",
                           .model = "",
                           .seed = "1",
                           .dtype = "F32",
                           .data_hash = "",
                           .optimizer = "sgd",
                           .lr_schedule = "constant",
                           .data = "d",
                           .layout = "l",
                           .strategy = "dp=1",
                           .lr = 0.1,
                           .ranks = 1,
                           .step = 1,
                           .file = &chunks};
    char *manifest = hp_manifest_text(&m);
    FILE *rank = fopen(hp_checkpoint_file(a, hp_checkpoint_path(a, folder, 1, true), 0), "rb");
    FILE *f = fopen(path_in(dir, "checkpoint/a"), "wb");
    if (!f || !rank || fwrite(manifest, 1, strlen(manifest) + 1, f) != strlen(manifest) + 1) abort();
    for (int c; (c = fgetc(rank)) != EOF;) fputc(c, f);
    fclose(rank);
    fclose(f);
    hp_disk_remove(&hp_disk, hp_checkpoint_path(a, folder, 1, true), HP_MANIFEST);
    rmdir(folder);
    free(manifest);
    free(chunks.hash);
    hp_arena_free(a);
}

/* --- a ring, networks --- */

void make_ring(const char *dir) {
    hp_error err = {0};
    hp_ring *r;
    mkdir(path_in(dir, "ring"), 0777);
    need(hp_ring_create(path_in(dir, "ring/a"), 1, 1, 8, 4, &r, &err), &err);
    for (int i = 0; i < 3; i++) hp_ring_span(r, (hp_span){i, 0, 10 * i, 10 * i + 5});
    hp_ring_sample(r, (hp_sample){HP_COUNTER_LOSS, 0, 7, 0.5});
    hp_ring_close(r);
}

void make_graphs(const char *dir) {
    static const char *const NET[] = {"cnn", "unet:2", "resnet-v1-8"};
    mkdir(path_in(dir, "graph"), 0777);
    for (int i = 0; i < 3; i++) {
        hp_arena *a = hp_arena_new();
        hp_graph *g;
        hp_error err = {0};
        char name[16];
        need(hp_net_build(a, NET[i], 32, 32, 2, &g, &err), &err);
        snprintf(name, sizeof name, "graph/%d", i);
        put(path_in(dir, name), hp_graph_json(a, g));
        hp_arena_free(a);
    }
}
