/* test_tuning.c - ranks that timed their kernels and chose differently all end up with the choice of the
 * lowest rank that has one, whatever each knew. Ranks are threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "exec/run/run_tuning.h"
#include "base/rng.h"
#include "tests/support/exec/thread_comm.h"

enum { RANKS = 5, KERNELS = 26, ROUNDS = 60 };

struct hp_device { /* kernel k uses choice[k], 0: no such kernel */
    char choice[KERNELS];
    bool shared[KERNELS];
    int refuses; /* the kernel whose choice it cannot adopt; -1: none */
};

static char *export_choices(const hp_device *d) {
    char *text = calloc(2 * KERNELS + 1, 1);
    int n = 0;
    for (int k = 0; k < KERNELS; k++) {
        if (!d->choice[k] || d->shared[k]) continue;
        text[n++] = (char)('a' + k);
        text[n++] = d->choice[k];
    }
    if (n) return text;
    free(text);
    return NULL;
}

/* A refused choice does not count as announced: its own is still to be announced. */
static hp_status import_choices(hp_device *d, const char *text, hp_error *err) {
    for (int i = 0; text[i]; i += 2) {
        const int k = text[i] - 'a';
        if (d->shared[k]) continue;
        if (k == d->refuses) return hp_fail(err, HP_EUNAVAIL, "kernel %d does not run here", k);
        d->shared[k] = true;
        if (d->choice[k]) d->choice[k] = text[i + 1];
    }
    return HP_OK;
}

static const hp_tuning_ops OPS = {.export_choices = export_choices, .import_choices = import_choices};

typedef struct seat {
    thread_world *world;
    int rank;
    hp_device device;
    hp_status status;
    hp_error err;
} seat;

static void *play(void *of) {
    seat *s = of;
    hp_comm *comm = thread_comm_new(s->world, s->rank);
    s->status = hp_tuning_share(comm, &OPS, &s->device, &s->err);
    comm->ops->close(comm);
    return NULL;
}

/* Fills the seats, runs them, and computes each kernel's expected choice. */
static void play_all(uint64_t round, seat (*all)[RANKS], int refuses, char should[KERNELS]) {
    thread_world *world = thread_world_new(RANKS);
    pthread_t thread[RANKS];
    memset(should, 0, KERNELS);
    for (int r = 0; r < RANKS; r++) {
        seat *s = &(*all)[r];
        *s = (seat){.world = world, .rank = r, .device.refuses = r == 3 ? refuses : -1};
        for (uint64_t k = 0; k < KERNELS; k++) {
            const uint64_t roll = hp_rng_below(round, (uint64_t)r, k, 12);
            s->device.choice[k] = roll < 8 ? (char)('0' + roll) : '\0';
            if (!should[k]) should[k] = s->device.choice[k];
        }
    }
    for (int r = 0; r < RANKS; r++) assert_int_equal(pthread_create(&thread[r], NULL, play, &(*all)[r]), 0);
    for (int r = 0; r < RANKS; r++) pthread_join(thread[r], NULL);
    thread_world_free(world);
}

static void all_use_the_choice_of_the_lowest_that_has_one(void **state) {
    (void)state;
    static seat all[RANKS];
    char should[KERNELS];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        play_all(round, &all, -1, should);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(all[r].status, HP_OK);
            for (int k = 0; k < KERNELS; k++)
                if (all[r].device.choice[k]) assert_int_equal(all[r].device.choice[k], should[k]);
        }
    }
}

/* One rank's failure is that rank's error: all ranks finish, even if it later chooses
 * what it cannot adopt. */
static void what_one_cannot_take_is_its_own_error(void **state) {
    (void)state;
    static seat all[RANKS];
    char should[KERNELS], text[40];
    int own = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const int refuses = (int)(round % KERNELS);
        play_all(round, &all, refuses, should);
        own += all[3].device.choice[refuses] != 0;
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(all[r].status, r == 3 && should[refuses] ? HP_EUNAVAIL : HP_OK);
        snprintf(text, sizeof text, "kernel %d does not run here", refuses);
        if (should[refuses]) assert_string_equal(all[3].err.text, text);
    }
    assert_true(own > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_use_the_choice_of_the_lowest_that_has_one),
                                       cmocka_unit_test(what_one_cannot_take_is_its_own_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
