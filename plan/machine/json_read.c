/* json_read.c - a machine from JSON text, as people write it: the numbers of nodes and devices and the name of the
 * device are enough; what else is known of such a device fills the gaps, and what is given wins. All that is wrong is
 * said at once. */
#include "plan/machine/json.h"

#include "plan/base/nearest.h"
#include "plan/base/text.h"
#include "plan/machine/data_sheets.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define ENOUGH "{\"nodes\": 8, \"devices_per_node\": 4, \"device\": \"A100-SXM4-80GB\"}"

typedef enum found { ABSENT, GIVEN, WRONG } found;

typedef struct reading {
    hp_machine m;
    found field[MACHINE_FIELDS];
    char device[128];   /* as the file calls it */
    char problems[640]; /* joined by "; " */
} reading;

static void __attribute__((format(printf, 2, 3))) complain(reading *r, const char *format, ...) {
    const size_t used = strlen(r->problems);
    char text[320];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    if (used + strlen(text) + 8 < sizeof r->problems)
        snprintf(r->problems + used, sizeof r->problems - used, "%s%s", used ? "; " : "", text);
    else if (strcmp(r->problems + used - 3, "...") != 0)
        snprintf(r->problems + used, sizeof r->problems - used, "; ...");
}

/* "device.name" */
static const char *title(const machine_field *f, char out[64]) {
    snprintf(out, 64, "%s%s%s", f->group, *f->group ? "." : "", f->key);
    return out;
}

static int index_of(const char *group, const char *key) {
    for (int i = 0; i < MACHINE_FIELDS; i++)
        if (strcmp(machine_fields[i].group, group) == 0 && strcmp(machine_fields[i].key, key) == 0) return i;
    return -1;
}

/* --- values --- */

/* Letters, digits and . _ - only: names stand in cost tables between spaces. */
static bool is_name(const char *s) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return strspn(s, allowed) == strlen(s);
}

static bool is_printable(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f) return false;
    return true;
}

static bool read_string(reading *r, const machine_field *f, const json_t *value, char *out) {
    const char *s = json_string_value(value);
    char name[64];
    const bool length = s && strlen(s) >= (size_t)f->low && strlen(s) <= (size_t)f->high;
    if (length && (f->type == FIELD_NAME ? is_name(s) : is_printable(s))) {
        memcpy(out, s, strlen(s) + 1);
        return true;
    }
    complain(r,
             f->type == FIELD_NAME ? "\"%s\" must be a string of %g to %g letters, digits, '.', '_', '-'"
                                   : "\"%s\" must be a string of %g to %g bytes without control characters",
             title(f, name), f->low, f->high);
    return false;
}

static bool read_number(reading *r, const machine_field *f, const json_t *value, char *out) {
    const bool whole = f->type != FIELD_DOUBLE;
    const double v = json_number_value(value); /* 0 for other types */
    char name[64];
    if (!json_is_number(value) || !(v >= f->low && v <= f->high) || (whole && v != floor(v))) {
        complain(r, "\"%s\" must be a %s from %g to %g", title(f, name), whole ? "whole number" : "number",
                 f->low, f->high);
        return false;
    }
    if (f->type == FIELD_INT32)
        *(int32_t *)(void *)out = (int32_t)v;
    else if (f->type == FIELD_INT64)
        *(int64_t *)(void *)out = (int64_t)v; /* at most 1e15: exact in a double */
    else
        *(double *)(void *)out = v;
    return true;
}

/* The device is named as people and drivers do. */
static bool read_device(reading *r, const json_t *value) {
    const char *s = json_string_value(value);
    if (s && *s && strlen(s) < sizeof r->device && is_printable(s)) {
        snprintf(r->device, sizeof r->device, "%s", s);
        return true;
    }
    complain(r, "\"device.name\" must be a string of 1 to %zu bytes without control characters",
             sizeof r->device - 1);
    return false;
}

static bool read_value(reading *r, const machine_field *f, const json_t *value) {
    char *out = (char *)&r->m + f->offset, name[64];
    if (f->offset == offsetof(hp_machine, device.name)) return read_device(r, value);
    if (f->type == FIELD_NAME || f->type == FIELD_TEXT) return read_string(r, f, value, out);
    if (f->type != FIELD_BOOL) return read_number(r, f, value, out);
    if (!json_is_boolean(value)) {
        complain(r, "\"%s\" must be true or false", title(f, name));
        return false;
    }
    *(bool *)(void *)out = json_is_true(value);
    return true;
}

