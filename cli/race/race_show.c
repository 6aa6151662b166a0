/* race_show.c - a race as a table and as JSON. */
#include "cli/race/race.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

static const char *outcome_text(const race *r, int i, char out[64]) {
    const race_entry *e = &r->entry[i];
    if (i == r->winner) return "fastest";
    if (!e->measured.rounds) return "does not run";
    snprintf(out, 64, e->out == RACE_SLOWER ? "%+.1f%%" : "~%+.1f%%", 100 * e->change);
    return out;
}

static const char *interval_text(const hp_measured *m, char out[80]) {
    char low[32], high[32];
    if (m->rounds < 2) return "-";
    snprintf(out, 80, "%s to %s", hp_format_seconds(m->low_s, low), hp_format_seconds(m->high_s, high));
    return out;
}

/* Entry of a candidate by its current index; NULL: it was not selected. */
static const race_entry *entry_of(const race *r, int candidate) {
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].number - 1 == r->before[candidate]) return &r->entry[i];
    return NULL;
}

static void print_row(const race *r, int number, const race_entry *e, int width) {
    char predicted[32], measured[32] = "-", interval[80], outcome[64];
    if (e->measured.rounds) hp_format_seconds(e->measured.step_s, measured);
    printf("%3d %4d %-*s %10s %10s  %-22s %6d  %s\n", number, e->number, width, e->candidate->strategy,
           hp_format_seconds(e->candidate->step_s, predicted), measured,
           interval_text(&e->measured, interval), e->measured.rounds,
           outcome_text(r, (int)(e - r->entry), outcome));
}

static void print_table(const race *r) {
    int width = 8;
    bool tied = false;
    for (int i = 0; i < r->n; i++) {
        const race_entry *e = &r->entry[i];
        const int n = (int)strlen(e->candidate->strategy);
        width = n > width ? n : width;
        tied |= i != r->winner && e->measured.rounds && e->out != RACE_SLOWER;
    }
    printf("\n  #  was %-*s  predicted   measured  %-22s rounds  to the fastest\n", width, "strategy",
           "90% interval");
    for (int i = 0; i < r->n_candidate; i++) {
        const race_entry *e = entry_of(r, i);
        if (e) print_row(r, i + 1, e, width);
    }
    if (tied) printf("  ~not distinguishable from the fastest by these rounds\n");
}

/* "dp=2, which was number 3, is fastest: 4.48 ms +-1.0%; number 1 was 2.0% slower; 2 others not
 * distinguishable" */
static void print_sentence(const race *r) {
    const race_entry *e = &r->entry[r->winner];
    char time[32];
    int alike = 0;
    printf("%s, which was number %d, is fastest: %s", e->candidate->strategy, e->number,
           hp_format_seconds(e->measured.step_s, time));
    if (e->measured.rounds > 1) printf(" +-%.1f%%", 50 * log(e->measured.high_s / e->measured.low_s));
    for (int i = 0; i < r->n; i++) {
        const race_entry *other = &r->entry[i];
        const bool told = i == 0 && i != r->winner && other->measured.rounds;
        if (told) printf("; number %d was %.1f%% slower", other->number, 100 * other->change);
        if (told && other->out != RACE_SLOWER) printf(" (not distinguishable)");
        alike += !told && i != r->winner && other->measured.rounds && other->out != RACE_SLOWER;
    }
    if (alike) printf("; %d other%s not distinguishable", alike, alike == 1 ? "" : "s");
    printf("\n");
}

void race_print(const race *r) {
    char time[32];
    printf("\nran %d candidates in %d round%s of random order in %s\n", r->n, r->n_round,
           r->n_round == 1 ? "" : "s", hp_format_seconds(r->elapsed_s, time));
    print_table(r);
    if (r->stopped) printf("stopped: by what was measured until then\n");
    print_sentence(r);
    if (!r->settled && !r->stopped)
        printf("the time was over before the rounds could tell more: --seconds\n");
}

static json_t *entry_json(const race *r, int i) {
    static const char *const outs[] = {"in", "slower", "rested", "failed"};
    const race_entry *e = &r->entry[i];
    const hp_measured *m = &e->measured;
    return json_pack("{s:i, s:s, s:f, s:o, s:o, s:o, s:i, s:o, s:s, s:b}", "rank", e->number, "strategy",
                     e->candidate->strategy, "step_s", e->candidate->step_s, "measured_s",
                     m->rounds ? cli_json_number(m->step_s) : json_null(), "measured_low_s",
                     m->rounds ? cli_json_number(m->low_s) : json_null(), "measured_high_s",
                     m->rounds ? cli_json_number(m->high_s) : json_null(), "rounds", m->rounds, "slower",
                     m->rounds ? cli_json_number(e->change) : json_null(), "outcome", outs[e->out], "winner",
                     i == r->winner);
}

static json_t *round_json(const race *r, int round) {
    json_t *order = json_array(), *step_s = json_array();
    for (int k = 0; k < r->n; k++) {
        const int i = r->order[round * r->n + k];
        if (i < 0) continue;
        json_array_append_new(order, json_integer(r->entry[i].number));
        json_array_append_new(step_s, cli_json_number(r->step_s[round * r->n + i]));
    }
    return json_pack("{s:o, s:o}", "order", order, "step_s", step_s);
}

json_t *race_json(const race *r) {
    json_t *entries = json_array(), *rounds = json_array();
    for (int i = 0; i < r->n; i++) json_array_append_new(entries, entry_json(r, i));
    for (int k = 0; k < r->n_round; k++) json_array_append_new(rounds, round_json(r, k));
    return json_pack("{s:s, s:b, s:b, s:f, s:o, s:o}", "winner", r->entry[r->winner].candidate->strategy,
                     "settled", r->settled, "stopped", r->stopped, "elapsed_s", r->elapsed_s, "candidates",
                     entries, "rounds", rounds);
}
