/* shisha_show.c - shows what was tried, which stage was slowest, and the cost. */
#include "cli/race/race_shisha.h"

#include "base/units.h"

static const char *const ends[] = {[SHISHA_ALPHA] = "no gain for as many tries as --alpha says",
                                   [SHISHA_CIRCLE] = "the next cut had run before",
                                   [SHISHA_TIME] = "the time is over",
                                   [SHISHA_STUCK] = "the slowest stage has one unit",
                                   [SHISHA_FULL] = "too many tries"};

void shisha_print(const shisha *s) {
    char a[32], b[32];
    printf("  # %-24s %10s %10s  compute of each stage\n", "cut", "step", "predicted");
    for (int i = 0; i < s->n; i++) {
        const shisha_try *it = &s->tried[i];
        printf("%c%2d %-24s %10s %10s ", i == s->best ? '*' : ' ', i + 1, it->cut,
               hp_format_seconds(it->step_s, a), hp_format_seconds(it->predicted_s, b));
        for (int k = 0; k < s->stages; k++) printf(" %s", hp_format_seconds(it->stage_s[k], a));
        printf("\n");
    }
    const shisha_try *best = &s->tried[s->best];
    printf("best: cut=%s, %.2fx as fast as the plan's own; found after %s, %d configurations\n", best->cut,
           s->tried[0].step_s / best->step_s, hp_format_seconds(s->spent_s, a), s->n);
    printf("stopped: %s\n", ends[s->end]);
}

json_t *shisha_json(const shisha *s) {
    json_t *tried = json_array();
    for (int i = 0; i < s->n; i++) {
        const shisha_try *it = &s->tried[i];
        json_t *stages = json_array();
        for (int k = 0; k < s->stages; k++) json_array_append_new(stages, json_real(it->stage_s[k]));
        json_array_append_new(tried, json_pack("{s:s, s:f, s:f, s:f, s:o}", "cut", it->cut, "step_s",
                                               it->step_s, "predicted_s", it->predicted_s, "spent_s",
                                               it->spent_s, "stage_s", stages));
    }
    return json_pack("{s:i, s:o, s:i, s:f, s:s, s:b}", "schema", 1, "tried", tried, "best", s->best,
                     "spent_s", s->spent_s, "stopped", ends[s->end], "wrote", (int)s->wrote);
}
