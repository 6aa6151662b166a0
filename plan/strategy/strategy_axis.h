/* strategy_axis.h - a key of a strategy and all that the planner asks about it: one file of
 * plan/strategy/axes/, one row of plan/strategy/axes.def.
 *
 * A member that is zero has nothing to say. Functions are pure: they depend on the strategy and the facts in
 * their arguments, never on a machine or on costs. */
#ifndef HP_STRATEGY_AXIS_H
#define HP_STRATEGY_AXIS_H

#include "plan/strategy/family.h"
#include "plan/strategy/legal.h"

typedef struct hp_axis hp_axis;

/* What the search knows of its problem. */
typedef struct hp_axis_facts {
    const hp_graph *g;
    int64_t batch; /* 0: the smallest that a strategy divides */
    bool trains;   /* else it infers */
    bool large;    /* simulating once more takes long */
} hp_axis_facts;

enum {
    HP_AXIS_CUT_WORDS = 5, /* words that a key adds to what a cut depends on */
    HP_AXIS_OTHERS = 64    /* values that a key puts in the place of one, at most */
};

/* When the search tries other values of a key on the best strategy that it found: one key after the other,
 * each on the result of the one before. Choices by measurement or by costs (comm, lists of seats) come
 * between PLACE and BUCKETS. */
typedef enum hp_axis_try {
    HP_TRY_NEVER,
    HP_TRY_RANKS,
    HP_TRY_PLACE,
    HP_TRY_BUCKETS,
    HP_TRY_STATE
} hp_axis_try;

/* Which other values a value that saves memory is combined with: BATCH with all below; KEPT with orders;
 * STATE and ORDER with cuts alone. */
typedef enum hp_axis_spare {
    HP_SPARE_NEVER,
    HP_SPARE_BATCH,
    HP_SPARE_KEPT,
    HP_SPARE_STATE,
    HP_SPARE_ORDER,
    HP_SPARES
} hp_axis_spare;

/* What others call such a strategy: "fsdp" is written "dp=N,zero=3" here. */
typedef struct hp_axis_alias {
    const char *word, *text;
} hp_axis_alias;
enum { HP_AXIS_ALIASES = 4 };

struct hp_axis {
    const char *name;
    /* Its row of `hplan help strategies` and of docs/strategies.md: "zero=1", "0", what it means. */
    const char *example, *usual, *means;
    hp_axis_alias alias[HP_AXIS_ALIASES];

    /* --- values --- */
    size_t at;                /* the field of hp_strategy, an int32_t, for the kinds of axis_kinds.h */
    const char *const *words; /* the values, where they are words; NULL at the end */
    hp_status (*parse)(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err);
    /* `value` is empty and holds HP_STRATEGY_TEXT bytes. */
    void (*print)(const hp_axis *a, const hp_strategy *s, char *value);
    /* Does the canonical text leave the key out: is the value the default, or what other keys imply? */
    bool (*omits)(const hp_axis *a, const hp_strategy *s);
    void (*reset)(const hp_axis *a, hp_strategy *s); /* its default in a strategy of zeros */
    void (*imply)(hp_strategy *s);  /* the value in a text without the key, all others read */
    void (*settle)(hp_strategy *s); /* one way to write it: drops what makes no difference */

    /* --- rules --- */
    bool (*legal)(const hp_legal_case *c, hp_reject *why);
    /* Can the device (never NULL) do it? */
    bool (*on_device)(const hp_strategy *s, const hp_device_info *device, hp_reject *why);

    /* --- search --- */
    /* Writes what a cut depends on, HP_AXIS_CUT_WORDS at most, and returns how many words; -1: too many.
     * A key without it changes no cut of the same micro-batch. */
    int (*cut_key)(const hp_axis *a, const hp_strategy *s, int32_t *word);
    /* Other values for the best strategy that was found; how many, HP_AXIS_OTHERS at most. */
    hp_axis_try tried;
    int (*tries)(const hp_strategy *best, const hp_axis_facts *f, hp_strategy *out);
    /* Values that need less memory on the same ranks. */
    hp_axis_spare spare;
    int (*spares)(const hp_strategy *s, const hp_axis_facts *f, hp_strategy *out);

    /* --- tables --- */
    /* A value above 1 makes the strategy one of this family, where no key with greater `marks` does; 0:
     * it does not. */
    hp_family family;
    int marks;
};

enum {
#define AXIS(key, ...) HP_STRATEGY_AXIS_##key,
#include "plan/strategy/axes.def"
    HP_STRATEGY_AXES
};
#define AXIS(key, ...) extern const hp_axis hp_axis_##key;
#include "plan/strategy/axes.def"
/* In the order in which strategies are written. */
extern const hp_axis *const hp_strategy_axes[HP_STRATEGY_AXES];

#endif
