/* samples.h - what a network's samples are called: images, or sequences of ids. */
#ifndef HP_SAMPLES_H
#define HP_SAMPLES_H

#include "networks/graph/graph.h"

enum { HP_SAMPLES_TEXT = 80 };

/* Title of a column of rates: "img/s" or "seq/s". */
const char *hp_samples_rate(const hp_graph *g);
/* "images" or "sequences". */
const char *hp_samples_name(const hp_graph *g);
/* "image" or "sequence". */
const char *hp_samples_one(const hp_graph *g);
/* "224 x 224 pixels, 1000 classes"; "1024 tokens of 50257 ids", with the
 * classes where they are not the ids. */
const char *hp_samples_size(const hp_graph *g, char out[HP_SAMPLES_TEXT]);

#endif
