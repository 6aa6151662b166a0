/* lr_schedule.c - see lr_schedule.h. */
#include "exec/train/lr_schedule.h"

#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double constant(double done) {
    (void)done;
    return 1;
}

static double cosine(double done) {
    return (1 + cos(acos(-1) * done)) / 2;
}

static double linear(double done) {
    return 1 - done;
}

static const struct {
    const char *name;
    double (*left)(double done);
    bool falls;
} KINDS[HP_LR_KINDS] = {
#define SCHEDULE(id, name, function, falls, meaning) [HP_LR_##id] = {name, function, falls},
#include "exec/train/schedules.def"
#undef SCHEDULE
};

/* --- words --- */

static hp_status parse_kind(const char *word, hp_lr_schedule *s, hp_error *err) {
    char known[64] = "";
    for (int k = 0; k < HP_LR_KINDS; k++) {
        const size_t used = strlen(known);
        if (strcmp(KINDS[k].name, word) == 0) {
            s->kind = (hp_lr_kind)k;
            return HP_OK;
        }
        snprintf(known + used, sizeof known - used, "%s%s", k ? ", " : "", KINDS[k].name);
    }
    return hp_fail(err, HP_EUSAGE, "--lr-schedule '%.40s' is not one of %s", word, known);
}

static hp_status parse_steps(const char *list, hp_lr_schedule *s, hp_error *err) {
    char copy[HP_LR_TEXT], *rest = NULL;
    if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy)
        return hp_fail(err, HP_EUSAGE, "--lr-steps: the list is too long");
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (s->n == HP_LR_STEPS) return hp_fail(err, HP_EUSAGE, "--lr-steps: at most %d", HP_LR_STEPS);
        HP_TRY(hp_parse_int(word, "--lr-steps", 1, INT32_MAX, &s->at[s->n], err));
        if (s->n > 0 && s->at[s->n] <= s->at[s->n - 1])
            return hp_fail(err, HP_EUSAGE, "--lr-steps %.40s: each comes after the one before", list);
        s->n++;
    }
    return HP_OK;
}

static hp_status check_words(const hp_lr_words *w, const hp_lr_schedule *s, hp_error *err) {
    const bool step = s->kind == HP_LR_STEP;
    if (step && s->n == 0)
        return hp_fail(err, HP_EUSAGE, "--lr-schedule step: at which steps? --lr-steps 1000,2000");
    if (!step && (w->lr_steps || w->lr_gamma))
        return hp_fail(err, HP_EUSAGE, "--lr-steps and --lr-gamma are of --lr-schedule step");
    if (w->min_lr && !KINDS[s->kind].falls)
        return hp_fail(err, HP_EUSAGE, "--min-lr: --lr-schedule %s falls to none; give cosine or linear",
                       KINDS[s->kind].name);
    if (s->least > s->lr) return hp_fail(err, HP_EUSAGE, "--min-lr %g is above --lr %g", s->least, s->lr);
    return HP_OK;
}

hp_status hp_lr_parse(const hp_lr_words *w, double lr, hp_lr_schedule *s, hp_error *err) {
    *s = (hp_lr_schedule){.lr = lr, .gamma = 0.1};
    if (w->schedule) HP_TRY(parse_kind(w->schedule, s, err));
    if (w->warmup) HP_TRY(hp_parse_int(w->warmup, "--warmup", 0, INT32_MAX, &s->warmup, err));
    if (w->min_lr) HP_TRY(hp_parse_double(w->min_lr, "--min-lr", 0, 1e6, &s->least, err));
    if (w->lr_gamma) HP_TRY(hp_parse_double(w->lr_gamma, "--lr-gamma", 0, 1, &s->gamma, err));
    if (w->lr_steps) HP_TRY(parse_steps(w->lr_steps, s, err));
    return check_words(w, s, err);
}

/* --- rates --- */

double hp_lr_at(const hp_lr_schedule *s, int64_t step, int64_t total) {
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    double lr = s->lr;
    for (int32_t i = 0; i < s->n; i++)
        if (step >= s->at[i]) lr *= s->gamma;
    const double all = (double)(total - s->warmup), done = all > 0 ? (double)(step - s->warmup) / all : 0;
    return s->least + (lr - s->least) * KINDS[s->kind].left(done < 1 ? done : 1);
}

const char *hp_lr_text(const hp_lr_schedule *s, int64_t total, char *out) {
    size_t n = (size_t)snprintf(out, HP_LR_TEXT, "%s", KINDS[s->kind].name);
    if (s->warmup) n += (size_t)snprintf(out + n, HP_LR_TEXT - n, " warmup=%lld", (long long)s->warmup);
    if (KINDS[s->kind].falls)
        snprintf(out + n, HP_LR_TEXT - n, " min=%.9g of %lld steps", s->least, (long long)total);
    if (s->kind != HP_LR_STEP) return out;
    n += (size_t)snprintf(out + n, HP_LR_TEXT - n, " gamma=%.9g at", s->gamma);
    for (int32_t i = 0; i < s->n; i++)
        n += (size_t)snprintf(out + n, HP_LR_TEXT - n, "%c%lld", i ? ',' : ' ', (long long)s->at[i]);
    return out;
}
