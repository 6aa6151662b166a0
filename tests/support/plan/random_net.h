/* random_net.h - random small networks with skips, branches, strides, pools and channel counts of every kind,
 * and random strategies for them: what the laws are tried on. */
#ifndef HP_TESTS_RANDOM_NET_H
#define HP_TESTS_RANDOM_NET_H

#include "base/rng.h"
#include "networks/graph/fuse.h"
#include "networks/nets/builder.h"
#include "networks/graph/optimizer.h"
#include "networks/graph/precision.h"
#include "plan/program/program.h"
#include "plan/strategy/strategy.h"

typedef struct dice {
    uint64_t seed, n;
} dice;

int roll(dice *d, int low, int high);
bool coin(dice *d);
/* Any activation, clamp or curve. */
int random_act(hp_builder *b, dice *d, int x, const char *name);
int random_block(hp_builder *b, dice *d, int x);

/* To another size, up to 14 x 14. */
int random_resize(hp_builder *b, dice *d, int x);

/* Other things that tiles must handle: rectangles, ceil mode, padding that does not count,
 * down and up again. */
int random_window(hp_builder *b, dice *d, int x);

/* A network of n_block random blocks. About every third also feeds a later unit by a long skip; one network
 * in three ends in a map of logits. */
hp_graph *random_net(hp_arena *arena, uint64_t seed, int n_block);

/* Axes that a random strategy may use besides replicas, stages, chunks, micro-batches, schedules up to
 * interleaved, recomputation and cuts. */
enum {
    DRAW_TILES = 1,
    DRAW_LDP = 2,
    DRAW_SHARED = 4, /* tail=shared */
    DRAW_GEMS = 8,
    DRAW_HALO = 16,
    DRAW_BN = 32, /* bn=all and bn=local: groups other than one rank's */
    DRAW_CP = 64,
    DRAW_ZB = 128,
    DRAW_CLIENTS = 256,
    DRAW_BRANCHES = 512,
    DRAW_OVERLAP = 1024,
    DRAW_ZERO = 2048,
    DRAW_PROPORTIONS = 4096, /* unequal rows and columns */
    DRAW_SHARES = 8192,
    DRAW_TOKENS = 16384, /* tp and seq */
    DRAW_ALL = 32767,
    DRAW_EXACT = DRAW_ALL - DRAW_BN - DRAW_SHARES /* everything that equals one rank with the same groups */
};

/* Divides `groups` among replicas, passes and micro-batches; false if the roll does not divide them. */
bool draw_groups(dice *d, int axes, int groups, hp_strategy *s);
void draw_schedule(dice *d, int axes, hp_strategy *s);

/* Tiles from strips of five to squares of nine, the same or others in the next stage. */
void draw_tiles(dice *d, int axes, hp_strategy *s);
/* Tiles of unequal sizes, and replicas with unequal shares. The latter use bn=all unless axes has DRAW_BN,
 * because one rank's batch has groups of one size. */
void draw_proportions(dice *d, int axes, hp_strategy *s);
void draw_cut(dice *d, const hp_graph *g, hp_strategy *s);

/* A strategy with replicas * passes * micro-batches == groups, on at most max_ranks ranks, legal for the
 * batch hp_strategy_batch(&s, groups): `groups` itself if no micro-batch is sliced (axes without
 * DRAW_LDP and DRAW_SHARED). */
hp_strategy random_strategy_of(dice *d, const hp_graph *g, int groups, int max_ranks, int axes);

/* Back ends: one for all, or one for each kind of traffic. */
void draw_comm(dice *d, hp_strategy *s);

/* Codecs: none, or one for each or some kinds of messages. */
void draw_compress(dice *d, hp_strategy *s);

/* The network as a random optimiser trains it, with gradients clipped or not. */
hp_graph *random_optimizer(dice *d, hp_arena *arena, const hp_graph *g);

/* The network as training in a random precision runs it; the strategy names the precision. */
hp_graph *random_precision(dice *d, hp_arena *arena, const hp_graph *g, hp_strategy *s);

#endif
