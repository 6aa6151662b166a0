/* onnx_file.h - a model file as protobuf-c's structures. */
#ifndef HP_ONNX_FILE_H
#define HP_ONNX_FILE_H

#include "base/arena.h"
#include "base/status.h"

#include <onnx.pb-c.h>
#include <stdbool.h>

/* Is this a well-formed message of the type, nested at most 16 deep, with at most a million messages?
 * protobuf-c recurses without limit, so the depth must be checked first. *why: what is wrong. */
bool onnx_scan(const ProtobufCMessageDescriptor *type, const void *data, size_t size, const char **why);

/* Maps the file; unmap with onnx_file_close. Errors: HP_EDATA. */
hp_status onnx_file_open(const char *path, const void **data, size_t *size, hp_error *err);
void onnx_file_close(const void *data, size_t size);

/* `file` is for messages. Copies all data that the model needs into `arena`. Errors: HP_EDATA. */
hp_status onnx_file_parse(hp_arena *arena, const char *file, const void *data, size_t size,
                          Onnx__ModelProto **model, hp_error *err);

/* Sorts the nodes topologically; each keeps its place in the file unless it needs a later one. Errors:
 * HP_EDATA: a cycle (order.c). */
hp_status onnx_sort(hp_arena *arena, const char *file, Onnx__GraphProto *g, hp_error *err);

/* Replaces a matrix that the file stores a second time, transposed, by a Transpose node of the first.
 * Exporters duplicate heads that are tied to a table of ids (ties.c). */
void onnx_tie(hp_arena *arena, Onnx__GraphProto *g);

#endif
