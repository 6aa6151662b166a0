/* eval_show.c - shows one line per precision: its accuracy, and its agreement with the reference. */
#include "cli/show/eval_show.h"

#include "base/units.h"

#include <math.h>

static const char *percent_text(double share, char out[32]) {
    if (isnan(share))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%.2f%%", 100 * share);
    return out;
}

static const char *points_text(double share, double reference, char out[32]) {
    if (isnan(share) || isnan(reference))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%+.2f", 100 * (share - reference));
    return out;
}

static const char *sqnr_text(double db, char out[32]) {
    if (isnan(db))
        snprintf(out, 32, "-");
    else if (isinf(db))
        snprintf(out, 32, "exact");
    else
        snprintf(out, 32, "%.1f dB", db);
    return out;
}

static void print_result(const eval_result *reference, const eval_result *r) {
    char right[32], points[32], same[32], noise[32], memory[32] = "-";
    if (!isnan(r->peak_bytes)) hp_format_bytes(r->peak_bytes, memory);
    printf("%-20s %9s %8s %10s %9s %9s\n", r->name, percent_text(r->accuracy, right),
           points_text(r->accuracy, reference->accuracy, points), percent_text(r->agreement, same),
           sqnr_text(r->sqnr_db, noise), memory);
}

void eval_print(const eval_result *r, int n) {
    const hp_npy *x = &r[0].logits;
    const int64_t classes = x->dim[x->n_dim - 1];
    printf("%lld rows of %lld classes, against %s\n", (long long)(x->count / classes), (long long)classes,
           r[0].name);
    printf("%-20s %9s %8s %10s %9s %9s\n", "", "accuracy", "points", "agreement", "SQNR", "memory");
    for (int i = 0; i < n; i++)
        if (!r[i].why) print_result(&r[0], &r[i]);
    for (int i = 0; i < n; i++)
        if (r[i].why) printf("not evaluated: %s: %s\n", r[i].name, r[i].why);
}

/* Equal logits have no finite ratio: sqnr_db is null and exact true. */
static json_t *result_json(const eval_result *r) {
    if (r->why) return json_pack("{s:s, s:s}", "name", r->name, "why", r->why);
    return json_pack("{s:s, s:o, s:f, s:o, s:b, s:o, s:o}", "name", r->name, "accuracy",
                     cli_json_number(r->accuracy), "agreement", r->agreement, "sqnr_db",
                     cli_json_number(r->sqnr_db), "exact", r->sqnr_db == INFINITY, "peak_bytes",
                     cli_json_number(r->peak_bytes), "images_per_s", cli_json_number(r->images_per_s));
}

json_t *eval_json(const eval_setup *s, const eval_result *r, int n) {
    const hp_npy *x = &r[0].logits;
    const int64_t classes = x->dim[x->n_dim - 1];
    json_t *all = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(all, result_json(&r[i]));
    return json_pack("{s:i, s:s*, s:s*, s:I, s:I, s:o}", "schema", 1, "net", s->request.net, "data",
                     s->data_name, "rows", (json_int_t)(x->count / classes), "classes", (json_int_t)classes,
                     "results", all);
}
