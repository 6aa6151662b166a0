/* command_weights.h - weights as hplan-exec reads them: files of other programs are converted first. */
#ifndef HP_COMMAND_WEIGHTS_H
#define HP_COMMAND_WEIGHTS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

/* --weights, else --onnx where that is a model with weights of its own, else NULL. */
const char *cli_weights_of(const char *weights, const char *network);

/* *file: `given` itself, or NULL for NULL; of an ONNX model a safetensors file of its weights in folder
 * `dir`. image_h, image_w: of the plan. Errors: those of reading the model; HP_ECREATE, HP_EIO. */
hp_status cli_weights_file(hp_arena *arena, const char *given, int image_h, int image_w, const char *dir,
                           const char **file, hp_error *err);

/* Decides about random weights, which give no meaningful answers about real images. They are an error unless
 * `asked` for; then a note says so. option: how this command takes weights. Errors: HP_EUSAGE. */
hp_status cli_weights_random(bool asked, const char *option, hp_error *err);

/* Are they images, or made up? data: NULL where --data was not given. */
bool cli_data_is_real(const char *data, const char *input);

/* The layers that a file of `hplan quantize` keeps real, "" for none; NULL for any other file. Errors:
 * HP_EDATA (no such file). */
hp_status cli_weights_float_layers(hp_arena *arena, const char *path, const char **list, hp_error *err);

#endif
