/* onnx_write.h - ONNX models written piece by piece in a test. Everything lives in the arena. */
#ifndef HP_TESTS_ONNX_WRITE_H
#define HP_TESTS_ONNX_WRITE_H

#include "base/arena.h"

#include <onnx.pb-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct onnx_writer {
    hp_arena *arena;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opset_list[1];
} onnx_writer;

onnx_writer onnx_writer_start(hp_arena *a, int opset);

/* Continues a model that was read, which must stay valid. */
onnx_writer onnx_writer_from(hp_arena *a, const Onnx__ModelProto *m);
void *onnx_writer_pack(onnx_writer *w, size_t *size);
Onnx__NodeProto *onnx_write_node(onnx_writer *w, const char *op, const char *inputs, const char *outputs);
Onnx__AttributeProto *onnx_write_attribute(onnx_writer *w, Onnx__NodeProto *n, const char *name,
                                           Onnx__AttributeProto__AttributeType type);
void onnx_write_int(onnx_writer *w, Onnx__NodeProto *n, const char *name, int64_t v);
void onnx_write_text(onnx_writer *w, Onnx__NodeProto *n, const char *name, const char *v);
void onnx_write_ints(onnx_writer *w, Onnx__NodeProto *n, const char *name, size_t count, const int64_t *v);
void onnx_write_tensor(onnx_writer *w, Onnx__TensorProto *t);
bool onnx_writer_has_constant(const onnx_writer *w, const char *name);
size_t onnx_write_count(size_t n_dim, const int64_t *dim);
void onnx_write_floats(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim, const float *v);
void onnx_write_integers(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim,
                         const int64_t *v);
void onnx_write_bytes(onnx_writer *w, const char *name, int type, size_t n_dim, const int64_t *dim,
                      const void *v, size_t size);

/* A float tensor; dimensions of 0 are left open. */
void onnx_write_input(onnx_writer *w, const char *name, size_t n_dim, const int64_t *dim);

/* The one output. */
void onnx_write_output(onnx_writer *w, const char *name);

#endif
