/* race_round.c - one round of one candidate: starts hplan-exec and reads its steps. */
#include "cli/race/race.h"

#include "base/clock.h"
#include "traces/trace_text.h"

#include <math.h>

enum {
    WARM_UP = 1, /* the first step touches its memory for the first time */
    FEWEST = 3,  /* steps that are counted */
    MOST = 10000
};

typedef struct listener {
    double *step_s;
    int n, room;
    double sum_s; /* with the warm-up */
} listener;

static hp_status read_line(void *self, const char *line, hp_error *err) {
    listener *l = self;
    json_t *o = json_loads(line, 0, NULL);
    const bool object = json_is_object(o);
    if (json_object_get(o, "step")) {
        const double s = json_number_value(json_object_get(o, "step_s"));
        l->sum_s += s;
        if (json_integer_value(json_object_get(o, "step")) > WARM_UP && l->n < l->room && s > 0)
            l->step_s[l->n++] = s;
    }
    json_decref(o);
    return object
               ? HP_OK
               : hp_fail(err, HP_EINTERNAL, "hplan-exec wrote a line that is not a JSON object: %.80s", line);
}

/* Can only this candidate not run, while others may? A rank is killed if memory runs out. */
static bool is_its_own(hp_status s) {
    return s == HP_EPLAN || s == HP_EDATA || s == HP_EUNAVAIL || s == HP_EDEAD || s == HP_ESTALL ||
           s == HP_EINTERNAL;
}

static int steps_of(const race_options *o, const race_entry *e, double target_s) {
    if (o->steps) return (int)o->steps;
    const double n = ceil(target_s / e->expected_s);
    return n > MOST ? MOST : n < FEWEST ? FEWEST : (int)n;
}

/* Rounds are stored as runs only on request: merging them takes time that could be used for measuring. */
static hp_status start(const race_options *o, race_entry *e, cli_launch *l, hp_error *err) {
    bool recorded = false;
    if (o->keep) return workspace_run(&e->work, &e->plan, l, &recorded, err);
    l->plan = e->work.db;
    l->scratch = e->work.dir;
    l->ranks = hp_program_ranks(e->plan.program);
    l->on_gpus = hp_device_on_gpu(e->plan.device);
    return cli_launch_run(l, err);
}

hp_status race_round(hp_arena *arena, const race_options *o, race_entry *e, double target_s, double *step_s,
                     hp_error *err) {
    const int steps = steps_of(o, e, target_s);
    hp_arena *scratch = hp_arena_new();
    listener self = {.step_s = HP_NEW(scratch, double, steps), .room = steps};
    cli_launch l = {
        .threads = 1, .launcher = o->launcher, .hostfile = o->hostfile, .line = read_line, .self = &self};
    l.option[l.n_option++] = hp_arena_printf(scratch, "--steps=%d", steps + WARM_UP);
    /* keeps the initial weights, so that no number overflows */
    if (e->plan.mode == HP_MODE_TRAIN) l.option[l.n_option++] = "--lr=0";
    const double before_s = hp_now_s();
    hp_status s = start(o, e, &l, err);
    e->wall_s = hp_now_s() - before_s;
    e->start_s = fmax(0, e->wall_s - self.sum_s);
    if (s == HP_OK && self.n == 0) s = hp_fail(err, HP_EINTERNAL, "hplan-exec reported no step");
    if (s == HP_OK) {
        *step_s = e->expected_s = hp_pairs_round(self.step_s, self.n);
    } else if (is_its_own(s)) {
        e->out = RACE_FAILED;
        e->why = hp_text_clean(arena, err->text);
        s = HP_OK;
    }
    hp_arena_free(scratch);
    return s;
}
