/* axis_cut.c - `cut`: units of each virtual stage, where they are not balanced by cost. */
#include "plan/strategy/strategy_axis.h"

#include "base/units.h"

#include <string.h>

static const char BALANCED[] = "balanced"; /* cut by cost */

static hp_status parse_cut(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    char copy[HP_STRATEGY_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    s->cut.n = 0;
    if (strcmp(value, BALANCED) == 0) return HP_OK;
    if (!copy[0])
        return hp_fail(err, HP_EUSAGE,
                       "strategy: cut is empty; write units per stage, for example cut=9:9:9:11");
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        int64_t units = 0;
        HP_TRY(hp_parse_int(part, "strategy: cut", 1, HP_MAX_DEGREE, &units, err));
        if (s->cut.n == HP_MAX_STAGES)
            return hp_fail(err, HP_EUSAGE, "strategy: cut has more than %d entries", HP_MAX_STAGES);
        s->cut.units[s->cut.n++] = (int32_t)units;
    }
    return HP_OK;
}

static void print_cut(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a;
    if (!s->cut.n) strcpy(value, BALANCED);
    for (int i = 0; i < s->cut.n; i++)
        snprintf(value + strlen(value), HP_STRATEGY_TEXT - strlen(value), "%s%d", i ? ":" : "",
                 s->cut.units[i]);
}

/* A single stage takes all units. */
static bool is_balanced(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return !s->cut.n || (s->cut.n == 1 && (int64_t)s->stages * s->chunks == 1);
}

static bool legal_cut(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    int64_t sum = 0;
    for (int i = 0; i < s->cut.n; i++) sum += s->cut.units[i];
    if (!s->cut.n || (s->cut.n == s->stages * s->chunks && sum == c->g->n_unit)) return true;
    if (s->cut.n != s->stages * s->chunks)
        hp_refuse(why, HP_REJECT_CUT, "cut has %d entries, stages*chunks = %d", s->cut.n,
                  s->stages * s->chunks);
    else
        hp_refuse(why, HP_REJECT_CUT, "cut sums to %lld, %.60s has %d units (hplan explain lists them)",
                  (long long)sum, c->g->net, c->g->n_unit);
    if (s->stages == 1 && sum == c->g->n_unit && s->cut.n % s->chunks == 0) /* they were left out */
        return hp_fix(why, "stages=%d", s->cut.n / s->chunks);
    return hp_fix(why, "cut=balanced");
}

const hp_axis hp_axis_cut = {.name = "cut",
                             .example = "cut=9:9:9:11",
                             .usual = "balanced",
                             .means = "units (layers that stay together) per stage; hplan explain numbers "
                                      "and lists them; balanced: by cost",
                             .parse = parse_cut,
                             .print = print_cut,
                             .omits = is_balanced,
                             .legal = legal_cut};
