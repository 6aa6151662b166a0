/* amoebanet.c - AmoebaNet-D(L, F) (Real et al., AAAI 2019) with the genotype and widths of torchgpipe's
 * benchmark, as MPI4DL implements it. The genotype's 3x3 max pooling is an average, and factorised reduction
 * halves both of its paths without a shift. The 2x2 max pooling uses ceil mode, so that every image size
 * works.
 *
 * A cell reads the outputs of its predecessor and of the cell before it, so two tensors cross every boundary
 * between cells. Names: stem1, stem2, stem3, cell1_normal1, ..., classify. */
#include "networks/nets/net_act.h"
#include "networks/nets/nets.h"

/* --- operations of the genotype --- */

/* A cell under construction: its channels, states, and per state the ReLU and mean that all its readers
 * share. */
enum { STATES = 7, PAIRS = 5 };
typedef struct cell {
    hp_builder *b;
    int channels;
    bool reduction;
    int state[STATES], relu[STATES], mean[STATES]; /* tensors; -1: not computed yet */
} cell;

static int conv_bn(hp_builder *b, int x, const char *name, int number, int out_c, hp_window w) {
    x = hp_build_conv(b, x, hp_arena_printf(b->arena, "%s.%d", name, number), out_c, w);
    return hp_build_bn(b, x, hp_arena_printf(b->arena, "%s.%d", name, number + 1));
}

static int relu(hp_builder *b, int x, const char *name, int number) {
    return hp_build_act(b, x, hp_arena_printf(b->arena, "%s.%d", name, number), HP_ACT_RELU);
}

static int state_relu(cell *c, int state) {
    if (c->relu[state] < 0)
        c->relu[state] =
            hp_build_act(c->b, c->state[state], hp_arena_printf(c->b->arena, "relu%d", state), HP_ACT_RELU);
    return c->relu[state];
}

typedef int operation(cell *c, int state, const char *name, int stride);

static int none(cell *c, int state, const char *name, int stride) {
    (void)name, (void)stride;
    return c->state[state];
}

static int avg3(cell *c, int state, const char *name, int stride) {
    const hp_window w = {.k = 3, .stride = stride, .pad = 1};
    if (c->mean[state] < 0) c->mean[state] = hp_build_avgpool_inside(c->b, c->state[state], name, w);
    return c->mean[state];
}

static int max2(cell *c, int state, const char *name, int stride) {
    return hp_build_maxpool_ceil(c->b, c->state[state], name, (hp_window){.k = 2, .stride = stride});
}

static int c1(cell *c, int state, const char *name, int stride) {
    return conv_bn(c->b, state_relu(c, state), name, 1, c->channels, (hp_window){.k = 1, .stride = stride});
}

static int c33(cell *c, int state, const char *name, int stride) {
    const int narrow = c->channels / 4;
    int x = conv_bn(c->b, state_relu(c, state), name, 1, narrow, (hp_window){.k = 1});
    x = conv_bn(c->b, relu(c->b, x, name, 3), name, 4, narrow,
                (hp_window){.k = 3, .stride = stride, .pad = 1});
    return conv_bn(c->b, relu(c->b, x, name, 6), name, 7, c->channels, (hp_window){.k = 1});
}

static int line_bn(cell *c, int x, const char *name, int number, int kh, int kw) {
    hp_builder *b = c->b;
    x = hp_build_conv_rect(b, x, hp_arena_printf(b->arena, "%s.%d", name, number), c->channels / 4, kh, kw);
    return hp_build_bn(b, x, hp_arena_printf(b->arena, "%s.%d", name, number + 1));
}

static int c17(cell *c, int state, const char *name, int stride) {
    HP_ASSERT(stride == 1); /* the genotype uses it on inner states only */
    int x = conv_bn(c->b, state_relu(c, state), name, 1, c->channels / 4, (hp_window){.k = 1});
    x = line_bn(c, relu(c->b, x, name, 3), name, 4, 1, 7);
    x = line_bn(c, relu(c->b, x, name, 6), name, 7, 7, 1);
    return conv_bn(c->b, relu(c->b, x, name, 9), name, 10, c->channels, (hp_window){.k = 1});
}

/* --- the genotype --- */

typedef struct gene {
    int state;
    operation *op;
} gene;

/* Each pair is summed into a state, 2 to 6. "max3" of the genotype is avg3, see above. */
static const gene normal_genes[2 * PAIRS] = {{1, c1},  {1, avg3}, {1, none}, {0, c17},  {0, c1},
                                             {0, c17}, {2, avg3}, {2, none}, {1, avg3}, {5, c1}};
