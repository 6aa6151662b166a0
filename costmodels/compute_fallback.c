/* compute_fallback.c - keys of similar tasks that may have been measured. Calibrations of training or of
 * float32 also serve to estimate inference and other precisions. */
#include "costmodels/models.h"
#include "plan/program/work.h"

#include <string.h>

static const char inference[] = "infer.";

/* The parts of "infer.conv k3x3 ... add u8>f32 w56". */
typedef struct key_parts {
    const char *rest; /* after the first dot */
    int rest_n;       /* length up to the space before the type */
    char type[16];    /* type read: "u8" */
    int width;
} key_parts;

static bool split(const char *key, key_parts *p) {
    const size_t prefix = sizeof inference - 1;
    if (strncmp(key, inference, prefix) != 0) return false;
    const int n = hp_key_class(key, &p->width);
    int type = n;
    while (type > (int)prefix && key[type - 1] != ' ') type--;
    if (type <= (int)prefix) return false;
    p->rest = key + prefix;
    p->rest_n = type - 1 - (int)prefix;
    snprintf(p->type, sizeof p->type, "%.*s", (int)strcspn(key + type, "> "), key + type);
    return true;
}

/* Is it a task without a layer ("copy u8"), with a size in bytes? */
static bool moves_bytes(const key_parts *p) {
    const size_t word = strcspn(p->rest, " ");
    for (int op = 0; op < HP_TASK_OPS; op++)
        if (strlen(hp_task_infos[op].name) == word && strncmp(p->rest, hp_task_infos[op].name, word) == 0)
            return true;
    return false;
}

static int type_bytes(const char *type) {
    for (int t = 0; t < HP_DTYPES; t++)
        if (strcmp(hp_dtype_names[t], type) == 0) return hp_dtype_bytes((hp_dtype)t);
    return hp_dtype_bytes(HP_F32);
}

/* Training has one name for all convolutions, and a separate task for additions. */
static key_parts as_trained(const key_parts *p, const char **prefix) {
    static const char depthwise[] = "depthwise", add[] = " add";
    key_parts t = *p;
    const int skip = (int)sizeof depthwise - 1, n = p->rest_n - (int)sizeof add + 1;
    *prefix = moves_bytes(p) ? "" : "fwd.";
    if (n > 0 && strncmp(p->rest + n, add, sizeof add - 1) == 0) t.rest_n = n;
    if (strncmp(p->rest, depthwise, (size_t)skip) == 0) {
        *prefix = "fwd.conv";
        t.rest += skip;
        t.rest_n -= skip;
    }
    return t;
}

bool hp_work_fallback(const hp_work *w, int fallback, hp_work *out) {
    key_parts p;
    const char *prefix = inference;
    char width[24] = "";
    if (!split(w->key, &p)) return false;
    *out = *w;
    if (!moves_bytes(&p)) out->bytes *= (double)hp_dtype_bytes(HP_F32) / type_bytes(p.type);
    if (fallback > 0) p = as_trained(&p, &prefix);
    if (p.width) snprintf(width, sizeof width, " w%d", p.width);
    snprintf(out->key, sizeof out->key, "%s%.*s f32%s", prefix, p.rest_n, p.rest, width);
    return strcmp(out->key, w->key) != 0;
}

bool hp_work_kernel(const hp_work *w, hp_work *kernel) {
    static const char dynamic[] = "dynamic-";
    const int skip = (int)sizeof dynamic - 1;
    char width[24] = "";
    key_parts p;
    if (!split(w->key, &p) || strncmp(p.rest, dynamic, (size_t)skip) != 0) return false;
    *kernel = *w;
    kernel->bytes -= w->passes;
    kernel->passes = 0;
    if (p.width) snprintf(width, sizeof width, " w%d", p.width);
    snprintf(kernel->key, sizeof kernel->key, "%s%.*s u8%s", inference, p.rest_n - skip, p.rest + skip,
             width);
    return true;
}
