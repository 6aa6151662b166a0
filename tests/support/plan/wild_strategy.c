/* wild_strategy.c - keys drawn independently of each other. */
#include "tests/support/plan/wild_strategy.h"

hp_strategy wild_strategy(dice *d) {
    static const int32_t sizes[] = {1, 1, 1, 2, 3, 4, 7, 64, 65536};
    hp_strategy s = hp_strategy_default();
    int32_t *degree[] = {&s.dp,    &s.stages, &s.chunks,  &s.cp,     &s.ldp,
                         &s.micro, &s.gems,   &s.sp.halo, &s.clients};
    for (size_t i = 0; i < sizeof degree / sizeof degree[0]; i++) *degree[i] = sizes[roll(d, 0, 8)];
    s.sched = roll(d, 0, 5);
    s.recompute = roll(d, 0, 3);
    s.sp.tail = roll(d, 0, 1);
    s.bn = roll(d, 0, 2);
    s.sp.n = coin(d) ? 0 : roll(d, 1, HP_MAX_SPATIAL);
    for (int i = 0; i < s.sp.n; i++) {
        s.sp.rows[i] = sizes[roll(d, 0, 8)];
        s.sp.cols[i] = sizes[roll(d, 0, 8)];
    }
    s.cut.n = coin(d) ? 0 : roll(d, 1, 6);
    for (int i = 0; i < s.cut.n; i++) s.cut.units[i] = sizes[roll(d, 0, 8)];
    return s;
}
