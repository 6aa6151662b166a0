/* output_json.c - JSON text, nested according to the shape, read through a small window. Nine digits
 * reproduce every float32. */
#include "exec/data/output/output_kind.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { WINDOW = 1 << 16 };

typedef struct work {
    const hp_output_layout *l;
    int part;
    FILE *out;
    int64_t next, total;          /* numbers read */
    unsigned char window[WINDOW]; /* numbers starting at next - next % n_window */
} work;

static hp_status number(work *w, hp_error *err) {
    const int64_t held = WINDOW / w->l->elem_bytes, at = w->next % held, left = w->total - w->next;
    if (at == 0)
        HP_TRY(hp_output_read(w->part, w->window, (size_t)((left < held ? left : held) * w->l->elem_bytes),
                              w->l->header_bytes + w->next * w->l->elem_bytes, err));
    w->next++;
    if (w->l->elem_bytes == 1) {
        fprintf(w->out, "%d", w->window[at]);
        return HP_OK;
    }
    float value;
    memcpy(&value, w->window + at * (int64_t)sizeof value, sizeof value);
    if (isfinite(value))
        fprintf(w->out, "%.9g", (double)value);
    else
        fputs("null", w->out);
    return HP_OK;
}

static hp_status nest(work *w, int level, hp_error *err) {
    if (level >= HP_AXES || level == w->l->n_shape) return number(w, err);
    fputc('[', w->out);
    for (int64_t i = 0; i < w->l->shape[level]; i++) {
        if (i) fputs(level == 0 ? ",\n" : ",", w->out);
        HP_TRY(nest(w, level + 1, err));
        if (ferror(w->out)) return HP_OK; /* reported at the end */
    }
    fputc(']', w->out);
    return HP_OK;
}

static hp_status text(work *w, hp_error *err) {
    fputs("{\"schema\":1,\"shape\":[", w->out);
    for (int i = 0; i < w->l->n_shape; i++)
        fprintf(w->out, "%s%lld", i ? "," : "", (long long)w->l->shape[i]);
    fprintf(w->out, "],\"%s\":\n", w->l->elem_bytes == 1 ? "classes" : "logits");
    HP_TRY(nest(w, 0, err));
    fputs("}\n", w->out);
    return HP_OK;
}

static hp_status convert(const hp_output_layout *l, int part, const char *tmp, hp_error *err) {
    work w = {.l = l, .part = part, .out = fopen(tmp, "we"), .total = 1};
    if (!w.out)
        return hp_fail(err, HP_ECREATE, "cannot create %s: %s; give a path in an existing, writable folder",
                       tmp, strerror(errno));
    for (int a = 0; a < HP_AXES; a++) w.total *= l->dim[a];
    hp_status s = text(&w, err);
    const bool failed = ferror(w.out) != 0;
    if ((fclose(w.out) != 0 || failed) && s == HP_OK) s = hp_output_failed(tmp, err);
    return s;
}

const hp_output_kind hp_output_json = {.suffix = ".json", .convert = convert};
