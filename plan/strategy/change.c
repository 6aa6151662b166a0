/* change.c - a row per option that a fix may change; what is no option is a key of the strategy. */
#include "plan/strategy/change.h"

#include "base/units.h"

#include <string.h>

int64_t hp_question_batch(const hp_question *q) {
    return q->batch ? q->batch : hp_strategy_batch(&q->s, hp_strategy_devices(&q->s));
}

enum { VALUE = 64 };

typedef struct option {
    const char *name;
    void (*print)(const hp_question *q, char value[VALUE]);
    hp_status (*parse)(const char *value, hp_question *q, hp_error *err);
} option;

static void print_batch(const hp_question *q, char value[VALUE]) {
    snprintf(value, VALUE, "%lld", (long long)q->batch);
}

static hp_status parse_batch(const char *value, hp_question *q, hp_error *err) {
    return hp_parse_int(value, "--batch", 1, INT64_C(1) << 40, &q->batch, err);
}

static void print_devices(const hp_question *q, char value[VALUE]) {
    snprintf(value, VALUE, "%d", q->n_devices);
}

static hp_status parse_devices(const char *value, hp_question *q, hp_error *err) {
    int64_t n;
    HP_TRY(hp_parse_int(value, "--gpus", 1, INT32_MAX, &n, err));
    q->n_devices = (int)n;
    return HP_OK;
}

static void print_image(const hp_question *q, char value[VALUE]) {
    const bool square = q->image_h == q->image_w;
    snprintf(value, VALUE, square ? "%d" : "%dx%d", q->image_h, q->image_w);
}

static hp_status parse_image(const char *value, hp_question *q, hp_error *err) {
    int64_t h, w;
    char rows[VALUE];
    const size_t n = strcspn(value, "x");
    snprintf(rows, sizeof rows, "%.*s", (int)n, value);
    HP_TRY(hp_parse_int(rows, "--image", 1, 1 << 20, &h, err));
    w = h;
    if (value[n]) HP_TRY(hp_parse_int(value + n + 1, "--image", 1, 1 << 20, &w, err));
    q->image_h = (int)h;
    q->image_w = (int)w;
    return HP_OK;
}

static void print_mode(const hp_question *q, char value[VALUE]) {
    strcpy(value, q->infer ? "infer" : "train");
}

static hp_status parse_mode(const char *value, hp_question *q, hp_error *err) {
    q->infer = strcmp(value, "infer") == 0;
    if (q->infer || strcmp(value, "train") == 0) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "--mode '%.40s' is not one of train, infer", value);
}

static void print_device(const hp_question *q, char value[VALUE]) {
    snprintf(value, VALUE, "%s", q->device ? q->device->name : "");
}

static hp_status parse_device(const char *value, hp_question *q, hp_error *err) {
    return hp_device_find(value, &q->device, err);
}

/* Keys say it. */
static void print_prec(const hp_question *q, char value[VALUE]) {
    (void)q;
    value[0] = 0;
}

static hp_status parse_prec(const char *value, hp_question *q, hp_error *err) {
    char key[VALUE];
    snprintf(key, sizeof key, "prec=%s", value);
    return hp_strategy_replace(&q->s, key, err);
}

static const option options[] = {
    {"--batch", print_batch, parse_batch},    {"--gpus", print_devices, parse_devices},
    {"--image", print_image, parse_image},    {"--mode", print_mode, parse_mode},
    {"--device", print_device, parse_device}, {"--prec", print_prec, parse_prec},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

int hp_change_text(const hp_question *from, const hp_question *to, char *out, size_t n) {
    char keys[HP_STRATEGY_TEXT];
    int changes = 0;
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < N_OPTIONS; i++) {
        char was[VALUE], is[VALUE];
        options[i].print(from, was);
        options[i].print(to, is);
        if (strcmp(was, is) == 0) continue;
        used += (size_t)snprintf(out + used, n - used, "%s%s %s", changes++ ? ", " : "", options[i].name, is);
        if (used >= n) return -1;
    }
    const int n_keys = hp_strategy_change(&from->s, &to->s, keys);
    if (n_keys) used += (size_t)snprintf(out + used, n - used, "%s%s", changes ? ", " : "", keys);
    return used < n ? changes + n_keys : -1;
}

/* "--batch 256", or a key with its value. */
static hp_status apply_item(hp_question *q, const char *item, hp_error *err) {
    for (int i = 0; i < N_OPTIONS; i++) {
        const size_t n = strlen(options[i].name);
        if (strncmp(item, options[i].name, n) == 0 && item[n] == ' ')
            return options[i].parse(item + n + 1, q, err);
    }
    return hp_fail(err, HP_EUSAGE, "'%.60s' is no option that a fix changes", item);
}

hp_status hp_change_apply(hp_question *q, const char *change, hp_error *err) {
    char copy[HP_STRATEGY_TEXT], keys[HP_STRATEGY_TEXT] = "", *rest = NULL;
    snprintf(copy, sizeof copy, "%s", change);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        item += strspn(item, " ");
        if (item[0] == '-') {
            HP_TRY(apply_item(q, item, err));
        } else {
            const size_t n = strlen(keys);
            snprintf(keys + n, sizeof keys - n, "%s%s", n ? "," : "", item);
        }
    }
    return keys[0] ? hp_strategy_replace(&q->s, keys, err) : HP_OK;
}
