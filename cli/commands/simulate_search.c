/* simulate_search.c - runs the search of `simulate` for each count and precision and shows its progress; ^C
 * ends it with the best plan so far. */
#include "cli/commands/simulate_search.h"
#include "base/parallel.h"
#include "base/units.h"

#include <string.h>

enum { MOST_CLIENTS = 4 }; /* processes on a device: what AccDP published */

/* Codes come once, but for lack of memory: with tiles and without (sim/search/search.c). */
static bool same_reason(const hp_rejected *a, const hp_rejected *b) {
    return a->code == b->code && !strstr(a->example, "sp=") == !strstr(b->example, "sp=");
}

void simulate_add_rejects(hp_arena *arena, simulate_found *f, const hp_rejected *r, int n) {
    hp_rejected *all = HP_NEW(arena, hp_rejected, f->without.n_rejected + n);
    if (f->without.n_rejected) memcpy(all, f->without.rejected, sizeof *all * (size_t)f->without.n_rejected);
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < f->without.n_rejected && !same_reason(&all[k], &r[i])) k++;
        if (k < f->without.n_rejected)
            all[k].count += r[i].count;
        else
            all[f->without.n_rejected++] = r[i];
    }
    f->without.rejected = all;
}

/* The best of the searches of one count, in several precisions. */
static void add_promising(simulate_found *f, const hp_open_strategy *o) {
    int at = f->unseen.n_promising;
    while (at > 0 && o->estimate_s < f->unseen.promising[at - 1].estimate_s) at--;
    if (at == HP_OPEN_LISTED) return;
    if (f->unseen.n_promising < HP_OPEN_LISTED) f->unseen.n_promising++;
    for (int i = f->unseen.n_promising - 1; i > at; i--) f->unseen.promising[i] = f->unseen.promising[i - 1];
    f->unseen.promising[at] = *o;
}

/* The gap of the worst of several searches. */
static void note_open(const simulate_setup *s, const hp_search_result *r, simulate_found *f) {
    const double gap = hp_search_gap(r, s->search.sort);
    if (gap > f->unseen.gap) f->unseen.gap = gap;
    for (int i = 0; i < r->n_promising; i++) add_promising(f, &r->promising[i]);
}

/* Searches in the current precision; candidates of this count begin at `first`. */
static hp_status search_precision(hp_arena *arena, const simulate_setup *s, int gpus, int first,
                                  simulate_found *f, hp_error *err) {
    const int64_t asked = simulate_batch(s, gpus), batch = asked ? asked : gpus;
    hp_eval *e = simulate_eval(arena, s, batch);
    const hp_space space = {.graph = s->network.graph,
                            .mode = s->step.mode,
                            .batch = batch,
                            .n_devices = gpus,
                            .no_recompute =
                                s->eval.eager, /* it keeps everything; --strategy may ask for it */
                            .most_clients = s->machine.share_cpu ? 1 : MOST_CLIENTS};
    hp_search_result r;
    HP_TRY(hp_search(arena, hp_eval_get(e), &space, &s->search, &r, err));
    note_open(s, &r, f);
    f->tally.searched += r.searched;
    f->tally.valid += r.valid;
    f->tally.simulated += r.simulated;
    f->tally.cut_off += r.cut_off;
    f->tally.open += r.open;
    f->tally.stopped |= r.stopped;
    simulate_add_rejects(arena, f, r.rejected, r.n_rejected);
    f->without.nearest = simulate_nearest(f->without.nearest, r.rejected, r.n_rejected);
    hp_evaluation *all = HP_NEW(arena, hp_evaluation, f->n + r.n);
    if (f->n) memcpy(all, f->list, sizeof *all * (size_t)f->n);
    if (r.n) memcpy(all + f->n, r.best, sizeof *all * (size_t)r.n);
    hp_search_rank(all + first, f->n - first + r.n, s->search.sort);
    if (f->gpus == 0 ||
        (r.n > 0 && (f->n == 0 || gpus >= f->gpus))) { /* the largest count decides what is run */
        f->gpus = gpus;
        f->batch = batch;
        f->chosen = first;
        f->without.absent = r.absent;
        f->without.n_absent = r.n_absent;
        f->without.plain = r.plain;
    }
    f->list = all;
    f->n += r.n;
    return HP_OK;
}

/* A count that the machine does not have: a point with that as its reason. */
static void add_beyond(hp_arena *arena, const simulate_setup *s, int gpus, simulate_found *f) {
    const int64_t asked = simulate_batch(s, gpus);
    const int devices = hp_machine_devices(&s->machine);
    hp_rejected *r = HP_NEW(arena, hp_rejected, 1);
    *r = (hp_rejected){.code = HP_REJECT_GPUS, .count = 1};
    snprintf(r->example, sizeof r->example, "dp=%d", gpus);
    snprintf(r->limit, sizeof r->limit, "%d devices, %s has %d", gpus, s->machine.name, devices);
    snprintf(r->fix, sizeof r->fix, "--gpus %d", devices);
    simulate_add_rejects(arena, f, r, 1);
    simulate_add_point(arena, f, "", gpus, asked ? asked : gpus)->why = r;
}

