/* attention.h - which pixels a pixel attends to, and how many pairs that makes. */
#ifndef HP_ATTENTION_H
#define HP_ATTENTION_H

#include "networks/graph/graph.h"

/* Of the keys, the rows (or columns) that queries of rows (columns) [lo, hi) of the map attend to, clipped to it. */
hp_extent hp_attention_keys(const hp_graph *g, const hp_layer *l, bool rows, hp_extent queries);
/* Pairs of a query in these rows and columns and a key that it attends to, of one sample and head. */
int64_t hp_attention_pairs(const hp_graph *g, const hp_layer *l, hp_extent rows, hp_extent cols);
/* Keys of query pixel (y, x) within row `row` of the map: columns. */
hp_extent hp_attention_row(const hp_graph *g, const hp_layer *l, int32_t y, int32_t x, int32_t row);

#endif
