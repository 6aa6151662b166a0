/* weights_places.c - resizes learned positions: keeps the class token's, interpolates the map's by cubic
 * convolution with aligned corners, as torchvision's interpolate_embeddings does
 * (torch.nn.functional.interpolate, bicubic: Keys 1981 with a = -0.75). */
#include "exec/data/weights/weights_places.h"

#include <math.h>

/* The map that the class token precedes; NULL: not a table of such a map. */
static const hp_tensor *map_of(const hp_graph *g, int param) {
    const hp_layer *l = &g->layer[g->param[param].layer];
    if (l->op != HP_POSITION) return NULL;
    const hp_layer *before = &g->layer[g->tensor[l->in[0]].producer];
    return before->op == HP_CLASSTOKEN ? &g->tensor[before->in[0]] : NULL;
}

static int64_t side_of(const hp_st_tensor *t) {
    return (int64_t)llround(sqrt((double)(t->dim[1] - 1)));
}

bool hp_places_stretch(const hp_st_tensor *t, const hp_graph *g, int param) {
    const hp_param *p = &g->param[param];
    if (!t || !map_of(g, param) || t->n_dim != 3 || t->dim[0] != 1 || t->dim[2] != p->dim[1]) return false;
    const int64_t side = side_of(t);
    return side > 0 && side * side == t->dim[1] - 1 && t->dim[1] != p->dim[0];
}

/* --- cubic convolution --- */

static double weight(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

typedef struct taps {
    int64_t at[4];
    double weight[4];
} taps;

static taps taps_of(int64_t i, int64_t out, int64_t in) {
    const double x = out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0, low = floor(x);
    taps t;
    for (int k = 0; k < 4; k++) {
        const int64_t at = (int64_t)low + k - 1;
        t.at[k] = at < 0 ? 0 : at > in - 1 ? in - 1 : at;
        t.weight[k] = weight(x - (low + k - 1));
    }
    return t;
}

static double element(const hp_st_tensor *t, int64_t at) {
    const hp_st_tensor one = hp_st_slice(t, at, 1);
    double v;
    hp_st_to_f64(&one, &v);
    return v;
}

static double stretched(const hp_st_tensor *t, const hp_tensor *map, int64_t token, int64_t channel) {
    const int64_t side = side_of(t), c = t->dim[2];
    if (token == 0) return element(t, channel);
    const taps y = taps_of((token - 1) / map->w, map->h, side),
               x = taps_of((token - 1) % map->w, map->w, side);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            sum += y.weight[i] * x.weight[k] * element(t, (1 + y.at[i] * side + x.at[k]) * c + channel);
    return sum;
}

void hp_places_read(const hp_st_tensor *t, const hp_graph *g, int param, int64_t first, int64_t count,
                    double *to) {
    const int64_t c = t->dim[2];
    for (int64_t i = 0; i < count; i++)
        to[i] = stretched(t, map_of(g, param), (first + i) / c, (first + i) % c);
}
