/* test_choice.c - comm=auto with a cost table of collectives: each uses the fastest choice for its size, and
 * `explain` says so. That training computes the same: tests/cli/cli_choice.sh. */
#include "tests/support/words/words.h"

/* By hand: small ones start sooner over shared memory; rings over messages are faster. */
static int make_costs(void **state) {
    static const char *const rows[][2] = {{"own.doubling", "0:2.5e-5 1e9:5.000025"},
                                          {"own.ring", "0:2e-5 1e9:1.00002"},
                                          {"shm.doubling", "0:2e-6 1e9:4.000002"}};
    if (words_open(state)) return -1;
    FILE *f = fopen("by_hand.cost", "w");
    if (!f) return -1;
    fprintf(f, "hplan-cost 2\nmachine local\ndate 2026-01-01\n");
    for (int i = 0; i < 3; i++)
        for (int ranks = 2; ranks <= 4; ranks += 2)
            fprintf(f, "collective shm allreduce %s r%d n%d | measured 0.02 9 by hand | %s\n", rows[i][0],
                    ranks, ranks, rows[i][1]);
    return fclose(f);
}

static void each_collective_goes_the_way_that_is_fastest(void **state) {
    static const struct {
        const char *strategy;
        int ranks;
    } cases[] = {{"dp=2,fuse=1000", 2}, {"sp=2x1,fuse=1000", 2}, {"dp=4,fuse=1000", 4}};
    words *w = *state;
    for (int i = 0; i < 3; i++) {
        hplan(w, 0,
              "simulate --net cnn --image 32 --batch 4 --cost by_hand.cost --strategy %s --device ref --out "
              "p.db",
              cases[i].strategy);
        hplan(w, 0, "explain p.db");
        out_says(w, "allreduce among %d ranks: .* shm\\.doubling, .* own\\.ring$", cases[i].ranks);
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(each_collective_goes_the_way_that_is_fastest)};
    return cmocka_run_group_tests(tests, make_costs, words_close);
}
