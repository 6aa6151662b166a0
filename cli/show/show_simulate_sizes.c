/* show_simulate_sizes.c - the plans of several image sizes, one row each, or the reason why there is none. */
#include "cli/options/simulate.h"

#include "base/units.h"

static void print_reason(const hp_rejected *why) {
    if (!why)
        printf("  no strategy was searched\n");
    else
        printf("  %s: %s, as %s; fix: %s\n", hp_reject_text(why->code), why->limit, why->example, why->fix);
}

void simulate_print_sizes(const simulate_sizes *sizes) {
    printf("      image   gpus   batch   ms/step     img/s  mem/rank  strategy\n");
    for (int i = 0; i < sizes->n; i++) {
        const simulate_size *z = &sizes->size[i];
        char step[32], images[32], memory[32];
        printf("%11s%7d%8lld", z->image, z->gpus, (long long)z->batch);
        if (z->plan)
            printf("%10s%10s%10s  %s\n", simulate_number(z->plan->figures.step_s * 1e3, step),
                   simulate_number(z->plan->figures.images_per_s, images),
                   hp_format_bytes((double)z->plan->figures.memory_bytes, memory), z->plan->figures.strategy);
        else
            print_reason(z->why);
    }
    printf("\n");
}

static json_t *size_json(const simulate_size *z) {
    const hp_candidate *c = z->plan ? &z->plan->figures : NULL;
    json_t *why = z->why ? json_pack("{s:s, s:s, s:s, s:s}", "code", hp_reject_text(z->why->code), "example",
                                     z->why->example, "limit", z->why->limit, "fix", z->why->fix)
                         : json_null();
    return json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "image", z->image, "gpus", z->gpus, "batch",
                     (json_int_t)z->batch, "strategy", c ? json_string(c->strategy) : json_null(), "step_s",
                     c ? json_real(c->step_s) : json_null(), "images_per_s",
                     c ? json_real(c->images_per_s) : json_null(), "memory_bytes",
                     c ? json_integer(c->memory_bytes) : json_null(), "reason", why);
}

json_t *simulate_sizes_json(const simulate_sizes *sizes) {
    json_t *rows = json_array();
    for (int i = 0; i < sizes->n; i++) json_array_append_new(rows, size_json(&sizes->size[i]));
    return rows;
}