static const gene reduction_genes[2 * PAIRS] = {{0, max2}, {0, avg3}, {2, none}, {1, c33},  {2, c17},
                                                {2, avg3}, {3, none}, {1, max2}, {2, avg3}, {3, c1}};
static const int normal_joins[] = {0, 3, 4, 6}, reduction_joins[] = {4, 5, 6};
enum { N_NORMAL_JOINS = 4, N_REDUCTION_JOINS = 3 };

static bool is_convolution(const gene *g) {
    return g->op == c1 || g->op == c17 || g->op == c33;
}

static int apply(cell *c, const gene *genes, int k) {
    const int stride = c->reduction && genes[k].state < 2 ? 2 : 1;
    return genes[k].op(c, genes[k].state, hp_arena_printf(c->b->arena, "operations.%d", k), stride);
}

/* Builds a pooling before its partner, so that the partner's last norm can be fused with the addition. */
static int pair(cell *c, const gene *genes, int k) {
    const int early = is_convolution(&genes[k]) && !is_convolution(&genes[k + 1]) ? k + 1 : k;
    const int first = apply(c, genes, early), second = apply(c, genes, 2 * k + 1 - early);
    return hp_build_add(c->b, first, second, hp_arena_printf(c->b->arena, "add%d", 2 + k / 2));
}

/* --- cells --- */

/* State between two cells: the last output, the last cell's input, and whether the last cell was a
 * reduction. */
typedef struct flow {
    int x, skip, channels;
    bool reduced;
} flow;

static int factorized(hp_builder *b, int x, int channels) {
    const hp_window w = {.k = 1, .stride = 2};
    x = hp_build_act(b, x, "reduce2.relu", HP_ACT_RELU);
    const int a = hp_build_conv(b, x, "reduce2.conv1", channels / 2, w),
              c = hp_build_conv(b, x, "reduce2.conv2", channels / 2, w);
    return hp_build_bn(b, hp_build_concat(b, a, c, "reduce2.cat"), "reduce2.bn");
}

static int reduce(hp_builder *b, int x, const char *name, int channels) {
    return conv_bn(b, relu(b, x, name, 0), name, 1, channels, (hp_window){.k = 1});
}

static int second_state(hp_builder *b, const flow *f, int channels) {
    if (f->reduced) return factorized(b, f->skip, channels);
    return b->g->tensor[f->skip].c == channels ? f->skip : reduce(b, f->skip, "reduce2", channels);
}

static void write_cell(hp_builder *b, flow *f, const char *name, bool reduction) {
    hp_build_unit(b);
    hp_build_scope(b, "%s.", name);
    if (reduction) f->channels *= 2;
    cell c = {.b = b, .channels = f->channels, .reduction = reduction};
    for (int i = 0; i < STATES; i++) c.relu[i] = c.mean[i] = -1;
    c.state[0] = reduce(b, f->x, "reduce1", c.channels);
    c.state[1] = second_state(b, f, c.channels);
    const gene *genes = reduction ? reduction_genes : normal_genes;
    for (int k = 0; k < PAIRS; k++) c.state[2 + k] = pair(&c, genes, 2 * k);
    const int *joins = reduction ? reduction_joins : normal_joins;
    const int n = reduction ? N_REDUCTION_JOINS : N_NORMAL_JOINS;
    int joined[N_NORMAL_JOINS];
    for (int i = 0; i < n; i++) joined[i] = c.state[joins[i]];
    f->skip = f->x;
    f->x = hp_build_concat_all(b, joined, n, "cat");
    f->reduced = reduction;
}

static void write_normals(hp_builder *b, flow *f, int number, int repeat) {
    for (int i = 1; i <= repeat; i++)
        write_cell(b, f, hp_arena_printf(b->arena, "cell%d_normal%d", number, i), false);
}

void hp_net_write_amoebanetd(hp_builder *b, const hp_net_args *a) {
    flow f = {.channels = a->filters / 4};
    hp_build_scope(b, "%s", "");
    f.x = conv_bn(b, relu(b, 0, "stem1", 0), "stem1", 1, f.channels,
                  (hp_window){.k = 3, .stride = 2, .pad = 1});
    f.skip = f.x;
    write_cell(b, &f, "stem2", true);
    write_cell(b, &f, "stem3", true);
    write_normals(b, &f, 1, a->layers / 3);
    write_cell(b, &f, "cell2_reduction", true);
    write_normals(b, &f, 3, a->layers / 3);
    write_cell(b, &f, "cell4_reduction", true);
    write_normals(b, &f, 5, a->layers / 3);
    hp_build_unit(b);
    hp_build_scope(b, "classify.");
    hp_build_linear(b, hp_build_adaptpool(b, f.x, "pool", 1, 1), "fc", b->g->classes);
}
