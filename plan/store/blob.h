/* blob.h - converts a task program to blobs and back. */
#ifndef HP_BLOB_H
#define HP_BLOB_H

#include "plan/program/program.h"

typedef hp_status hp_blob_fn(void *self, int role, const char *part, const void *data, size_t size,
                             hp_error *err);
/* Must fill `data` with exactly `size` bytes or fail. With data NULL, it only checks whether it could. */
typedef hp_status hp_fetch_fn(void *self, int role, const char *part, void *data, size_t size, hp_error *err);

/* Calls fn for every part, in a fixed order. */
hp_status hp_program_visit(const hp_program *p, const hp_graph *g, hp_blob_fn *fn, void *self, hp_error *err);
/* Builds the program from its parts; the result must still pass hp_program_check. */
hp_status hp_program_fetch(hp_arena *arena, const hp_graph *g, hp_fetch_fn *fn, void *self,
                           hp_program **program, hp_error *err);

#endif
