/* check_speed.c - how fast this machine is now; see check_speed.h. */
#include "exec/run/check_speed.h"

#include "exec/run/run_bind.h"
#include "exec/yardstick/survey.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* Ranks line up before so many rounds, some 2 ms; messages follow one line-up in so many. */
enum { ROUNDS = 10, MESSAGES_EVERY = 10 };

/* Until rank 0 says that the time is over. */
static hp_status sample(hp_yard_survey *survey, const hp_yard_waiter *w, double seconds, hp_error *err) {
    const double start_s = hp_now_s();
    for (int64_t i = 0;; i++) {
        double more = hp_now_s() - start_s < seconds;
        HP_TRY(hp_yard_line_up(w, &more, 1, err));
        if (more <= 0) return HP_OK;
        HP_TRY(hp_yard_survey_take(survey, ROUNDS, i % MESSAGES_EVERY == 0, err));
    }
}

static hp_status print(json_t *answer, int ranks, hp_error *err) {
    json_t *o = json_pack("{s:i, s:i}", "schema", 1, "ranks", ranks);
    HP_ASSERT(o && json_object_update(o, answer) == 0);
    json_dumpf(o, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(o);
    if (fflush(stdout) == 0 && !ferror(stdout)) return HP_OK;
    return hp_fail(err, HP_EIO, "cannot write to stdout: %s", strerror(errno));
}

hp_status hp_check_speed(const hp_exec_options *options, const hp_yard_waiter *w, hp_error *err) {
    hp_bound_cores bound;
    json_t *answer = NULL;
    HP_TRY(hp_bind_rank(w->comm, (int)options->threads, options->machine.bind, &bound, err));
    hp_yard_survey *survey = hp_yard_survey_open(w);
    hp_status s = sample(survey, w, options->speed.seconds, err);
    if (s == HP_OK) s = hp_yard_survey_answer(survey, &answer, err);
    if (s == HP_OK && answer) s = print(answer, w->comm->size, err);
    json_decref(answer);
    hp_yard_survey_close(survey);
    if (s == HP_OK) w->comm->ops->close(w->comm);
    return s;
}
