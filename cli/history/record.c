/* record.c - a run as a row of the history. */
#include "cli/history/record.h"

#include "base/host.h"
#include "base/version.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { DATE = 32, NAME = 128 };

/* Strings that the row points to. */
typedef struct texts {
    char now[DATE], image[40], strategy[HP_STRATEGY_TEXT], host[NAME], processor[NAME];
} texts;

static const char *now_text(char out[DATE]) {
    const time_t now = time(NULL);
    struct tm utc;
    strftime(out, DATE, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return out;
}

static hp_ledger_entry entry_of(const hp_plan *plan, const run_outcome *r, texts *t) {
    const run_speed *s = &r->speed;
    snprintf(t->image, sizeof t->image, "%dx%d", plan->image_h, plan->image_w);
    return (hp_ledger_entry){.started = now_text(t->now),
                             .plan_hash = plan->hash.hex,
                             .net = plan->net,
                             .image = t->image,
                             .mode = plan->mode == HP_MODE_TRAIN ? "train" : "infer",
                             .batch = plan->batch,
                             .strategy = hp_strategy_text(&plan->strategy, t->strategy),
                             .ranks = hp_program_ranks(plan->program),
                             .steps = r->steps,
                             .device = plan->device->name,
                             .machine = plan->machine.name,
                             .host = hp_host_name(t->host, sizeof t->host),
                             .processor = hp_host_processor(t->processor, sizeof t->processor),
                             .cost = r->cost,
                             .cost_hash = r->cost_hash,
                             .cost_processor = r->cost_processor,
                             .predicted_s = r->predicted_s,
                             .low_s = r->low_s,
                             .high_s = r->high_s,
                             .quiet_s = r->quiet_s,
                             .measured_s = r->measured_s,
                             .equal_speed_s = s->split.equal_speed_s,
                             .arith = s->slowdown[HP_YARD_ARITH],
                             .l2 = s->slowdown[HP_YARD_L2],
                             .dram = s->slowdown[HP_YARD_DRAM],
                             .availability = s->availability,
                             .version = hp_version()};
}

void run_record(const hp_plan *plan, const run_outcome *r) {
    const char *off = getenv("HPLAN_NO_HISTORY");
    char path[4096], plain[4096];
    hp_error err = {.code = HP_OK, .text = ""};
    texts t = {.image = ""};
    if ((off && *off) || !r->known || !r->warm) return;
    const hp_ledger_entry e = entry_of(plan, r, &t);
    if (hp_ledger_append(hp_ledger_path(path, sizeof path), &e, &err) == HP_OK) return;
    fprintf(stderr, "hplan: note: the run is not in the history: %s\n",
            cli_plain(err.text, plain, sizeof plain));
}
