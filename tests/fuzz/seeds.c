/* seeds.c - small well-formed seeds for the fuzzers: seeds DIR writes DIR/image, DIR/onnx, DIR/db, ... (text
 * seeds are in corpus/). */
#include "tests/fuzz/seeds.h"
#include "tests/support/exec/make_images.h"
#include "tests/support/onnx/onnx_odd.h"
#include "tests/support/onnx/onnx_tokens.h"

#include "exec/data/weights/safetensors.h"

#include <sys/stat.h>

enum { H = 9, W = 13 };

char *path_in(const char *dir, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void make_images(const char *dir) {
    uint8_t px[H * W * 4];
    for (int i = 0; i < H * W * 4; i++) px[i] = (uint8_t)(i * 37 + i / 5);
    mkdir(path_in(dir, "image"), 0777);
    for (int c = 1; c <= 4; c++) {
        char name[32];
        snprintf(name, sizeof name, "image/%d.png", c);
        make_png(path_in(dir, name), H, W, c, px);
    }
    make_png_as(path_in(dir, "image/i.png"), H, W, PNG_COLOR_TYPE_RGB, 8, true, px);
    make_jpeg(path_in(dir, "image/1.jpg"), H, W, 1, px, 80);
    make_jpeg(path_in(dir, "image/3.jpg"), H, W, 3, px, 80);
    make_jpeg_as(path_in(dir, "image/p.jpg"), H, W, 3, px, 80, true);
    make_tiff(path_in(dir, "image/8.tif"), H, W, 3, px, 8, 0);
    make_tiff(path_in(dir, "image/16.tif"), H, W, 1, px, 16, 1);
    make_tiff_tiled(path_in(dir, "image/t.tif"), H, W, 3, px, 16);
    make_tiff_tiled_as(path_in(dir, "image/b.tif"), "w8", H, W, 1, px, 16);
}

static const void *zeros(void *self, int i, hp_error *err) {
    static const double none[6];
    (void)self;
    (void)i;
    (void)err;
    return none;
}

static void make_safetensors(const char *dir) {
    static const hp_st_tensor tensor[] = {
        {.name = "a.weight", .dtype = HP_ST_F32, .n_dim = 2, .dim = {2, 3}},
        {.name = "b", .dtype = HP_ST_I64},
        {.name = "c", .dtype = HP_ST_BF16, .n_dim = 1, .dim = {0}},
    };
    const hp_st_source source = {zeros, NULL};
    mkdir(path_in(dir, "safetensors"), 0777);
    if (hp_safetensors_write(path_in(dir, "safetensors/a"), tensor, 3, &source, NULL) != HP_OK) abort();
}

static void write_model(const char *dir, const char *name, onnx_writer *w) {
    size_t size;
    const void *data = onnx_writer_pack(w, &size);
    FILE *f = fopen(path_in(dir, name), "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

static void make_transformer(const char *dir, const char *name, const hp_graph *g, unsigned bits) {
    hp_arena *a = hp_arena_new();
    const float **param = HP_NEW(a, const float *, g->n_param);
    for (int i = 0; i < g->n_param; i++) param[i] = drawn(a, (uint64_t)i, g->param[i].count);
    onnx_writer model = tokens_model(a, g, param, tokens_spelling_of(bits));
    write_model(dir, name, &model);
    hp_arena_free(a);
}

static const hp_graph *built(hp_arena *a, const char *net, int h, int w) {
    hp_graph *g;
    if (hp_net_build(a, net, h, w, 3, &g, NULL) != HP_OK) abort();
    return g;
}

static void make_onnx(const char *dir) {
    hp_arena *a = hp_arena_new();
    onnx_writer w = odd_model(a);
    mkdir(path_in(dir, "onnx"), 0777);
    write_model(dir, "onnx/odd", &w);
    make_transformer(dir, "onnx/vit", built(a, "vit:1,4,2,2", 4, 6), 1);
    make_transformer(dir, "onnx/vit13", built(a, "vit:1,4,2,2", 4, 6), 2 + 16 + 32 + 64);
    make_transformer(dir, "onnx/gpt", built(a, "gpt:1,4,2,3,5", 3, 1), 4 + 8 + 128);
    make_transformer(dir, "onnx/windows", tokens_windows(a, 16, 24, NULL), 1);
    hp_arena_free(a);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    mkdir(argv[1], 0777);
    make_images(argv[1]);
    make_safetensors(argv[1]);
    make_onnx(argv[1]);
    make_databases(argv[1]);
    make_checkpoint(argv[1]);
    make_ring(argv[1]);
    make_graphs(argv[1]);
    return 0;
}
