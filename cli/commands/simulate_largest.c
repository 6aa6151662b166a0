/* simulate_largest.c - asks for a plan of one size after another (cli/options/largest.h). */
#include "cli/commands/simulate_largest.h"
#include "cli/commands/simulate_search.h"
#include "cli/options/largest.h"
#include "base/text.h"
#include "networks/nets/nets.h"

#include <signal.h>
#include <string.h>

/* IMAGE_STEP: total stride of torchvision's networks; smaller steps change no map of the last stage. */
enum { IMAGE_STEP = 32, MOST_SIDE = 1 << 20, MOST_SAMPLES = 1 << 30 };

typedef struct question {
    simulate_options options; /* with `text` as the size */
    simulate_largest *l;
    char text[32];
    int64_t refused; /* the smallest size without a plan so far; 0: none */
} question;

static bool is_max(const char *word) {
    return word && strcmp(word, "max") == 0;
}

/* --- one size --- */

static void keep_reason(question *q, int64_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void keep_reason(question *q, int64_t size, const char *format, ...) {
    va_list list;
    if (q->refused && q->refused < size) return;
    q->refused = size;
    va_start(list, format);
    vsnprintf(q->l->why, sizeof q->l->why, format, list);
    va_end(list);
}

static void keep_reject(question *q, int64_t size, const simulate_found *f) {
    const hp_rejected *r = simulate_nearest(NULL, f->without.rejected, f->without.n_rejected);
    if (r)
        keep_reason(q, size, "%.120s: %s: %.250s; fix: %.250s", r->example, hp_reject_text(r->code), r->limit,
                    r->fix);
    else
        keep_reason(q, size, "no strategy was searched");
}

static hp_status ask(hp_arena *arena, question *q, int64_t size, bool *yes, hp_error *err) {
    simulate_setup s;
    simulate_found f = {0};
    hp_error refused = {HP_OK, ""};
    const hp_status known = simulate_prepare(arena, &q->options, &s, &refused);
    const bool too_large = known == HP_EUSAGE || known == HP_EPLAN || known == HP_EDATA;
    if (too_large && size > q->l->step) { /* for the network, or for its numbers */
        keep_reason(q, size, "%s", refused.text);
        return HP_OK;
    }
    if (known != HP_OK) return hp_fail(err, known, "%s", refused.text);
    s.any = true;
    HP_TRY(simulate_find(arena, &s, &f, err));
    if (f.tally.stopped)
        return hp_fail(err, (hp_status)(128 + SIGINT), "stopped at %s %lld", q->l->option, (long long)size);
    *yes = f.n > 0;
    if (!*yes) keep_reject(q, size, &f);
    return HP_OK;
}

static hp_status ask_multiple(void *self, int64_t n, bool *yes, hp_error *err) {
    question *q = self;
    const int64_t size = n * q->l->step;
    snprintf(q->text, sizeof q->text, "%lld", (long long)size);
    *yes = false;
    q->l->tried++;
    hp_arena *arena = hp_arena_new();
    const hp_status s = ask(arena, q, size, yes, err);
    hp_arena_free(arena);
    return s;
}

/* --- the step --- */

static hp_status build(const simulate_options *o, int side, hp_error *err) {
    const char *net = o->network.net ? o->network.net : "resnet101";
    hp_arena *arena = hp_arena_new();
    hp_graph *g = NULL;
    const hp_status s = hp_net_build(arena, net, side, side, (int)hp_net_default_classes(net), &g, err);
    hp_arena_free(arena);
    return s;
}

/* IMAGE_STEP; for a network that does not take such sides, the size of its patches. */
static hp_status image_step(const simulate_options *o, int64_t *step, hp_error *err) {
    hp_error first = {HP_OK, ""}, other;
    *step = IMAGE_STEP;
    if (o->network.onnx || build(o, IMAGE_STEP, &first) == HP_OK) return HP_OK;
    int side = IMAGE_STEP + 1;
    while (side < 2 * IMAGE_STEP && build(o, side, &other) != HP_OK) side++;
    if (side == 2 * IMAGE_STEP) return hp_fail(err, first.code, "%s", first.text);
    int d = 2;
    while (d < side && (side % d != 0 || build(o, side + d, &other) != HP_OK)) d++;
    *step = d;
    return HP_OK;
}

/* A search finds a plan for any batch, by using more micro-batches, so one strategy must fix their number. */
static hp_status batch_step(const simulate_options *o, int64_t *step, hp_error *err) {
    hp_strategy s;
    if (!o->strategy || o->n_more)
        return hp_fail(
            err, HP_EUSAGE,
            "--batch max: with enough micro-batches any batch fits; fix: one --strategy, for example "
            "--strategy dp=%.20s,micro=1",
            o->machine.gpus ? o->machine.gpus : "1");
    HP_TRY(hp_strategy_parse(o->strategy, &s, err));
    *step = hp_strategy_divisor(&s);
    return HP_OK;
}

static hp_status check_question(const simulate_options *o, hp_error *err) {
    if (is_max(o->network.image) && is_max(o->step.batch))
        return hp_fail(err, HP_EUSAGE, "--image max and --batch max: one of them at a time");
    if (o->machine.gpus && strpbrk(o->machine.gpus, ",."))
        return hp_fail(err, HP_EUSAGE,
                       "--image max and --batch max are of one number of --gpus, not of '%.60s'",
                       o->machine.gpus);
    if (o->n_more || (o->strategy && strchr(o->strategy, '*')))
        return hp_fail(err, HP_EUSAGE, "--image max and --batch max take one --strategy, without a star");
    return HP_OK;
}

hp_status simulate_find_largest(hp_arena *arena, simulate_options *o, simulate_largest *l, hp_error *err) {
    const bool of_image = is_max(o->network.image), of_batch = is_max(o->step.batch);
    if (!of_image && !of_batch) return HP_OK;
    question q = {.options = *o, .l = l};
    int64_t n = 0;
    HP_TRY(check_question(o, err));
    HP_TRY(of_image ? image_step(o, &l->step, err) : batch_step(o, &l->step, err));
    l->option = of_image ? "--image" : "--batch";
    *(of_image ? &q.options.network.image : &q.options.step.batch) = q.text;
    HP_TRY(largest_find(ask_multiple, &q, (of_image ? MOST_SIDE : MOST_SAMPLES) / l->step, &n, err));
    if (n == 0)
        return hp_fail(err, HP_EPLAN, "%s max: even %lld has no plan: %s", l->option, (long long)l->step,
                       l->why);
    l->size = n * l->step;
    l->next = q.refused;
    const char *text = hp_arena_printf(arena, "%lld", (long long)l->size);
    *(of_image ? &o->network.image : &o->step.batch) = text;
    return HP_OK;
}

/* --- what was found --- */

void simulate_print_largest(const simulate_largest *l) {
    printf("largest %s: %lld, in steps of %lld (%d sizes tried)\n", l->option, (long long)l->size,
           (long long)l->step, l->tried);
    if (l->next)
        printf("%s %lld has no plan: %s\n", l->option, (long long)l->next, l->why);
    else
        printf("larger ones were not tried\n");
    printf("\n");
}

json_t *simulate_largest_json(const simulate_largest *l) {
    return json_pack("{s:s, s:I, s:I, s:i, s:o, s:s}", "option", l->option, "size", (json_int_t)l->size,
                     "step", (json_int_t)l->step, "tried", l->tried, "next",
                     l->next ? json_integer(l->next) : json_null(), "why", l->why);
}
