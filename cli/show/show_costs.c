/* show_costs.c - what nobody has measured. */
#include "cli/show/show_costs.h"

/* Less is counted together, and less than LEAST not at all. */
static const double NAMED = 0.02, LEAST = 0.005;

static void print_line(const char *head, const char *what, const hp_unmeasured *u, int n,
                       double (*share)(const hp_unmeasured *u)) {
    double all = 0, named = 0;
    for (int i = 0; i < n; i++) all += share(&u[i]);
    if (all < LEAST) return;
    printf("%s%.0f%% of the step by %s:", head, 100 * all, what);
    for (int i = 0; i < n; i++) {
        if (share(&u[i]) < NAMED) continue;
        printf("%s %s %.0f%%", named > 0 ? "," : "", u[i].task, 100 * share(&u[i]));
        named += share(&u[i]);
    }
    if (all - named >= LEAST) printf("%s others %.0f%%", named > 0 ? "," : "", 100 * (all - named));
    printf("\n");
}

static double guess(const hp_unmeasured *u) {
    return u->guess;
}

static double sheet(const hp_unmeasured *u) {
    return u->sheet;
}

void costs_print_unmeasured(const char *head, const hp_exposure *x) {
    hp_unmeasured u[HP_COST_KINDS];
    const int n = hp_exposure_unmeasured(x, 0, u);
    print_line(head, "guesses", u, n, guess);
    print_line(head, "data sheets or rates of other devices", u, n, sheet);
}

json_t *costs_unmeasured_json(const hp_exposure *x) {
    hp_unmeasured u[HP_COST_KINDS];
    json_t *list = json_array();
    const int n = hp_exposure_unmeasured(x, 0, u);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "task", u[i].task, "guess", u[i].guess,
                                              "datasheet", u[i].sheet));
    return list;
}
