/* ledger_figures.c - the quality of predictions: errors and coverage over the runs of a history. */
#include "traces/ledger.h"
#include "base/alloc.h"

#include "machines/device/device_kind.h"
#include "traces/query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool hp_ledger_comparable(const hp_ledger_entry *e, const char *processor) {
    return strcmp(e->processor, processor) == 0 && strcmp(e->cost_processor, processor) == 0 &&
           hp_device_of_machine(e->machine) != NULL;
}

static double measured_of(const hp_ledger_entry *e, bool equal_speed) {
    return equal_speed ? e->equal_speed_s : e->measured_s;
}

hp_ledger_figures hp_ledger_sum(const hp_ledger_entry *e, int n, const bool *use, bool equal_speed) {
    hp_ledger_figures f = {.n = 0};
    double *error = hp_zeroed((size_t)n + 1, sizeof *error), sum = 0, squares = 0;
    int inside = 0;
    for (int i = 0; i < n; i++) {
        const double measured_s = measured_of(&e[i], equal_speed);
        if ((use && !use[i]) || !(measured_s > 0)) continue;
        const double off = log(e[i].predicted_s / measured_s);
        error[f.n++] = fabs(e[i].predicted_s / measured_s - 1);
        sum += off;
        squares += off * off;
        if (!(e[i].low_s > 0 && e[i].high_s >= e[i].low_s)) continue;
        f.n_interval++;
        inside += measured_s >= e[i].low_s && measured_s <= e[i].high_s;
    }
    f.bias_log = f.n ? sum / f.n : NAN;
    f.rms_log = f.n ? sqrt(squares / f.n) : NAN;
    f.covered = f.n_interval ? (double)inside / f.n_interval : NAN;
    f.median_error = hp_median(error, f.n);
    free(error);
    return f;
}
