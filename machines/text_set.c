/* text_set.c - what-if: a machine with one change, in the words of its description: nodes=16, nic=4 x
 * 400Gb/s, nvlink=300GB/s, a100.memory=80G; or nic=2x, which doubles the value. */
#include "machines/machine_text.h"

#include <string.h>
#include <strings.h>

/* "a100" and "device" mean the machine's a100-40. */
static bool means_device(const hp_machine *m, const char *word, size_t n) {
    const char *name = m->device.name;
    return (n == strlen("device") && strncasecmp(word, "device", n) == 0) ||
           (strncasecmp(word, name, n) == 0 && (name[n] == '\0' || name[n] == '-'));
}

/* The field that a key names: "nodes", "nic" (a NIC's rate), "nic.latency", a link by its name, a rate of the
 * device; -1: none, possibly a clause. */
static int field_of(const hp_machine *m, const char *key) {
    const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
    const size_t n = dot ? (size_t)(dot - key) : 0;
    if (strcasecmp(key, "nic") == 0) return M_NIC_RATE;
    if (strcasecmp(key, m->intra.name) == 0 || strcasecmp(key, "link") == 0) return M_LINK_RATE;
    if (strcasecmp(key, "nics") == 0) return M_NICS;
    for (int i = 0; i < MACHINE_FIELDS; i++) {
        const machine_field *f = &machine_fields[i];
        const bool device = i >= M_MEMORY;
        if (f->type == TYPE_NAME || f->type == TYPE_TEXT || f->type == TYPE_YES || f->type == TYPE_NIC_USE)
            continue;
        if (!dot && strcasecmp(key, device ? f->key : *f->key ? "" : f->clause) == 0) return i;
        if (dot && *f->key && strcasecmp(last, f->key) == 0 &&
            (device ? means_device(m, key, n)
                    : strlen(f->clause) == n && strncasecmp(key, f->clause, n) == 0))
            return i;
    }
    return -1;
}

/* "2x" or "0.5x". */
static bool is_factor(const char *value, double *factor) {
    char number[32];
    const size_t n = strlen(value);
    if (n < 2 || n > sizeof number || (value[n - 1] != 'x' && value[n - 1] != 'X')) return false;
    snprintf(number, sizeof number, "%.*s", (int)(n - 1), value);
    return hp_quantity_read(number, HP_QUANTITY_COUNT, factor);
}

static double value_of(const hp_machine *m, const machine_field *f) {
    const void *at = (const char *)m + f->offset;
    return f->type == TYPE_INT32   ? *(const int32_t *)at
           : f->type == TYPE_INT64 ? (double)*(const int64_t *)at
                                   : *(const double *)at;
}

/* Another device brings its own rates and links. */
static void forget_device(machine_reading *r) {
    for (int i = 0; i < MACHINE_FIELDS; i++)
        if (r->field[i] == KEPT && (i >= M_CPU || i == M_LINK || i == M_LINK_RATE || i == M_LINK_LATENCY))
            r->field[i] = ABSENT;
}

static void change(machine_reading *r, const char *text) {
    char key[128], value[128], number[48];
    double factor = 1;
    const char *equals = strchr(text, '=');
    const bool one = equals && (size_t)(equals - text) < sizeof key && strlen(equals + 1) < sizeof value;
    snprintf(key, sizeof key, "%.*s", one ? (int)(equals - text) : 0, text);
    snprintf(value, sizeof value, "%s", one ? equals + 1 : "");
    const int i = one ? field_of(&r->m, key) : -1;
    const bool clause =
        i == M_NIC_RATE || i == M_DEVICES || i == M_TAPER || (i == M_NODES && strchr(value, '+'));
    snprintf(r->clause, sizeof r->clause, "%.60s", text);
    if (i >= 0 && is_factor(value, &factor)) {
        const machine_field *f = &machine_fields[i];
        machine_put(r, (machine_field_id)i, hp_quantity_text(factor * value_of(&r->m, f), f->unit, number));
    } else if (i >= 0 && (!clause || strchr(key, '.'))) {
        machine_put(r, (machine_field_id)i, value);
    } else {
        machine_read_clauses(r, text);
    }
    bool changed = r->slow;
    for (int k = 0; k < MACHINE_FIELDS; k++) changed = changed || r->field[k] != KEPT;
    if (!changed && !*r->described && !*r->problems)
        machine_complain(r, "nothing to change; for example nic=2x or nodes=16");
    *r->clause = '\0';
}

static void set(machine_reading *r, const char *text) {
    change(r, text);
    if (r->field[M_NODES] == GIVEN && r->field[M_ANY_SIZE] != GIVEN) r->m.any_size = false;
    if (strcasecmp(r->device, r->m.device.name) != 0) forget_device(r);
    machine_complete(r);
}

/* The class that "v100.memory=32G" refers to: the first class, unless the word names another. */
static int class_meant(const hp_machine *m, const char *text) {
    const size_t n = strcspn(text, ".=");
    for (int k = 0; k < hp_machine_classes(m) && text[n] == '.'; k++) {
        const hp_machine one = hp_machine_of_class(m, k);
        if (means_device(&one, text, n)) return k;
    }
    return 0;
}

/* Exchanges the first class with another. */
static void turn(hp_machine *m, int class) {
    if (class == 0) return;
    const hp_device_class first = m->device;
    m->device = m->mix.class[class - 1];
    m->mix.class[class - 1] = first;
}

hp_status hp_machine_set(hp_machine *m, const char *text, hp_error *err) {
    const int class = class_meant(m, text);
    machine_reading start = {.m = *m}, r;
    char before[sizeof m->assumed];
    memcpy(before, m->assumed, sizeof before);
    turn(&start.m, class);
    for (int i = 0; i < MACHINE_FIELDS; i++) start.field[i] = KEPT;
    snprintf(start.device, sizeof start.device, "%s", start.m.device.name);
    if (!(start.m.taper >= 1)) start.m.taper = 1;
    machine_read_mix(&start, text, set, &r);
    if (*r.problems) return hp_fail(err, HP_EUSAGE, "--set: %s", r.problems);
    if (*before && !*r.m.assumed) memcpy(r.m.assumed, before, sizeof before);
    turn(&r.m, class);
    *m = r.m;
    return HP_OK;
}
