/* work_inside.h - what the files of a task's work share. */
#ifndef HP_WORK_INSIDE_H
#define HP_WORK_INSIDE_H

#include "base/text.h"
#include "networks/graph/layer.h"
#include "plan/program/work.h"

/* Tasks of deployed graphs run other kernels than training's: "infer.conv ...", "infer.copy u8". */
#define HP_WORK_DEPLOYED "infer"

static inline double hp_length_product(const int32_t length[HP_AXES], int first, int last) {
    double n = 1;
    for (int a = first; a <= last; a++) n *= length[a];
    return n;
}

static inline int hp_local_groups(const hp_graph *g, const hp_layer *l, int outs) {
    if (l->groups <= 1) return 1;
    const int per_group = g->tensor[l->out].c / l->groups;
    return per_group > 0 && outs >= per_group ? outs / per_group : 1;
}

/* The map whose pixels are the size axis: the output, or the input of a pooling to one pixel. */
static inline const int32_t *hp_size_map(const hp_graph *g, const hp_work_case *c) {
    return g->layer[c->layer].op == HP_ADAPTPOOL ? c->in : c->out;
}

/* "fwd.conv k3x3 s1 d1 g1 i64 o64 f32 w56": see hp_work. */
void hp_layer_key(const hp_graph *g, hp_dtype dtype, const hp_work_case *c, hp_text key);

#endif
