/* attention.h - which pixels a pixel attends to, and the number of such pairs. */
#ifndef HP_ATTENTION_H
#define HP_ATTENTION_H

#include "networks/graph/graph.h"

/* Rows (or columns) of keys that the queries in rows (columns) [lo, hi) attend to, clipped to the map. */
hp_extent hp_attention_keys(const hp_graph *g, const hp_layer *l, bool rows, hp_extent queries);
/* Number of pairs of a query in these rows and columns and a key that it attends to, per sample and head. */
int64_t hp_attention_pairs(const hp_graph *g, const hp_layer *l, hp_extent rows, hp_extent cols);
/* Columns of the keys in row `row` that query pixel (y, x) attends to. */
hp_extent hp_attention_row(const hp_graph *g, const hp_layer *l, int32_t y, int32_t x, int32_t row);

#endif
