/* simulate_counts.c - what a simulation sweeps over: counts of devices, the batch of each, strategies. Also
 * defines an epoch. */
#include "cli/options/simulate.h"

#include "base/counts.h"
#include "base/units.h"
#include "plan/strategy/template.h"

#include <string.h>

static const int64_t MOST_BATCH = INT64_C(1) << 40;

/* Training splits of data sets that `run --data` takes by name: Xiao, Rasul and Vollgraf 2017. */
static const struct {
    const char *name;
    int64_t samples;
} data_sets[] = {{"fashion-mnist", 60000}};

static hp_status parse_data(const char *name, int64_t *samples, hp_error *err) {
    for (size_t i = 0; i < sizeof data_sets / sizeof *data_sets; i++) {
        if (strcmp(name, data_sets[i].name) != 0) continue;
        *samples = data_sets[i].samples;
        return HP_OK;
    }
    return hp_fail(err, HP_EUSAGE,
                   "--data '%.60s': only the size of fashion-mnist is known; give --samples N", name);
}

static hp_status parse_epoch(const simulate_options *o, simulate_setup *s, hp_error *err) {
    if (o->epoch.samples && o->epoch.data)
        return hp_fail(err, HP_EUSAGE, "--samples and --data both say how long an epoch is: give one");
    if (o->epoch.samples)
        HP_TRY(hp_parse_int(o->epoch.samples, "--samples", 1, INT64_C(1) << 50, &s->epoch.samples, err));
    if (o->epoch.data) HP_TRY(parse_data(o->epoch.data, &s->epoch.samples, err));
    if (o->epoch.price && !s->epoch.samples)
        return hp_fail(err, HP_EUSAGE, "--price is of the hours that an epoch takes: give --samples N too");
    return o->epoch.price ? hp_parse_double(o->epoch.price, "--price", 1e-6, 1e6, &s->epoch.price, err)
                          : HP_OK;
}

static hp_status parse_batch(const simulate_options *o, simulate_setup *s, hp_error *err) {
    if (!o->step.batch_per_gpu) return HP_OK;
    if (o->step.batch)
        return hp_fail(
            err, HP_EUSAGE,
            "--batch is the same for all counts of --gpus, --batch-per-gpu grows with them: give one");
    return hp_parse_int(o->step.batch_per_gpu, "--batch-per-gpu", 1, MOST_BATCH >> 20, &s->step.batch_per_gpu,
                        err);
}

static hp_status parse_strategies(const simulate_options *o, simulate_setup *s, hp_error *err) {
    s->curves.has_strategy = o->strategy != NULL;
    if (!o->strategy) return HP_OK;
    if (!o->sweeps) return hp_strategy_parse(o->strategy, &s->curves.strategy, err);
    if (o->n_more >= SIM_MAX_STRATEGIES)
        return hp_fail(err, HP_EUSAGE, "--strategy: more than %d of them; leave some out",
                       SIM_MAX_STRATEGIES);
    s->curves.template[s->curves.n_template++] = o->strategy;
    for (int i = 0; i < o->n_more; i++) s->curves.template[s->curves.n_template++] = o->more[i];
    for (int i = 0; i < s->curves.n_template; i++) {
        HP_TRY(hp_template_check(s->curves.template[i], err));
        s->curves.sweep |= hp_template_has_star(s->curves.template[i]);
    }
    return hp_template_smallest(s->curves.template[0], &s -> curves.strategy, err);
}

hp_status simulate_parse_curves(const simulate_options *o, simulate_setup *s, hp_error *err) {
    if (o->machine.gpus)
        HP_TRY(hp_parse_counts(o->machine.gpus, "--gpus", SIM_MAX_COUNTS, s->curves.count, &s->curves.n_count,
                               err));
    HP_TRY(parse_batch(o, s, err));
    HP_TRY(parse_strategies(o, s, err));
    s->curves.sweep |= s->curves.n_count > 1 || s->curves.n_template > 1;
    return parse_epoch(o, s, err);
}

int64_t simulate_batch(const simulate_setup *s, int gpus) {
    return s->step.batch_per_gpu ? s->step.batch_per_gpu * gpus : s->step.batch;
}