static hp_status search_count(hp_arena *arena, simulate_setup *s, int gpus, simulate_found *f,
                              hp_error *err) {
    const int first = f->n;
    const int64_t asked = simulate_batch(s, gpus);
    f->without.nearest = NULL;
    f->unseen.n_promising = 0;
    if (!s->machine.device.is_cpu && gpus > hp_machine_devices(&s->machine)) {
        add_beyond(arena, s, gpus, f);
        return HP_OK;
    }
    for (int i = 0; i < s->network.n_prec; i++) {
        HP_TRY(simulate_precision(arena, s, s->network.prec[i], err));
        HP_TRY(search_precision(arena, s, gpus, first, f, err));
    }
    if (f->tally.stopped && f->n == first) return HP_OK;
    simulate_point *p = simulate_add_point(arena, f, "", gpus, asked ? asked : gpus);
    p->plan = f->n > first ? &f->list[first] : NULL;
    p->why = f->without.nearest;
    return HP_OK;
}

/* --- progress, and ^C --- */

/* What ends a search: the user, or a first plan where any will do. */
enum { ENDED_BY_USER = 1, ENDED_BY_PLAN };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = ENDED_BY_USER;
}

typedef struct meter {
    cli_progress bar;
    const char *phase;
    bool any;
} meter;

static void show(void *self, const hp_search_progress *p) {
    meter *m = self;
    char best[64] = "", time[32];
    if (m->any && p->best) interrupted = ENDED_BY_PLAN;
    if (p->phase != m->phase) {
        if (m->phase) cli_progress_end(&m->bar);
        cli_progress_start(&m->bar, p->phase, (long)p->total);
        m->phase = p->phase;
    }
    if (p->best) {
        const hp_candidate *c = &p->best->figures;
        snprintf(best, sizeof best, "best %s", hp_format_seconds(c->step_s, time));
    }
    cli_progress_update(&m->bar, (long)p->done, best);
}

hp_status simulate_search(hp_arena *arena, simulate_setup *s, simulate_found *f, hp_error *err) {
    meter m = {.any = s->any};
    struct sigaction before, act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
    hp_status status = HP_OK;
    interrupted = 0;
    s->search.threads = hp_parallel_threads();
    s->search.stop = &interrupted;
    s->search.progress = show;
    s->search.self = &m;
    sigaction(SIGINT, &act, &before);
    for (int i = 0; i < s->curves.n_count && status == HP_OK; i++)
        status = search_count(arena, s, s->curves.count[i], f, err);
    sigaction(SIGINT, &before, NULL);
    if (m.phase) cli_progress_end(&m.bar);
    f->tally.stopped = interrupted == ENDED_BY_USER;
    return status;
}

/* --- several image sizes, each with its own network; the last is the plan --- */

static hp_status find_one(hp_arena *arena, const simulate_options *o, simulate_sizes *sizes, hp_error *err) {
    simulate_setup s;
    simulate_found f = {0};
    HP_TRY(simulate_prepare(arena, o, &s, err));
    HP_TRY(simulate_find(arena, &s, &f, err));
    if (f.tally.stopped)
        return hp_fail(err, (hp_status)(128 + SIGINT), "stopped at --image %s", o->network.image);
    simulate_add_size(&s, &f, sizes);
    return HP_OK;
}

hp_status simulate_earlier_sizes(hp_arena *arena, simulate_options *o, simulate_sizes *sizes, hp_error *err) {
    simulate_options one = *o;
    if (!o->network.image || !strchr(o->network.image, ',')) return HP_OK;
    char *rest = hp_arena_strdup(arena, o->network.image);
    for (char *comma; (comma = strchr(rest, ',')) != NULL; rest = comma + 1) {
        *comma = '\0';
        one.network.image = rest;
        if (sizes->n + 1 == SIM_MAX_COUNTS)
            return hp_fail(err, HP_EUSAGE, "--image: at most %d sizes", SIM_MAX_COUNTS);
        HP_TRY(find_one(arena, &one, sizes, err));
    }
    o->network.image = rest;
    return HP_OK;
}

void simulate_add_size(const simulate_setup *s, const simulate_found *f, simulate_sizes *sizes) {
    simulate_size *z = &sizes->size[sizes->n++];
    *z = (simulate_size){.gpus = f->gpus, .batch = f->batch, .plan = f->n ? &f->list[f->chosen] : NULL};
    snprintf(z->image, sizeof z->image, "%dx%d", s->network.image_h, s->network.image_w);
    if (!f->n) z->why = simulate_nearest(NULL, f->without.rejected, f->without.n_rejected);
}
