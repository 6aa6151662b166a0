/* axis_place.c - `place`: which rank sits where (machines/placement.h), by a name or by the seat of each
 * place. */
#include "plan/strategy/axis_kinds.h"

#include "base/units.h"

#include <string.h>

static const char *const names[] = {"block", "cyclic", "tile", NULL};

static hp_status add_seat(const char *text, bool *taken, hp_strategy *s, hp_error *err) {
    int64_t seat = 0;
    HP_TRY(hp_parse_int(text, "strategy: place", 0, HP_MAX_SEATS - 1, &seat, err));
    if (taken[seat])
        return hp_fail(err, HP_EUSAGE, "strategy: place has two ranks on seat %d; write each seat once",
                       (int)seat);
    taken[seat] = true;
    s->place.seat[s->place.n_seat++] = (int32_t)seat; /* as many as there are seats, at most */
    return HP_OK;
}

static hp_status read_seats(const char *value, hp_strategy *s, hp_error *err) {
    bool taken[HP_MAX_SEATS] = {false};
    char copy[HP_STRATEGY_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":"))
        HP_TRY(add_seat(part, taken, s, err));
    for (int k = 0; k < s->place.n_seat; k++)
        if (!taken[k])
            return hp_fail(err, HP_EUSAGE,
                           "strategy: place has %d entries and nobody on seat %d: write each of 0 to %d once",
                           s->place.n_seat, k, s->place.n_seat - 1);
    return HP_OK;
}

static hp_status parse_place(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    s->place.n_seat = 0;
    s->place.how = HP_PLACE_LIST;
    if (strchr(value, ':')) return read_seats(value, s, err);
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], value) != 0) continue;
        s->place.how = i;
        return HP_OK;
    }
    return hp_fail(
        err, HP_EUSAGE,
        "strategy: place=%.40s is unknown; choose one of block, cyclic, tile, or write the seat of "
        "each rank, as 0:2:1:3",
        value);
}

static void print_place(const hp_axis *a, const hp_strategy *s, char *out) {
    (void)a;
    if (s->place.how != HP_PLACE_LIST) {
        strcpy(out, names[s->place.how]);
        return;
    }
    out[0] = 0;
    for (int i = 0; i < s->place.n_seat; i++)
        snprintf(out + strlen(out), HP_STRATEGY_TEXT - strlen(out), "%s%d", i ? ":" : "", s->place.seat[i]);
}

/* Has every place its own seat? */
static bool is_plain(const hp_strategy *s) {
    const bool fits = s->place.n_seat == hp_strategy_roles(s) ||
                      s->place.n_seat == hp_strategy_devices(s); /* else it is refused */
    bool plain = s->place.how == HP_PLACE_BLOCK || (s->place.how == HP_PLACE_LIST && fits);
    for (int k = 0; k < s->place.n_seat; k++) plain = plain && s->place.seat[k] == k;
    return plain;
}

static void settle(hp_strategy *s) {
    if (is_plain(s)) s->place.how = HP_PLACE_BLOCK;
}

/* Several processes of a device are told apart on their node by order alone (exec/cuda/runtime/cuda.c). */
static bool legal_place(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    const int roles = hp_strategy_roles(s), places = hp_strategy_devices(s);
    if (s->place.how != HP_PLACE_BLOCK && s->clients > 1 && roles > 1) {
        hp_refuse(why, HP_REJECT_PLACE,
                  "place wants one rank on a device, or replicas of one rank: clients=%d with %d ranks each",
                  s->clients, roles);
        return hp_fix(why, "place=block");
    }
    if (s->place.how != HP_PLACE_LIST || s->place.n_seat == roles || s->place.n_seat == places) return true;
    hp_refuse(why, HP_REJECT_PLACE, "place has %d entries, a replica has %d rank%s and all of them %d",
              s->place.n_seat, roles, roles == 1 ? "" : "s", places);
    return hp_fix(why, "place=block");
}

static int tries(const hp_strategy *best, const hp_axis_facts *f, hp_strategy *out) {
    (void)f;
    if (best->place.how != HP_PLACE_BLOCK) return 0;
    out[0] = out[1] = *best;
    out[0].place.how = HP_PLACE_CYCLIC;
    out[1].place.how = HP_PLACE_TILE;
    return 2;
}

const hp_axis hp_axis_place = {.name = "place",
                               .example = "place=cyclic",
                               .usual = "block",
                               .means =
                                   "which rank runs where: block, cyclic, tile, or a list of seats, 0:2:1:3",
                               .at = offsetof(hp_strategy, place.how),
                               .parse = parse_place,
                               .print = print_place,
                               .omits = hp_field_is_zero,
                               .settle = settle,
                               .legal = legal_place,
                               .tried = HP_TRY_PLACE,
                               .tries = tries};
