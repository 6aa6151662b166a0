/* rates.c - see rates.h. Defaults are those of torch.optim, except for gradient descent: momentum 0.9 and a
 * learning rate of 0.01. */
#include "exec/train/rates.h"

#include "base/units.h"
#include "networks/graph/optimizer.h"

#include <string.h>

typedef struct row {
    const char *option;
    int32_t optimizer; /* whose it is alone; -1: everyone's */
    size_t word, to;   /* in hp_rate_words, in hp_rates */
    double low, high;
} row;

#define OF(name) offsetof(hp_rate_words, name), offsetof(hp_rates, name)
static const row ROWS[] = {{"--momentum", HP_SGD, OF(momentum), 0, 1},
                           {"--weight-decay", -1, OF(weight_decay), 0, 1e6},
                           {"--adam-eps", HP_ADAMW, OF(eps), 0, 1},
                           {"--clip-norm", -1, OF(clip_norm), 0, 1e30}};

static hp_status check_owner(const row *r, const hp_graph *g, hp_error *err) {
    if (r->optimizer < 0 || r->optimizer == g->optimizer) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "%s is of %s, the plan trains by %s: hplan simulate --optimizer %s",
                   r->option, hp_optimizer_infos[r->optimizer].name, hp_optimizer_of(g)->name,
                   hp_optimizer_infos[r->optimizer].name);
}

/* "0.9,0.999" */
static hp_status parse_betas(const char *text, const hp_graph *g, hp_rates *r, hp_error *err) {
    const row of = {"--betas", HP_ADAMW, 0, 0, 0, 1};
    char first[32];
    HP_TRY(check_owner(&of, g, err));
    const char *comma = strchr(text, ',');
    if (!comma || comma - text >= (int)sizeof first)
        return hp_fail(err, HP_EUSAGE, "--betas '%.40s' are not two numbers, for example 0.9,0.95", text);
    snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
    HP_TRY(hp_parse_double(first, "--betas", 0, 1, &r->beta1, err));
    HP_TRY(hp_parse_double(comma + 1, "--betas", 0, 1, &r->beta2, err));
    if (r->beta1 < 1 && r->beta2 < 1) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--betas %.40s: both are below 1, or nothing would ever be forgotten",
                   text);
}

static hp_status check_clip(const hp_rate_words *w, const hp_graph *g, const hp_rates *r, hp_error *err) {
    if (w->clip_norm && !g->clips)
        return hp_fail(err, HP_EUSAGE,
                       "--clip-norm: the plan has no norm of the gradients: hplan simulate --clip-norm");
    if (w->clip_norm && r->clip_norm <= 0)
        return hp_fail(err, HP_EUSAGE, "--clip-norm 0: nothing would train");
    return HP_OK;
}

hp_status hp_rates_parse(const hp_rate_words *w, const hp_graph *g, hp_rates *r, hp_error *err) {
    const bool adam = g->optimizer == (int32_t)HP_ADAMW;
    double lr = adam ? 1e-3 : 1e-2;
    *r = (hp_rates){.optimizer = g->optimizer,
                    .momentum = 0.9,
                    .weight_decay = adam ? 1e-2 : 0,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .eps = 1e-8,
                    .clip_norm = g->clips ? 1 : 0};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *word = *(const char *const *)(const void *)((const char *)w + ROWS[i].word);
        if (!word) continue;
        HP_TRY(check_owner(&ROWS[i], g, err));
        HP_TRY(hp_parse_double(word, ROWS[i].option, ROWS[i].low, ROWS[i].high,
                               (double *)(void *)((char *)r + ROWS[i].to), err));
    }
    if (w->betas) HP_TRY(parse_betas(w->betas, g, r, err));
    if (w->lr) HP_TRY(hp_parse_double(w->lr, "--lr", 0, 1e6, &lr, err));
    HP_TRY(check_clip(w, g, r, err));
    return hp_lr_parse(&w->schedule, lr, &r->schedule, err);
}

void hp_rates_set(const hp_rates *r, int64_t total, hp_step *step) {
    step->lr = hp_lr_at(&r->schedule, step->step, total);
    step->momentum = r->momentum;
    step->weight_decay = r->weight_decay;
    step->beta1 = r->beta1;
    step->beta2 = r->beta2;
    step->eps = r->eps;
    step->clip_norm = r->clip_norm;
}
