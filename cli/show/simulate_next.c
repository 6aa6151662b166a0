/* simulate_next.c - what to do with a plan: run it where its machine is at hand, read it, ask about another
 * candidate. */
#include "cli/show/simulate_show.h"
#include "cli/show/next.h"

/* Names the network and size: a table measured for others says less about this one. */
static void print_calibrate(const simulate_setup *s, const simulate_found *f) {
    next_command c = next_start("calibrate");
    char image[32], batch[32], gpus[16];
    snprintf(image, sizeof image, s->network.image_h == s->network.image_w ? "%d" : "%dx%d",
             s->network.image_h, s->network.image_w);
    snprintf(batch, sizeof batch, "%lld", (long long)f->batch);
    snprintf(gpus, sizeof gpus, "%d", f->gpus);
    if (hp_device_on_gpu(hp_device_of_machine(s->machine.name)))
        next_option(&c, "--device", hp_device_of_machine(s->machine.name)->name);
    next_option(&c, "--net", *s->network.net && !s->network.model ? s->network.net : NULL);
    if (*s->network.net && !s->network.model) {
        const int32_t prec = f->list[f->chosen].strategy.prec;
        next_option(&c, "--image", hp_graph_reads_ids(s->network.trained) ? NULL : image);
        next_option(&c, "--batch", batch);
        next_option(&c, "--gpus", gpus);
        if (s->step.mode == HP_MODE_INFER) next_option(&c, "--mode", "infer");
        if (prec != HP_PREC_FP32) next_option(&c, "--prec", hp_prec_names[prec]);
    }
    next_print(stdout, &c);
}

void simulate_next(const simulate_setup *s, const simulate_found *f, const char *path) {
    const bool here = hp_device_of_machine(s->machine.name) != NULL;
    next_command run = next_start("run"), explain = next_start("explain"), why = next_start("why");
    char other[16], plain[4096];
    const int shown = simulate_shown_other(s, f);
    printf("wrote %s (number %d selected%s)\n", cli_plain(path, plain, sizeof plain), f->chosen + 1,
           f->facts.replaced ? "; it replaces the one that was there" : "");
    next_word(&run, path);
    next_word(&explain, path);
    next_word(&why, path);
    snprintf(other, sizeof other, "%d", shown);
    next_word(&why, other);
    if (here && simulate_unmeasured(&f->list[f->chosen].figures)) print_calibrate(s, f);
    if (here) next_print(stdout, &run);
    next_print(stdout, &explain);
    if (shown) next_print(stdout, &why);
}
