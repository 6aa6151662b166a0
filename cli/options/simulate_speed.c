/* simulate_speed.c - the age of the cost table, the processor it was measured on, and the speed for which it
 * predicts: the usual one of its calibration, or the current one (--check-speed). */
#include "cli/launch/speed_check.h"
#include "cli/options/simulate.h"
#include "costmodels/cost_speed.h"
#include "base/host.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const double CHECK_S = 2;

static bool is_at_hand(const simulate_setup *s) {
    return s->machine.device.is_cpu && hp_device_of_machine(s->machine.name);
}

/* --- the table --- */

/* Days since "YYYY-MM-DD", -1: no such date. */
static int days_since(const char *date) {
    struct tm tm = {0};
    if (sscanf(date, "%4d-%2d-%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday) != 3) return -1;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    const double days = difftime(time(NULL), timegm(&tm)) / 86400;
    return days < 0 ? 0 : (int)days;
}

static bool has_yardsticks(const hp_cost_table *t) {
    for (int i = 0; i < t->n; i++)
        if (t->row[i].kind == HP_ROW_YARDSTICK) return true;
    return false;
}

simulate_costs simulate_costs_of(const hp_cost_table *t) {
    char here[128];
    const char *measured = hp_cost_processor(t);
    return (simulate_costs){.days = *measured ? days_since(t->date) : -1,
                            .measured = *measured != 0,
                            .here = strcmp(hp_host_processor(here, sizeof here), measured) == 0,
                            .has_speed = has_yardsticks(t)};
}

/* The mean of logarithms: as much slower in one class as faster in another is as fast. */
double simulate_mean_slowdown(const hp_speed *s, const hp_speed *against) {
    double sum = 0;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) sum += log(s->slowdown[y] / against->slowdown[y]);
    return exp(sum / HP_SPEED_CLASSES);
}

/* A home folder that several machines share has one table for all of them. */
static void note_processor(const simulate_setup *s) {
    char here[128], plain[2][128];
    const char *measured = hp_cost_processor(s->costs.table);
    if (!is_at_hand(s) || !*measured) return;
    hp_host_processor(here, sizeof here);
    if (strcmp(here, measured) != 0)
        fprintf(stderr, "hplan: note: %s was measured on %s, this is %s: hplan calibrate\n",
                hp_cost_origin(s->costs.table), cli_plain(measured, plain[0], sizeof plain[0]),
                cli_plain(here, plain[1], sizeof plain[1]));
}

/* --- the speed now --- */

/* Number of ranks that compute at a time in the largest plan asked for. */
static int ranks_of(const simulate_setup *s) {
    int most = s->curves.has_strategy ? hp_strategy_ranks(&s->curves.strategy) : 1;
    for (int i = 0; i < s->curves.n_count; i++) most = s->curves.count[i] > most ? s->curves.count[i] : most;
    const int cores = s->machine.cores_per_node > 0 ? s->machine.cores_per_node : s->machine.devices_per_node;
    return most < cores ? most : cores;
}

static hp_status speed_of(const hp_cost_table *t, const char *class, const speed_check *c, hp_speed *now,
                          hp_error *err) {
    const double there = isnan(c->availability) ? 1 : fmin(1, c->availability);
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const hp_row *row = hp_yardstick_row(t, class, (hp_yardstick)y, c->ranks);
        if (!row || isnan(c->seconds[y]))
            return hp_fail(err, HP_EUNAVAIL,
                           "--check-speed: %s has no yardstick %s of %d rank%s to hold this machine against: "
                           "hplan calibrate",
                           hp_cost_origin(t), hp_yardstick_names[y], c->ranks, c->ranks == 1 ? "" : "s");
        now->slowdown[y] = c->seconds[y] / row->y[HP_YARDSTICK_QUIET] / there;
    }
    return HP_OK;
}

static hp_status check_speed(hp_arena *arena, simulate_setup *s, hp_error *err) {
    speed_check c;
    if (!is_at_hand(s))
        return hp_fail(err, HP_EUSAGE,
                       "--check-speed is of this machine's cores, the plan is for %s: leave it out",
                       s->machine.name);
    if (!has_yardsticks(s->costs.table))
        return hp_fail(err, HP_EUNAVAIL, "--check-speed: %s has no yardsticks: hplan calibrate",
                       hp_cost_origin(s->costs.table));
    HP_TRY(speed_check_run(ranks_of(s), CHECK_S, &c, err));
    HP_TRY(speed_of(s->costs.table, s->machine.device.name, &c, &s->costs.now, err));
    s->costs.usual = *hp_cost_speed(s->costs.table);
    s->costs.checked = true;
    s->costs.table = hp_cost_at(arena, s->costs.table, &s->costs.now);
    return HP_OK;
}

hp_status simulate_choose_speed(hp_arena *arena, const simulate_options *o, simulate_setup *s,
                                hp_error *err) {
    note_processor(s);
    if (o->costs.check_speed) HP_TRY(check_speed(arena, s, err));
    s->eval.table = s->costs.table;
    return HP_OK;
}