/* --- objects --- */

/* A field that begins as the key does, or the other way round: "memory" is "memory_bytes". */
static const char *begins_alike(const char *key, const char *const *name, int n) {
    for (int i = 0; i < n; i++) {
        const size_t a = strlen(key), b = strlen(name[i]);
        if (a > 2 && strncmp(key, name[i], a < b ? a : b) == 0) return name[i];
    }
    return NULL;
}

static void refuse_key(reading *r, const char *group, const char *key) {
    const char *names[2 * MACHINE_FIELDS];
    char all[160] = "";
    int n = 0;
    for (int i = 0; i < MACHINE_FIELDS; i++) {
        const machine_field *f = &machine_fields[i];
        const bool here = strcmp(f->group, group) == 0;
        const char *name = here ? f->key : f->group;
        if (*name && (here || !*group) && (n == 0 || strcmp(names[n - 1], name) != 0)) names[n++] = name;
    }
    const char *near = hp_nearest(key, names, n);
    if (!near) near = begins_alike(key, names, n);
    for (int i = 0; i < n && !near; i++)
        hp_text_add((hp_text){all, sizeof all}, "%s%s", i ? ", " : "", names[i]);
    complain(r, "there is no field \"%.40s%s%.40s\" (%s)", group, *group ? "." : "",
             is_printable(key) ? key : "?", near ? near : all);
}

static bool is_group(const char *key) {
    return strcmp(key, "device") == 0 || strcmp(key, "intra") == 0 || strcmp(key, "inter") == 0;
}

static void read_group(reading *r, const char *group, json_t *object);

/* A field, or a group: an object, or just the name of a device or link. */
static void read_key(reading *r, const char *group, const char *key, json_t *value) {
    const bool is_a_group = !*group && is_group(key);
    const int i = is_a_group ? index_of(key, "name") : index_of(group, key);
    if (is_a_group && json_is_object(value)) {
        read_group(r, key, value);
    } else if (is_a_group && !json_is_string(value)) {
        complain(r, "\"%s\" must be an object or a name", key);
        r->field[i] = WRONG;
    } else if (i < 0) {
        refuse_key(r, group, key);
    } else {
        r->field[i] = read_value(r, &machine_fields[i], value) ? GIVEN : WRONG;
    }
}

static void read_group(reading *r, const char *group, json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        read_key(r, group, key, value);
    }
}

/* --- what is not given --- */

static bool gives(const reading *r, const char *group, const char *key) {
    return r->field[index_of(group, key)] == GIVEN;
}

