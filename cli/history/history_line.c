/* history_line.c - the history's figures as text. */
#include "cli/history/history_line.h"
#include "cli/history/history_speed.h"
#include "base/text.h"
#include "networks/nets/nets.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

static bool is_outside(const hp_ledger_entry *e) {
    const double measured_s = e->equal_speed_s > 0 ? e->equal_speed_s : e->measured_s;
    return e->low_s > 0 && (measured_s < e->low_s || measured_s > e->high_s);
}

/* `calibrate` does not know the name of an imported model. */
static void set_again(const hp_ledger_entry *e, char *out, size_t n) {
    const hp_net_row *row;
    hp_net_args args;
    const bool known = hp_net_parse(e->net, &row, &args, NULL) == HP_OK, gpu = strcmp(e->device, "cuda") == 0;
    const bool of_image = known && args.seq == 0; /* a text network's name says its size */
    const hp_text text = {out, n};
    *out = '\0';
    hp_text_add(text, "hplan calibrate%s", gpu ? " --device cuda" : "");
    if (known) hp_text_add(text, " --net %.60s", e->net);
    if (of_image) hp_text_add(text, " --image %.20s", e->image);
    if (known)
        hp_text_add(text, " --batch %lld%s", (long long)e->batch,
                    strcmp(e->mode, "infer") == 0 ? " --mode infer" : "");
}

history_figures history_sum(const hp_ledger_entry *e, int n, const char *here, bool *use) {
    history_figures f = {.drift = NAN};
    for (int i = 0; i < n; i++) {
        use[i] = hp_ledger_comparable(&e[i], here);
        if (use[i] && e[i].equal_speed_s > 0) {
            f.drift = e[i].measured_s / e[i].equal_speed_s;
            history_date(e[i].started, f.when);
        }
        if (use[i] && is_outside(&e[i])) set_again(&e[i], f.again, sizeof f.again);
        if (use[i]) continue;
        const bool uncalibrated = strcmp(e[i].processor, here) == 0 && !*e[i].cost_processor;
        f.uncalibrated += uncalibrated;
        f.elsewhere += !uncalibrated;
    }
    f.raw = hp_ledger_sum(e, n, use, false);
    f.equal = hp_ledger_sum(e, n, use, true);
    return f;
}

bool history_covers(const history_figures *f) {
    static const double COVERED = 0.9, SELDOM = 0.01;
    const hp_ledger_figures *l = f->equal.n_interval ? &f->equal : &f->raw;
    const int n = l->n_interval, inside = (int)lround(l->covered * n);
    return n == 0 || gsl_cdf_binomial_P((unsigned)inside, COVERED, (unsigned)n) >= SELDOM;
}

/* "median error 3.8%, 90% intervals covered 93%" */
static void print_figures(FILE *out, const hp_ledger_figures *f) {
    fprintf(out, "median error %.1f%%", 100 * f->median_error);
    if (f->n_interval) fprintf(out, ", 90%% intervals covered %.0f%%", 100 * f->covered);
}

static void print_line(FILE *out, const history_figures *f) {
    if (f->raw.n) {
        fprintf(out, "%d run%s: ", f->raw.n, f->raw.n == 1 ? "" : "s");
        print_figures(out, &f->raw);
    } else {
        fprintf(out, "no runs yet that were predicted with a calibration of this machine");
    }
    if (f->equal.n) {
        fprintf(out, "; at equal machine speed");
        if (f->equal.n < f->raw.n) fprintf(out, " (%d of them)", f->equal.n);
        fprintf(out, " ");
        print_figures(out, &f->equal);
    }
}

const char *history_line(const history_figures *f, char out[HISTORY_LINE]) {
    out[0] = '\0';
    FILE *stream = fmemopen(out, HISTORY_LINE, "w");
    if (!stream) return out;
    print_line(stream, f);
    fclose(stream);
    return out;
}

const char *history_drift(const history_figures *f, char out[HISTORY_LINE]) {
    char ratio[32];
    if (isnan(f->drift))
        snprintf(out, HISTORY_LINE,
                 "not known: no run yet that was predicted with yardsticks of this machine");
    else
        snprintf(out, HISTORY_LINE, "the machine was %s %s predicted for in the run of %s UTC",
                 run_speed_ratio(f->drift, ratio), run_speed_than(f->drift), f->when);
    return out;
}

const char *history_date(const char *started, char out[32]) {
    snprintf(out, 32, "%.16s", started);
    if (strlen(out) > 10 && out[10] == 'T') out[10] = ' ';
    return out;
}

static json_t *figures_json(const hp_ledger_figures *f) {
    return json_pack("{s:i, s:o, s:o, s:o, s:i, s:o}", "runs", f->n, "median_error",
                     cli_json_number(f->median_error), "bias_log", cli_json_number(f->bias_log), "rms_log",
                     cli_json_number(f->rms_log), "intervals", f->n_interval, "covered",
                     cli_json_number(f->covered));
}

json_t *history_json(const history_figures *f) {
    return json_pack("{s:o, s:o, s:o, s:i, s:i}", "drift", cli_json_number(f->drift), "measured",
                     figures_json(&f->raw), "equal_speed", figures_json(&f->equal), "uncalibrated",
                     f->uncalibrated, "elsewhere", f->elsewhere);
}
