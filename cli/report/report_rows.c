/* report_rows.c - which ranks get a row: all of few; of many one per class of the simulator's, so that a
 * thousand ranks that do a dozen different things are a dozen rows. */
#include "cli/report/report_data.h"

#include "sim/engine/classes.h"

/* Of `n` rows at most `most`, evenly spaced. */
static int thin_out(report_row *row, int n, int most, int *left_out) {
    *left_out = n > most ? n - most : 0;
    if (n <= most) return n;
    for (int i = 0; i < most; i++) row[i] = row[(int64_t)i * n / most];
    return most;
}

int report_rows(const report *r, int recorded, int most, report_row **out, int *left_out) {
    const hp_program *p = r->plan.program;
    const int world = hp_program_ranks(p);
    report_row *row = *out = HP_NEW(r->arena, report_row, recorded + 1);
    int n = 0;
    if (recorded > world) recorded = world;
    if (recorded <= most) {
        const int each = recorded == p->n_role ? p->dp : 1; /* one replica stands for all */
        for (; n < recorded; n++) row[n] = (report_row){n, each};
        *left_out = 0;
        return n;
    }
    const hp_classes *c = hp_classes_of(r->arena, hp_wiring_new(r->arena, p), &r->plan.machine, true, -1);
    for (int k = 0; k < c->n; k++)
        if (c->first[k] < recorded) row[n++] = (report_row){c->first[k], c->size[k]};
    return thin_out(row, n, most, left_out);
}
