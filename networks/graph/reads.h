/* reads.h - which rows, columns and channels of its inputs a layer reads for a range of its output. */
#ifndef HP_READS_H
#define HP_READS_H

#include "networks/graph/graph.h"

typedef struct hp_items {
    int64_t lo, hi; /* lo .. hi - 1 of a map's rows, columns or channels */
} hp_items;

/* The rows (or columns) of input k that rows (columns) `out` of the output depend on, those of padding
 * left out. */
hp_items hp_layer_reads_places(const hp_graph *g, const hp_layer *l, int k, bool rows, hp_items out);
/* The channels of input k that channels `out` of the output depend on. */
hp_items hp_layer_reads_channels(const hp_graph *g, const hp_layer *l, int k, hp_items out);

/* Does the layer read rows or columns beyond its output position (a window larger than its stride, or an
 * attention window)? */
bool hp_layer_has_halo(const hp_graph *g, int layer);
/* Does one output row depend on all input rows, or on rows at other positions? */
bool hp_layer_reads_all_rows(const hp_graph *g, int layer);

#endif
