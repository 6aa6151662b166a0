/* cmd_tune.c - runs the best candidates of a plan in turn and makes the fastest one the plan. */
#include "cli/race/race.h"
#include "cli/race/race_shisha.h"
#include "cli/show/frame.h"
#include "cli/show/next.h"
#include "base/units.h"

#include <string.h>

typedef struct options {
    const char *top, *seconds, *steps, *rounds, *seed, *keep, *launcher, *moves, *alpha, *quota;
    bool json;
} options;

static const frame_option OPTIONS[] = {
    {"top", 0, "K", offsetof(options, top), 0, "candidates to run (4)"},
    {"seconds", 0, "S", offsetof(options, seconds), 0, "time for all of it (60)"},
    {"steps", 0, "N", offsetof(options, steps), 0, "steps of a round (by time)"},
    {"rounds", 0, "N", offsetof(options, rounds), 0, "at most so many rounds (by time)"},
    {"seed", 0, "N", offsetof(options, seed), 0, "of the order within rounds (1)"},
    {"keep", 0, "DIR", offsetof(options, keep), 0, "keep the runs there, one run.db per candidate"},
    {"launcher", 0, "mpirun|srun|none", offsetof(options, launcher), 0, "what starts the ranks"},
    {"moves", 0, "shisha", offsetof(options, moves), 0,
     "shift units from the slowest stage to the lightest, as traces show them, instead of running "
     "candidates"},
    {"alpha", 0, "N", offsetof(options, alpha), 0,
     "with --moves: stop after so many tries without gain (10)"},
    {"quota", 0, "SHARE:..", offsetof(options, quota), 0,
     "with --moves: ranks' shares of a processor, as run has them"},
    {"json", 'j', NULL, offsetof(options, json), 0, "one JSON object"},
    {0}};

static hp_status parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                           hp_error *err) {
    return text ? hp_parse_int(text, what, low, high, value, err) : HP_OK;
}

static hp_status parse(const options *o, race_options *r, hp_error *err) {
    int64_t seed = 1;
    HP_TRY(parse_int(o->top, "--top", 2, RACE_MOST, &r->top, err));
    HP_TRY(parse_int(o->steps, "--steps", 1, 10000, &r->steps, err));
    HP_TRY(parse_int(o->rounds, "--rounds", 1, 10000, &r->rounds, err));
    HP_TRY(parse_int(o->seed, "--seed", 0, INT64_MAX, &seed, err));
    r->seed = (uint64_t)seed;
    r->keep = o->keep;
    r->launcher = o->launcher;
    return o->seconds ? hp_parse_double(o->seconds, "--seconds", 0.001, 1e6, &r->seconds, err) : HP_OK;
}

static void print_next(const race_options *o, const race *r) {
    next_command run = next_start("run");
    char plain[4096];
    int number = 0;
    while (r->before[number] != r->entry[r->winner].number - 1) number++;
    printf("wrote %s (number %d selected)\n", cli_plain(o->path, plain, sizeof plain), number + 1);
    next_word(&run, o->path);
    next_print(stdout, &run);
}

/* Options of races alone. */
static hp_status parse_moves(const options *o, shisha_options *s, hp_error *err) {
    int64_t alpha = 10, steps = 8;
    if (strcmp(o->moves, "shisha") != 0)
        return hp_fail(err, HP_EUSAGE, "--moves: '%.40s' is unknown; there is shisha", o->moves);
    if (o->top || o->rounds || o->seed || o->keep)
        return hp_fail(
            err, HP_EUSAGE,
            "--moves runs the plan's own strategy with other cuts: no --top, --rounds, --seed, --keep");
    HP_TRY(parse_int(o->alpha, "--alpha", 1, SHISHA_MOST, &alpha, err));
    HP_TRY(parse_int(o->steps, "--steps", 3, 10000, &steps, err));
    if (o->seconds) HP_TRY(hp_parse_double(o->seconds, "--seconds", 0.001, 1e6, &s->seconds, err));
    s->alpha = (int)alpha;
    s->steps = (int)steps;
    s->launcher = o->launcher;
    s->quota = o->quota;
    return HP_OK;
}

static hp_status tune_stages(frame *f, const options *o, hp_error *err) {
    shisha_options so = {.path = f->word[0], .seconds = RACE_SECONDS};
    shisha *s = HP_NEW(f->arena, shisha, 1);
    HP_TRY(parse_moves(o, &so, err));
    HP_TRY(shisha_run(f->arena, &so, s, err));
    if (o->json) return cli_print_json(shisha_json(s), err);
    shisha_print(s);
    next_command run = next_start("run");
    char plain[4096];
    if (s->wrote) printf("wrote %s\n", cli_plain(so.path, plain, sizeof plain));
    next_word(&run, so.path);
    next_print(stdout, &run);
    return cli_finish_stdout(err);
}

static hp_status tune(frame *f, hp_error *err) {
    const options *o = f->options;
    if (o->moves) return tune_stages(f, o, err);
    if (o->alpha || o->quota) return hp_fail(err, HP_EUSAGE, "--alpha and --quota belong to --moves shisha");
    race_options ro = {.path = f->word[0], .top = RACE_TOP, .seconds = RACE_SECONDS};
    race *r = HP_NEW(f->arena, race, 1);
    HP_TRY(parse(o, &ro, err));
    const hp_status s = race_run(f->arena, &ro, r, err);
    if (r->winner < 0) return s;
    if (o->json) {
        json_t *all = race_json(r);
        json_object_set_new(all, "schema", json_integer(1));
        HP_TRY(cli_print_json(all, err));
    } else {
        race_print(r);
        print_next(&ro, r);
    }
    HP_TRY(cli_finish_stdout(err));
    return s;
}

int cmd_tune(int argc, char **argv) {
    static const frame_command command = {.option = OPTIONS,
                                          .usage = "PLAN.db",
                                          .doc = "Runs the best candidates of a plan for real, in rounds of "
                                                 "random order; what is slower by a paired "
                                                 "test drops out, and the fastest becomes the plan.",
                                          .min_word = 1,
                                          .max_word = 1,
                                          .too_few = "which plan? For example: hplan tune plan.db",
                                          .too_many = "one plan at a time: '%s' is one word too many",
                                          .run = tune};
    options o = {0};
    return frame_run(&command, &o, argc, argv);
}
