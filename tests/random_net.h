/* random_net.h - random small networks with skips, branches, strides, pools and channel counts of every kind,
 * and random strategies for them: what the laws are tried on. */
#ifndef HP_TESTS_RANDOM_NET_H
#define HP_TESTS_RANDOM_NET_H

#include "plan/base/rng.h"
#include "plan/fuse.h"
#include "plan/nets/builder.h"
#include "plan/strategy.h"

typedef struct dice {
    uint64_t seed, n;
} dice;

static inline int roll(dice *d, int low, int high) { /* inclusive */
    return low + (int)hp_rng_below(d->seed, 77, d->n++, (uint64_t)(high - low + 1));
}

static inline bool coin(dice *d) {
    return roll(d, 0, 1) == 1;
}

static inline int random_block(hp_builder *b, dice *d, int x) {
    const int c = b->g->tensor[x].c;
    const int h = b->g->tensor[x].h < b->g->tensor[x].w ? b->g->tensor[x].h : b->g->tensor[x].w;
    switch (roll(d, 0, 6)) {
    case 0: { /* residual, batch norm fused with the addition */
        int y = hp_build_conv(b, x, "a", c, (hp_window){3, 1, 1, 1, false});
        y = hp_build_act(b, hp_build_bn(b, y, "na"), "ra", HP_ACT_RELU);
        y = hp_build_bn(b, hp_build_conv(b, y, "b", c, (hp_window){1, 1, 0, 1, false}), "nb");
        return hp_build_act(b, hp_build_add(b, y, x, "add"), "rb", HP_ACT_RELU);
    }
    case 1: { /* pre-activation residual with a strided shortcut */
        const int s = h >= 4 ? 2 : 1, o = roll(d, 2, 9);
        int y = hp_build_act(b, hp_build_bn(b, x, "n"), "r", HP_ACT_RELU6);
        y = hp_build_conv(b, y, "a", o, (hp_window){3, s, 1, 1, true});
        return hp_build_add(b, y, hp_build_conv(b, x, "short", o, (hp_window){1, s, 0, 1, true}), "add");
    }
    case 2:
        return hp_build_act(b, hp_build_conv(b, x, "dw", c, (hp_window){3, 1, 1, c, true}), "r",
                            HP_ACT_RELU6);
    case 3:
        return h >= 3 ? hp_build_maxpool(
                            b, x, "max",
                            (hp_window){coin(d) ? 2 : 3, coin(d) ? 1 : 2, coin(d) ? 1 : 0, 0, false})
                      : x;
    case 4:
        return h >= 3 ? hp_build_avgpool(b, x, "avg", (hp_window){3, coin(d) ? 1 : 2, 1, 0, false}) : x;
    case 5: { /* dense layer */
        int y = hp_build_act(b, hp_build_bn(b, x, "n"), "r", HP_ACT_RELU);
        return hp_build_concat(b, x, hp_build_conv(b, y, "a", roll(d, 1, 5), (hp_window){3, 1, 1, 1, false}),
                               "cat");
    }
    default: {
        const int y = hp_build_conv(b, x, "a", roll(d, 1, 12),
                                    (hp_window){h >= 3 && coin(d) ? 3 : 1, 1, coin(d) ? 1 : 0, 1, coin(d)});
        return hp_build_dropout(b, y, "drop", 0.25f);
    }
    }
}

/* A network of n_block random blocks; every third or so also feeds a later unit by a long skip. */
static inline hp_graph *random_net(hp_arena *arena, uint64_t seed, int n_block) {
    dice d = {seed, 0};
    hp_error err;
    hp_builder b = hp_builder_start(arena, "random", roll(&d, 7, 13), roll(&d, 7, 13), roll(&d, 2, 5), &err);
    int x = hp_build_conv(&b, 0, "stem", roll(&d, 2, 8), (hp_window){3, 1, 1, 1, false});
    int skip = -1;
    for (int i = 0; i < n_block; i++) {
        hp_build_unit(&b);
        hp_build_scope(&b, "b%d.", i);
        x = random_block(&b, &d, x);
        if (skip >= 0 && b.g->tensor[skip].h == b.g->tensor[x].h && b.g->tensor[skip].w == b.g->tensor[x].w &&
            coin(&d)) {
            x = hp_build_concat(&b, x, skip, "long");
            skip = -1;
        } else if (skip < 0 || coin(&d)) {
            skip = x;
        }
    }
    hp_build_unit(&b);
    hp_build_scope(&b, "head.");
    x = hp_build_adaptpool(&b, x, "gap", 2, 1);
    hp_build_linear(&b, x, "fc", b.g->classes);
    hp_graph *g = NULL;
    if (hp_builder_finish(&b, &g) != HP_OK) {
        fprintf(stderr, "random_net %llu: %s\n", (unsigned long long)seed, err.text);
        return NULL;
    }
    return hp_graph_fuse(arena, g);
}

/* A legal strategy with dp * micro == groups, on at most max_ranks ranks. */
static inline hp_strategy random_strategy(dice *d, const hp_graph *g, int groups, int max_ranks) {
    for (;;) {
        hp_strategy s = hp_strategy_default();
        s.dp = roll(d, 1, groups);
        if (groups % s.dp) continue;
        s.micro = groups / s.dp;
        s.stages = roll(d, 1, 4);
        s.sched = s.micro == 1 ? roll(d, 0, 2) : roll(d, 1, 3);
        s.chunks = s.sched == HP_SCHED_INTERLEAVED ? 2 : 1;
        s.recompute = roll(d, 0, 3);
        s.fuse_bytes = coin(d) ? 25000000 : roll(d, 64, 4096);
        if (coin(d)) { /* a random cut */
            s.n_cut = s.stages * s.chunks;
            int left = g->n_unit;
            for (int i = 0; i < s.n_cut && left > 0; i++) {
                const int most = left - (s.n_cut - 1 - i);
                s.cut[i] = i == s.n_cut - 1 ? left : most > 0 ? roll(d, 1, most) : 0;
                left -= s.cut[i];
            }
        }
        if (s.dp * s.stages <= max_ranks && hp_strategy_legal(&s, g, groups, 0, NULL)) return s;
    }
}

#endif
