/* legal.h - inside of the legality rules: what a rule sees, and how it says no.
 *
 * A rule returns true, or names its code and the limiting number (hp_refuse) and the smallest change of the
 * strategy that meets it (hp_fix). Following the fixes one after the other ends in a legal strategy. */
#ifndef HP_LEGAL_H
#define HP_LEGAL_H

#include "plan/strategy/layout.h"

typedef struct hp_legal_case {
    const hp_strategy *s; /* canonical */
    const hp_graph *g;
    int64_t batch;
    int n_devices; /* 0 = no cap */
} hp_legal_case;

/* Stages * chunks at most: one unit each, and no more than a strategy can hold. */
static inline int hp_most_stages(const hp_graph *g) {
    return g->n_unit < HP_MAX_STAGES ? g->n_unit : HP_MAX_STAGES;
}

/* `why` may be NULL. hp_fix returns false, so that a rule can end with it. */
void hp_refuse(hp_reject *why, hp_reject_code code, const char *limit, ...)
    __attribute__((format(printf, 3, 4)));
bool hp_fix(hp_reject *why, const char *fix, ...) __attribute__((format(printf, 2, 3)));

/* legal_layout.c: tiles, slices, channels. legal_schedule.c: schedules, passes. */
bool hp_legal_tiles(const hp_legal_case *c, hp_reject *why);
bool hp_legal_shares(const hp_legal_case *c, hp_reject *why);
bool hp_legal_proportions(const hp_legal_case *c, hp_reject *why);
bool hp_legal_tail(const hp_legal_case *c, hp_reject *why);
bool hp_legal_strips(const hp_legal_case *c, hp_reject *why);
bool hp_legal_whole(const hp_legal_case *c, hp_reject *why);
bool hp_legal_prec(const hp_legal_case *c, hp_reject *why);
bool hp_legal_place(const hp_legal_case *c, hp_reject *why);
bool hp_legal_channels(const hp_legal_case *c, hp_reject *why);
/* legal_training.c: layers that share a parameter */
bool hp_legal_tied(const hp_legal_case *c, hp_reject *why);
bool hp_legal_order(const hp_legal_case *c, hp_reject *why);
bool hp_legal_chunks(const hp_legal_case *c, hp_reject *why);
bool hp_legal_gems(const hp_legal_case *c, hp_reject *why);
/* backend.c: several ranks of a device */
bool hp_legal_comm(const hp_legal_case *c, hp_reject *why);
/* compress.c: codecs of messages; a device that has them */
bool hp_legal_compress(const hp_legal_case *c, hp_reject *why);
bool hp_compress_allowed(const hp_strategy *s, const hp_device_info *device, hp_reject *why);

#endif
