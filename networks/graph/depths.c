/* depths.c - finds the units that shrink the map. */
#include "networks/graph/depths.h"

/* Number of times that the map's pixels have been divided by four since the image. */
static int quarters(const hp_graph *g, int tensor) {
    const double image = (double)g->image_h * g->image_w;
    double pixels = (double)g->tensor[tensor].h * g->tensor[tensor].w * 3.5; /* sizes are rounded */
    int n = 0;
    while (pixels < image) {
        pixels *= 4;
        n++;
    }
    return n;
}

int hp_graph_depths(const hp_graph *g, int32_t depth[HP_DEPTHS]) {
    int32_t found[HP_DEPTHS];
    int n = 0, seen = 0, out = 0;
    for (int u = 0; u + 1 < g->n_unit; u++) {
        const int tensor = g->layer[g->unit_first[u + 1] - 1].out, q = quarters(g, tensor);
        if (q <= seen || g->tensor[tensor].h * g->tensor[tensor].w == 1) continue;
        seen = q;
        if (n == HP_DEPTHS - 1) { /* the shallowest gives way */
            for (int i = 1; i < n; i++) found[i - 1] = found[i];
            n--;
        }
        found[n++] = u + 1;
    }
    depth[out++] = 0;
    while (n > 0) depth[out++] = found[--n];
    return out;
}
