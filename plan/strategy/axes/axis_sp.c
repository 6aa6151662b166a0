/* axis_sp.c - `sp`: a grid of tiles for each of the leading stages. More tiles than rows or columns are
 * legal, such tiles are empty; so is any grid after any other. */
#include "plan/strategy/strategy_axis.h"

#include "base/units.h"

#include <string.h>

static const char NO_TILES[] = "none"; /* not spatial */

/* "ROWSxCOLS" */
static hp_status parse_grid(char *text, int32_t *rows, int32_t *cols, hp_error *err) {
    char *x = strchr(text, 'x');
    if (!x)
        return hp_fail(err, HP_EUSAGE,
                       "strategy: sp=%.40s is not ROWSxCOLS, for example sp=2x2 or sp=4x1:2x1", text);
    *x = 0;
    int64_t r = 0, c = 0;
    HP_TRY(hp_parse_int(text, "strategy: rows of sp", 1, HP_MAX_DEGREE, &r, err));
    HP_TRY(hp_parse_int(x + 1, "strategy: columns of sp", 1, HP_MAX_DEGREE, &c, err));
    *rows = (int32_t)r;
    *cols = (int32_t)c;
    return HP_OK;
}

static hp_status parse_grids(const hp_axis *a, const char *value, hp_strategy *s, hp_error *err) {
    (void)a;
    char copy[HP_STRATEGY_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    s->sp.n = 0;
    if (strcmp(value, NO_TILES) == 0) return HP_OK;
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        if (s->sp.n == HP_MAX_SPATIAL)
            return hp_fail(err, HP_EUSAGE, "strategy: sp has more than %d entries", HP_MAX_SPATIAL);
        HP_TRY(parse_grid(part, &s->sp.rows[s->sp.n], &s->sp.cols[s->sp.n], err));
        s->sp.n++;
    }
    return HP_OK;
}

static void print_grids(const hp_axis *a, const hp_strategy *s, char *value) {
    (void)a;
    if (!s->sp.n) strcpy(value, NO_TILES);
    for (int i = 0; i < s->sp.n; i++)
        snprintf(value + strlen(value), HP_STRATEGY_TEXT - strlen(value), "%s%dx%d", i ? ":" : "",
                 s->sp.rows[i], s->sp.cols[i]);
}

static bool has_no_tiles(const hp_axis *a, const hp_strategy *s) {
    (void)a;
    return s->sp.n == 0;
}

/* Trailing stages of one tile are stages without tiles. */
static void settle(hp_strategy *s) {
    const bool plain_tail = s->sp.tail == HP_TAIL_OWN && s->ldp == 1;
    while (plain_tail && s->sp.n > 0 && s->sp.n <= s->stages &&
           (int64_t)s->sp.rows[s->sp.n - 1] * s->sp.cols[s->sp.n - 1] == 1)
        s->sp.n--;
}

/* Two grids at most: more have no key. */
static int cut_key(const hp_axis *a, const hp_strategy *s, int32_t *word) {
    (void)a;
    int n = 0;
    if (s->sp.n > 2) return -1;
    word[n++] = s->sp.n;
    for (int i = 0; i < s->sp.n; i++) {
        word[n++] = s->sp.rows[i];
        word[n++] = s->sp.cols[i];
    }
    return n;
}

static bool legal_tiles(const hp_legal_case *c, hp_reject *why) {
    const hp_strategy *s = c->s;
    if (s->sp.n <= s->stages) return true;
    hp_refuse(why, HP_REJECT_SP, "sp has %d entries, one per spatial stage, stages=%d", s->sp.n, s->stages);
    if (hp_legal_fits_stages(c, s->sp.n)) return hp_fix(why, "stages=%d", s->sp.n);
    return hp_fix(why, "sp=%dx%d", s->sp.rows[0], s->sp.cols[0]);
}

const hp_axis hp_axis_sp = {.name = "sp",
                            .example = "sp=2x2:1x2",
                            .usual = "none",
                            .means = "tiles (rows x columns) of the spatial stages, which are the first "
                                     "ones: an entry for each; with stages=1 the whole network is tiled",
                            .alias = {{"spatial", "sp=2x2"}},
                            .parse = parse_grids,
                            .print = print_grids,
                            .omits = has_no_tiles,
                            .settle = settle,
                            .cut_key = cut_key,
                            .legal = legal_tiles};