static void assumed(hp_machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void assumed(hp_machine *m, const char *format, ...) {
    const size_t used = strlen(m->assumed);
    va_list words;
    va_start(words, format);
    if (used) snprintf(m->assumed + used, sizeof m->assumed - used, "; ");
    vsnprintf(m->assumed + strlen(m->assumed), sizeof m->assumed - strlen(m->assumed), format, words);
    va_end(words);
}

static void name_device(const reading *r, hp_device_class *d) {
    if (is_name(r->device) && strlen(r->device) < sizeof d->name)
        snprintf(d->name, sizeof d->name, "%.31s", r->device);
    else
        hp_device_class_slug(r->device, d->name, sizeof d->name);
}

/* A CPU has no data sheet here: its memory and rates must be given. */
static void suppose_cpu(const reading *r, hp_machine *like) {
    static const hp_link_class shm = LINK_SHM, tcp = LINK_TCP;
    like->device = (hp_device_class){.like = "cpu", .is_cpu = true};
    name_device(r, &like->device);
    like->share_cpu = true;
    like->intra = shm;
    like->inter = tcp;
}

static void suppose_gpu(const reading *r, hp_machine *like) {
    bool sure;
    const hp_gpu_model *known = hp_gpu_model_find(r->device, r->m.device.memory_bytes, &sure);
    const hp_gpu_model *g = known ? known : hp_gpu_model_nearest(&r->m.device);
    like->device = r->m.device;
    if (known) {
        like->device = known->device;
        if (!sure) assumed(like, "device \"%.60s\" taken as %s", r->device, known->device.name);
    } else {
        hp_device_class_assume(&like->device, g);
        name_device(r, &like->device);
        if (*r->device && !gives(r, "device", "like"))
            assumed(like, "device \"%.60s\" is unknown: %s is assumed where nothing is given", r->device,
                    g->device.name);
    }
    like->intra = g->peer;
    like->inter = g->nic;
}

/* A link that is named has its usual rate, if it has one. */
static void suppose_link(const reading *r, const char *group, const hp_link_class *given,
                         hp_link_class *like) {
    const hp_link_class *known = hp_link_class_find(given->name);
    const hp_link_class none = {"", like->latency_s, 0};
    if (gives(r, group, "name") && strcmp(given->name, like->name) != 0) *like = known ? *known : none;
}

/* Its rate is given, or what links of its name have. */
static bool describes(const reading *r, const char *group, const hp_link_class *link) {
    return gives(r, group, "bytes_per_s") || (gives(r, group, "name") && hp_link_class_find(link->name));
}

static void say_links(const reading *r, hp_machine *m) {
    const bool intra = describes(r, "intra", &m->intra) || m->devices_per_node == 1,
               inter = (describes(r, "inter", &m->inter) && gives(r, "", "nics_per_node")) || m->nodes == 1;
    if (!intra) assumed(m, "%s of %g GB/s inside a node", m->intra.name, 1e-9 * m->intra.bytes_per_s);
    if (!inter)
        assumed(m, "%d x %s of %g GB/s between nodes", m->nics_per_node, m->inter.name,
                1e-9 * m->inter.bytes_per_s);
}

/* Numbers below their range are unknown. */
static bool is_unknown(const machine_field *f, const void *v) {
    return (f->type == FIELD_INT32 && *(const int32_t *)v < f->low) ||
           (f->type == FIELD_INT64 && (double)*(const int64_t *)v < f->low) ||
           (f->type == FIELD_DOUBLE && *(const double *)v < f->low);
}

static void fill_gaps(reading *r, const hp_machine *like) {
    for (int i = 0; i < MACHINE_FIELDS; i++) {
        const machine_field *f = &machine_fields[i];
        char *out = (char *)&r->m + f->offset, name[64];
        const bool is_device = f->offset == offsetof(hp_machine, device.name);
        if (r->field[i] != GIVEN || is_device) memcpy(out, (const char *)like + f->offset, f->size);
        if (r->field[i] == ABSENT && (is_device || is_unknown(f, out)))
            complain(r, "\"%s\" is missing", title(f, name));
    }
}

static void complete(reading *r) {
    hp_machine like = {.nics_per_node = 1};
    const bool cpu = gives(r, "device", "is_cpu") ? r->m.device.is_cpu : strcmp(r->device, "cpu") == 0;
    like.cores_per_node = r->m.devices_per_node > 0 ? r->m.devices_per_node : 1;
    if (cpu)
        suppose_cpu(r, &like);
    else
        suppose_gpu(r, &like);
    suppose_link(r, "intra", &r->m.intra, &like.intra);
    suppose_link(r, "inter", &r->m.inter, &like.inter);
    snprintf(like.name, sizeof like.name, "%dx%d-%.31s", r->m.nodes, r->m.devices_per_node, like.device.name);
    snprintf(like.source, sizeof like.source, "%s", cpu ? "" : "data sheet where nothing was given");
    fill_gaps(r, &like);
    memcpy(r->m.assumed, like.assumed, sizeof like.assumed);
    say_links(r, &r->m);
}

hp_status hp_machine_parse(const char *json, const char *where, hp_machine *m, hp_error *err) {
    json_error_t bad_json;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &bad_json);
    if (!root)
        return hp_fail(err, HP_EDATA, "%.300s: line %d: not JSON: %.200s", where, bad_json.line,
                       bad_json.text);
    reading r = {0};
    if (json_is_object(root)) {
        read_group(&r, "", root);
        complete(&r);
    } else {
        complain(&r, "not a JSON object");
    }
    json_decref(root);
    if (*r.problems)
        return hp_fail(err, HP_EDATA, "%.200s: no machine: %s; enough is, for example, " ENOUGH, where,
                       r.problems);
    *m = r.m;
    return HP_OK;
}
