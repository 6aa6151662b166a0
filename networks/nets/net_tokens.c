/* net_tokens.c - see net_tokens.h. Queries, keys and values are three layers, so that slices of their
 * channels are heads. */
#include "networks/nets/net_tokens.h"

/* The file stores `n` such parameters one below the other; this is number `k`. */
static void store(hp_builder *b, int i, const char *name, int k, int n, bool turned) {
    hp_param *p = hp_build_param(b, i);
    if (!p) return;
    const int rows = n * p->dim[0], cols = p->n_dim > 1 ? p->dim[1] : 0;
    p->stored = (hp_stored){.name = name,
                            .n_dim = p->n_dim,
                            .dim = {turned && cols ? cols : rows, turned ? rows : cols},
                            .first = k * p->count,
                            .turned = turned && cols};
}

int hp_tokens_project(hp_builder *b, int x, hp_tokens_linear t, int out_c, hp_init init, double scale) {
    const bool row = t.tp == HP_TP_ROW; /* (I, O) here */
    const int y = row ? hp_build_row(b, x, t.name, out_c, true) : hp_build_column(b, x, t.name, out_c, true);
    hp_build_init(b, 0, init, scale);
    hp_param *w = hp_build_param(b, 0);
    if (w && row == t.turned) w->stored = (hp_stored){.name = NULL};
    if (w && !row && t.turned) store(b, 0, NULL, 0, 1, true);
    return y;
}

static int part(hp_builder *b, int x, hp_tokens t, int k, int out_c, hp_init init, double scale) {
    static const char *const names[] = {"q", "k", "v"};
    const char *dot = t.joined ? "" : ".";
    const hp_tokens_linear one = {.name = names[k], .tp = HP_TP_COLUMN};
    const int y = hp_tokens_project(b, x, one, out_c, init, scale);
    store(b, 0, hp_arena_printf(b->arena, "%s%s%sweight", b->scope, t.qkv, dot), k, 3, t.turned);
    store(b, 1, hp_arena_printf(b->arena, "%s%s%sbias", b->scope, t.qkv, dot), k, 3, false);
    return y;
}

int hp_tokens_attend(hp_builder *b, int x, hp_tokens t, hp_heads h, hp_init init, double scale) {
    const int c = b->g->tensor[x].c, q = part(b, x, t, 0, c, init, scale),
              k = part(b, x, t, 1, c, init, scale), v = part(b, x, t, 2, c, init, scale);
    const int y = hp_build_attention(b, q, k, v, "attention", h);
    if (h.bias) {
        store(b, 0, hp_arena_printf(b->arena, "%srelative_position_bias_table", b->scope), 0, 1, true);
        hp_build_init(b, 0, HP_INIT_NORMAL, scale);
    }
    const hp_tokens_linear out = {.name = t.out, .tp = HP_TP_ROW, .turned = t.turned};
    return hp_tokens_project(b, y, out, c, init, scale);
}

void hp_tokens_stored_flat(hp_builder *b, int i) {
    hp_param *p = hp_build_param(b, i);
    if (!p) return;
    p->stored = p->n_dim == 1 ? (hp_stored){.n_dim = 3, .dim = {1, 1, p->dim[0]}}
                              : (hp_stored){.n_dim = 3, .dim = {1, p->dim[0], p->dim[1]}};
}
