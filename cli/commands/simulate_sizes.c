/* simulate_sizes.c - plans for a list of image sizes, one after another, each with its own network; the last
 * is the plan. */
#include "cli/commands/simulate_search.h"

#include <string.h>

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
