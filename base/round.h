/* round.h - rounds sizes up to whole units: cache lines, vectors, panels of weights. */
#ifndef HP_ROUND_H
#define HP_ROUND_H

#include <stdint.h>

/* The smallest multiple of `unit` (> 0) that is at least v; v >= 0. */
static inline int64_t hp_round_up(int64_t v, int64_t unit) {
    return (v + unit - 1) / unit * unit;
}

#endif
