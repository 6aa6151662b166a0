/* command_weights.c - what hplan itself looks at in files of weights. */
#include "cli/commands/command_weights.h"
#include "base/input.h"

#include "networks/onnx/model.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The header of a safetensors file: its length in 8 bytes, little-endian, then JSON. */
static json_t *read_header(FILE *f) {
    enum { MOST = 16 << 20 };
    unsigned char n[8];
    uint64_t size = 0;
    if (fread(n, 1, sizeof n, f) != sizeof n) return NULL;
    for (int i = 7; i >= 0; i--) size = size << 8 | n[i];
    char *text = size <= MOST ? malloc((size_t)size + 1) : NULL;
    if (!text) return NULL;
    json_t *header = fread(text, 1, (size_t)size, f) == size ? json_loadb(text, (size_t)size, 0, NULL) : NULL;
    free(text);
    return header;
}

hp_status cli_weights_float_layers(hp_arena *arena, const char *path, const char **list, hp_error *err) {
    FILE *f = hp_input_fopen(path);
    if (!f) return hp_fail(err, HP_EDATA, "cannot open %s: %s", path, strerror(errno));
    json_t *header = read_header(f);
    const json_t *notes = json_object_get(header, "__metadata__");
    const char *format = json_string_value(json_object_get(notes, "format")),
               *layers = json_string_value(json_object_get(notes, "float_layers"));
    const bool quantised = format && strncmp(format, "hplan-quantised", 15) == 0;
    *list = quantised ? hp_arena_strdup(arena, layers ? layers : "") : NULL;
    json_decref(header);
    fclose(f);
    return HP_OK;
}

static bool is_onnx(const char *path) {
    const size_t n = path ? strlen(path) : 0;
    return n >= 5 && strcmp(path + n - 5, ".onnx") == 0;
}

const char *cli_weights_of(const char *weights, const char *network) {
    return weights || !is_onnx(network) ? weights : network;
}

bool cli_data_is_real(const char *data, const char *input) {
    return input || (data && strcmp(data, "synthetic") != 0);
}

hp_status cli_weights_random(bool asked, const char *option, hp_error *err) {
    if (!asked)
        return hp_fail(
            err, HP_EUSAGE,
            "random weights would answer for real images: give trained ones with %s W.safetensors, or ask "
            "for random ones with --random-weights",
            option);
    fprintf(stderr, "hplan: note: random weights, drawn from the plan's seed: the answers mean nothing\n");
    return HP_OK;
}

hp_status cli_weights_file(hp_arena *arena, const char *given, int image_h, int image_w, const char *dir,
                           const char **file, hp_error *err) {
    hp_onnx_model m;
    *file = given;
    if (!is_onnx(given)) return HP_OK;
    HP_TRY(hp_onnx_read(arena, given, image_h, image_w, true, &m, err));
    *file = hp_arena_printf(arena, "%s/weights.safetensors", dir);
    return hp_model_write_weights(*file, &m, err);
}
