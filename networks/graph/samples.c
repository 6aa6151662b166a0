/* samples.c - what a network's samples are called: images, or sequences of ids. */
#include "networks/graph/samples.h"

#include <stdio.h>

const char *hp_samples_name(const hp_graph *g) {
    return hp_graph_reads_ids(g) ? "sequences" : "images";
}

const char *hp_samples_rate(const hp_graph *g) {
    return hp_graph_reads_ids(g) ? "seq/s" : "img/s";
}

const char *hp_samples_one(const hp_graph *g) {
    return hp_graph_reads_ids(g) ? "sequence" : "image";
}

const char *hp_samples_size(const hp_graph *g, char out[HP_SAMPLES_TEXT]) {
    const int ids = hp_graph_ids(g);
    if (ids > 0 && ids == g->classes)
        snprintf(out, HP_SAMPLES_TEXT, "%d tokens of %d ids", g->image_h, ids);
    else if (ids > 0)
        snprintf(out, HP_SAMPLES_TEXT, "%d tokens of %d ids, %d classes", g->image_h, ids, g->classes);
    else
        snprintf(out, HP_SAMPLES_TEXT, "%d x %d pixels, %d classes", g->image_h, g->image_w, g->classes);
    return out;
}
