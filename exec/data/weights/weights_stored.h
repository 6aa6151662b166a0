/* weights_stored.h - parameters as files have them: their own tensors, or rows of one that several share, turned or not. */
#ifndef HP_WEIGHTS_STORED_H
#define HP_WEIGHTS_STORED_H

#include "exec/data/weights/differences.h"
#include "exec/data/weights/weights.h"

/* The name of the file's tensor. */
const char *hp_stored_name(const hp_param *p);
/* Tensors that a file of the network has; each parameter's is among them. Returns how many; `want` has room for all
 * parameters. */
int hp_stored_expected(const hp_graph *g, hp_st_expected *want);
/* The same, where the file's places may be of another image. */
int hp_stored_accepted(const hp_safetensors *st, const hp_graph *g, hp_st_expected *want);
/* Elements [first, first + count) of a parameter, out of a file that has been compared with the network, as float32 or
 * float64. Learned places are stretched to the network's image. */
void hp_stored_read(const hp_safetensors *st, const hp_graph *g, int param, int64_t first, int64_t count,
                    hp_dtype dtype, void *to);

/* The same of `count` elements that lie `step` apart: a column of a matrix. */
void hp_stored_read_apart(const hp_safetensors *st, const hp_graph *g, int param, int64_t first,
                          int64_t count, int64_t step, double *to);
/* Has a file of the network, for whatever image, the parameter in a size from which it can be read? */
bool hp_stored_fits(const hp_safetensors *st, const hp_graph *g, int param);

/* Puts together the file's tensors from parameters, which are taken in order, once each. */
typedef struct hp_stored_writer hp_stored_writer;
hp_stored_writer *hp_stored_writer_new(hp_arena *arena, const hp_graph *g, hp_dtype dtype,
                                       const hp_weights_source *source);
/* The tensor in which parameter `param`, the first of its tensor's, is; valid until the next call. NULL: `err` is set. */
const void *hp_stored_bytes(hp_stored_writer *w, int param, hp_error *err);
void hp_stored_writer_free(hp_stored_writer *w);
/* The first parameter that lies in the same tensor. */
int hp_stored_first(const hp_graph *g, int param);

#endif
