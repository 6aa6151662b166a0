/* grids.c - reads and writes `sp`: a grid of tiles per spatial stage. */
#include "plan/strategy/grids.h"

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

hp_status hp_grids_parse(const char *value, hp_strategy *s, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%s", value);
    s->n_sp = 0;
    if (strcmp(value, NO_TILES) == 0) return HP_OK;
    for (char *part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
        if (s->n_sp == HP_MAX_SPATIAL)
            return hp_fail(err, HP_EUSAGE, "strategy: sp has more than %d entries", HP_MAX_SPATIAL);
        HP_TRY(parse_grid(part, &s->sp_rows[s->n_sp], &s->sp_cols[s->n_sp], err));
        s->n_sp++;
    }
    return HP_OK;
}

void hp_grids_text(const hp_strategy *s, char *out) {
    if (!s->n_sp) strcpy(out, NO_TILES);
    for (int i = 0; i < s->n_sp; i++)
        snprintf(out + strlen(out), HP_STRATEGY_TEXT - strlen(out), "%s%dx%d", i ? ":" : "", s->sp_rows[i],
                 s->sp_cols[i]);
}
