/* simulate_next.c - what to do with a plan: run it where its machine is at hand, read it, ask about another
 * candidate. */
#include "cli/options/simulate.h"
#include "cli/show/next.h"

void simulate_next(const simulate_setup *s, const simulate_found *f, const char *path) {
    const bool here = hp_device_of_machine(s->machine.name) != NULL;
    next_command run = next_start("run"), explain = next_start("explain"), why = next_start("why");
    char other[16], plain[4096];
    printf("wrote %s (number %d selected)\n", cli_plain(path, plain, sizeof plain), f->chosen + 1);
    next_word(&run, path);
    next_word(&explain, path);
    next_word(&why, path);
    snprintf(other, sizeof other, "%d", f->chosen ? 1 : 2);
    next_word(&why, other);
    if (here) next_print(stdout, &run);
    next_print(stdout, &explain);
    if (f->n > 1) next_print(stdout, &why);
}
