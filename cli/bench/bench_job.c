/* bench_job.c - the list of combinations and their plans. */
#include "cli/bench/bench_job.h"
#include "cli/cli.h"
#include "cli/commands/run_here.h"
#include "cli/commands/serve_plan.h"
#include "traces/trace_text.h"

#include "base/version.h"

#include <time.h>

/* Offline, images come in batches: by default, as many pixels as 16 images of 224x224 have. */
static int64_t batch_of(const bench_setup *s, hp_scenario scenario, int h, int w) {
    static const double PIXELS = 16.0 * 224 * 224;
    const int64_t fixed = hp_scenario_infos[scenario].query_images;
    if (fixed) return fixed;
    if (s->batch) return s->batch;
    const double most = PIXELS / ((double)h * w);
    return most < 1 ? 1 : most > 64 ? 64 : (int64_t)most;
}

/* `arena` holds the plan only while it is made; the file and the job's figures remain. */
static hp_status make_plan(hp_arena *arena, const bench_setup *setup, const bench_job *job, hp_plan *plan,
                           hp_error *err) {
    const hp_bench_series *s = &job->series;
    const serve_request r = {.net = s->net,
                             .prec = s->prec,
                             .strategy = setup->strategy,
                             .device = setup->device,
                             .image_h = setup->any_image ? 0 : s->image_h,
                             .image_w = setup->any_image ? 0 : s->image_w,
                             .batch = s->batch};
    HP_TRY(serve_plan_write(arena, &r, job->plan, plan, err));
    const run_here here = {.path = s->net, .force = true, .smaller = "give a smaller --batch or --image"};
    return run_here_check(arena, plan, &here, err);
}

static const char *now_text(hp_arena *arena) {
    char text[32];
    struct tm utc;
    const time_t now = time(NULL);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return hp_arena_strdup(arena, text);
}

/* The strategy is stored without its precision, which has a separate column. */
static void keep_plan(hp_arena *arena, const bench_setup *setup, const hp_plan *plan, bench_job *job) {
    hp_bench_series *b = &job->series;
    b->strategy = setup->strategy;
    b->machine = hp_arena_strdup(arena, plan->machine.name);
    b->device = plan->device->name;
    job->on_gpus = hp_device_on_gpu(plan->device);
    b->image_h = plan->graph->image_h;
    b->image_w = plan->graph->image_w;
    b->version = hp_version();
    b->started = now_text(arena);
    b->threads = (int32_t)setup->threads;
    b->ranks = hp_program_ranks(plan->program);
    b->predicted_s = job->expected_s = plan->step_s;
}

static hp_status plan_job(hp_arena *arena, const bench_setup *s, bench_job *job, hp_error *err) {
    hp_plan plan;
    hp_arena *scratch = hp_arena_new();
    hp_status status = make_plan(scratch, s, job, &plan, err);
    if (status == HP_OK) keep_plan(arena, s, &plan, job);
    hp_arena_free(scratch);
    if (!serve_impossible(status)) return status == HP_OK ? HP_OK : hp_fail_in(err, job->text);
    job->why = hp_text_clean(arena, err->text);
    return HP_OK;
}

static hp_status add_job(hp_arena *arena, const bench_setup *s, const workspace *w, const char *net,
                         const char *image, const char *scenario, const char *prec, bench_job *job, int index,
                         hp_error *err) {
    hp_bench_series *b = &job->series;
    b->net = net;
    b->prec = prec;
    b->scenario = (int32_t)hp_scenario_find(scenario);
    if (b->scenario == HP_SCENARIOS)
        return hp_fail(err, HP_EUSAGE,
                       "--scenario '%.40s' is not one of single-stream, multi-stream, offline", scenario);
    HP_TRY(cli_parse_image(image, &b->image_h, &b->image_w, err));
    b->batch = batch_of(s, (hp_scenario)b->scenario, b->image_h, b->image_w);
    job->text = hp_arena_printf(arena, "%s %dx%d %s %s", net, b->image_h, b->image_w, scenario, prec);
    job->plan = hp_arena_printf(arena, "%s/plan-%d.db", w->dir, index);
    return plan_job(arena, s, job, err);
}

/* Precisions are adjacent, so that jobs that are compared run at about the same time. */
hp_status bench_jobs_make(hp_arena *arena, const bench_setup *s, const workspace *w, bench_job **jobs, int *n,
                          hp_error *err) {
    *n = 0;
    *jobs = HP_NEW(arena, bench_job, s->net.n * s->image.n * s->scenario.n * s->prec.n);
    for (int a = 0; a < s->net.n; a++)
        for (int i = 0; i < s->image.n; i++)
            for (int c = 0; c < s->scenario.n; c++)
                for (int p = 0; p < s->prec.n; p++, ++*n)
                    HP_TRY(add_job(arena, s, w, s->net.word[a], s->image.word[i], s->scenario.word[c],
                                   s->prec.word[p], &(*jobs)[*n], *n, err));
    return HP_OK;
}
