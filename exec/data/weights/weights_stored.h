/* weights_stored.h - parameters as files store them: separate tensors, or rows of one that several share,
 * transposed or not. */
#ifndef HP_WEIGHTS_STORED_H
#define HP_WEIGHTS_STORED_H

#include "exec/data/weights/differences.h"
#include "exec/data/weights/weights.h"

/* Name of the file's tensor. */
const char *hp_stored_name(const hp_param *p);
/* Lists the tensors in a file of the network, which contain each parameter. Returns their number; `want` has
 * room for all parameters. */
int hp_stored_expected(const hp_graph *g, hp_st_expected *want);
/* The same, but the file's learned positions may be those of another image size. */
int hp_stored_accepted(const hp_safetensors *st, const hp_graph *g, hp_st_expected *want);
/* Reads elements [first, first + count) of a parameter as float32 or float64, from a file that has been
 * compared with the network. Learned positions are resized to the network's image. */
void hp_stored_read(const hp_safetensors *st, const hp_graph *g, int param, int64_t first, int64_t count,
                    hp_dtype dtype, void *to);

/* The same for `count` elements that are `step` apart: a column of a matrix. */
void hp_stored_read_apart(const hp_safetensors *st, const hp_graph *g, int param, int64_t first,
                          int64_t count, int64_t step, double *to);
/* Can the parameter be read from a file of the network made for any image size? */
bool hp_stored_fits(const hp_safetensors *st, const hp_graph *g, int param);

/* Assembles the file's tensors from parameters, each taken once, in order. */
typedef struct hp_stored_writer hp_stored_writer;
hp_stored_writer *hp_stored_writer_new(hp_arena *arena, const hp_graph *g, hp_dtype dtype,
                                       const hp_weights_source *source);
/* The tensor that contains parameter `param`, which must be its first; valid until the next call.
 * NULL: `err` is set. */
const void *hp_stored_bytes(hp_stored_writer *w, int param, hp_error *err);
void hp_stored_writer_free(hp_stored_writer *w);
/* The first parameter in the same tensor. */
int hp_stored_first(const hp_graph *g, int param);

#endif
