/* interval.c - converts variances to intervals and ties; the table's rows about its own errors. */
#include "sim/results/interval.h"

#include "costmodels/error_fit.h"
#include "costmodels/jitter_fit.h"
#include "costmodels/cost_speed.h"
#include "costmodels/cost_yardstick.h"

#include <math.h>

double hp_interval_jitter(const hp_jitter_process *p, double step_s, double variance) {
    const double alone = variance / HP_INTERVAL_STEPS;
    if (p->cv <= 0) return alone;
    const double x = step_s / p->tau_s;
    return fmax(alone, variance * hp_jitter_averaged(HP_INTERVAL_STEPS * x) / hp_jitter_averaged(x));
}

void hp_interval(const hp_uncertainty *u, double step_s, double *low_s, double *high_s) {
    static const double MOST = 100;
    const double half = HP_INTERVAL_Z * sqrt(u->model + u->costs + u->jitter + u->drift + u->draws);
    const bool known = half <= log(MOST);
    *low_s = known ? step_s * exp(-half) : 0;
    *high_s = known ? step_s * exp(half) : 0;
}

bool hp_interval_tie(const hp_predicted *a, const hp_predicted *b) {
    const hp_uncertainty *x = &a->uncertainty, *y = &b->uncertainty;
    if (a->step_s <= 0 || b->step_s <= 0) return false;
    const double model = hp_exposure_distance(a->exposure, b->exposure) * (x->model + y->model);
    const double variance = model + hp_exposure_apart(a->exposure, b->exposure) + x->draws + y->draws;
    return fabs(log(a->step_s / b->step_s)) <= HP_INTERVAL_Z * sqrt(variance);
}

/* --- the table about itself --- */

double hp_interval_model(const hp_cost_table *t, const hp_machine *m, double step_s, bool crowded) {
    /* A table that was measured here but never compared with runs, because the machine was never undisturbed.
     * For networks of which such tables had measured at least 80 % (tests/accuracy/others.py, seeds 11 and
     * 12), errors were 0.21 to 0.60. */
    static const double DISTURBED = 0.25;
    const hp_row *row = hp_rows_find(t, HP_ROW_ERROR, m->device.name, "step");
    hp_step_error e = row ? (hp_step_error){row->y[0], row->y[1]} : hp_error_prior;
    if (!row && hp_yardstick_row(t, m->device.name, HP_YARD_ARITH, 1)) e.relative = DISTURBED;
    const double known = hypot(hypot(hp_error_at(&e, step_s), HP_LATER_RMS), crowded ? HP_CROWDED_RMS : 0);
    bool guessed = false;
    for (int k = 0; k < hp_machine_classes(m); k++) guessed = guessed || hp_machine_class(m, k)->guessed;
    return hypot(known, guessed ? HP_GUESSED_RMS : 0);
}

/* Mean over the classes that may limit a processor, with the largest measured number of ranks. */
double hp_interval_drift(const hp_cost_table *t, const hp_machine *m, int ranks) {
    double sum = 0;
    int n = 0;
    for (int y = 0; y < HP_SPEED_CLASSES; y++) {
        const hp_row *row = hp_yardstick_row(t, m->device.name, (hp_yardstick)y, ranks);
        if (!row) continue;
        sum += row->y[HP_YARDSTICK_SPREAD];
        n++;
    }
    return n ? sum / n : 0;
}
