/* speed_check.c - runs `hplan-exec --check-speed`, one process per rank, and parses its output:
 * {"yardsticks": {"arith": {"mean_s": …}}, "availability": …}. */
#include "cli/launch/speed_check.h"

#include "cli/launch/launch.h"

#include <jansson.h>
#include <math.h>

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) && json_number_value(v) > 0 ? json_number_value(v) : NAN;
}

static hp_status read_answer(void *self, const char *line, hp_error *err) {
    speed_check *check = self;
    json_t *o = json_loads(line, 0, NULL);
    const json_t *yards = json_object_get(o, "yardsticks");
    if (!json_is_object(yards)) {
        json_decref(o);
        return hp_fail(err, HP_EINTERNAL, "hplan-exec --check-speed answered: %.80s", line);
    }
    for (int y = 0; y < HP_SPEED_CLASSES; y++)
        check->seconds[y] = number(json_object_get(yards, hp_yardstick_names[y]), "mean_s");
    check->availability = number(o, "availability");
    json_decref(o);
    return HP_OK;
}

hp_status speed_check_run(int ranks, double seconds, speed_check *out, hp_error *err) {
    char time[40];
    snprintf(time, sizeof time, "--seconds=%.3g", seconds);
    *out = (speed_check){.ranks = ranks, .availability = NAN};
    for (int y = 0; y < HP_SPEED_CLASSES; y++) out->seconds[y] = NAN;
    const cli_launch l = {.ranks = ranks,
                          .threads = 1,
                          .option = {"--check-speed", time},
                          .n_option = 2,
                          .line = read_answer,
                          .self = out};
    return cli_launch_run(&l, err);
}
