/* json.c - machines as JSON text, read strictly: every field present, of its type and in its range;
 * nothing unknown, nothing twice. One table of fields serves reading, writing and messages. */
#include "plan/machine/machine.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum field_type {
    FIELD_NAME,
    FIELD_TEXT,
    FIELD_BOOL,
    FIELD_INT32,
    FIELD_INT64,
    FIELD_DOUBLE
} field_type;

typedef struct field {
    const char *group; /* object the field is in; "" = the machine itself */
    const char *key;
    field_type type;
    size_t offset, size;
    double low, high;
} field;

#define FIELD(group, key, type, member, low, high)                                                           \
    { group, key, type, offsetof(hp_machine, member), sizeof(((hp_machine *)NULL)->member), low, high }

/* Ranges only keep arithmetic safe (devices fit in 32 bits, rates are not zero); they say nothing about real
 * machines. */
static const field fields[] = {
    FIELD("", "name", FIELD_NAME, name, 0, 0),
    FIELD("", "source", FIELD_TEXT, source, 0, 0),
    FIELD("", "nodes", FIELD_INT32, nodes, 1, 1e6),
    FIELD("", "devices_per_node", FIELD_INT32, devices_per_node, 1, 1024),
    FIELD("", "cores_per_node", FIELD_INT32, cores_per_node, 1, 1e5),
    FIELD("", "nics_per_node", FIELD_INT32, nics_per_node, 1, 1024),
    FIELD("", "share_cpu", FIELD_BOOL, share_cpu, 0, 0),
    FIELD("device", "name", FIELD_NAME, device.name, 0, 0),
    FIELD("device", "is_cpu", FIELD_BOOL, device.is_cpu, 0, 0),
    FIELD("device", "memory_bytes", FIELD_INT64, device.memory_bytes, 1, 1e15),
    FIELD("device", "flops_per_s", FIELD_DOUBLE, device.flops_per_s, 1, 1e18),
    FIELD("device", "bytes_per_s", FIELD_DOUBLE, device.bytes_per_s, 1, 1e18),
    FIELD("device", "launch_s", FIELD_DOUBLE, device.launch_s, 0, 1),
    FIELD("intra", "name", FIELD_NAME, intra.name, 0, 0),
    FIELD("intra", "latency_s", FIELD_DOUBLE, intra.latency_s, 0, 1),
    FIELD("intra", "bytes_per_s", FIELD_DOUBLE, intra.bytes_per_s, 1, 1e18),
    FIELD("inter", "name", FIELD_NAME, inter.name, 0, 0),
    FIELD("inter", "latency_s", FIELD_DOUBLE, inter.latency_s, 0, 1),
    FIELD("inter", "bytes_per_s", FIELD_DOUBLE, inter.bytes_per_s, 1, 1e18),
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* --- reading --- */

typedef struct reading {
    const char *where;
    hp_error *err;
} reading;

static hp_status bad(const reading *r, const field *f, const char *expected) {
    return hp_fail(r->err, HP_EDATA, "%.300s: machine field \"%s%s%s\" must be %s", r->where, f->group,
                   *f->group ? "." : "", f->key, expected);
}

/* Names stand in cost tables between spaces: letters, digits and . _ - only. */
static bool is_name(const char *s) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return *s && strspn(s, allowed) == strlen(s);
}

static bool is_printable(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f) return false;
    return true;
}

static hp_status read_string(const reading *r, const field *f, const json_t *value, char *out) {
    const char *s = json_string_value(value);
    char expected[128];
    snprintf(expected, sizeof expected,
             f->type == FIELD_NAME ? "a string of 1 to %zu letters, digits, '.', '_', '-'"
                                   : "a string of at most %zu bytes without control characters",
             f->size - 1);
    if (!s || strlen(s) >= f->size) return bad(r, f, expected);
    if (f->type == FIELD_NAME ? !is_name(s) : !is_printable(s)) return bad(r, f, expected);
    memcpy(out, s, strlen(s) + 1);
    return HP_OK;
}

static hp_status read_number(const reading *r, const field *f, const json_t *value, char *out) {
    const bool whole = f->type != FIELD_DOUBLE;
    const double v = json_number_value(value); /* 0 for other types */
    char expected[128];
    snprintf(expected, sizeof expected, "a %s from %g to %g", whole ? "whole number" : "number", f->low,
             f->high);
    if (!json_is_number(value) || !(v >= f->low && v <= f->high) || (whole && v != floor(v)))
        return bad(r, f, expected);
    if (f->type == FIELD_INT32)
        *(int32_t *)(void *)out = (int32_t)v;
    else if (f->type == FIELD_INT64)
        *(int64_t *)(void *)out = (int64_t)v; /* at most 1e15: exact in a double */
    else
        *(double *)(void *)out = v;
    return HP_OK;
}

static hp_status read_field(const reading *r, const field *f, const json_t *object, hp_machine *m) {
    const json_t *value = json_object_get(object, f->key);
    char *out = (char *)m + f->offset;
    if (!value)
        return hp_fail(r->err, HP_EDATA, "%.300s: machine field \"%s%s%s\" is missing: add it", r->where,
                       f->group, *f->group ? "." : "", f->key);
    if (f->type == FIELD_NAME || f->type == FIELD_TEXT) return read_string(r, f, value, out);
    if (f->type != FIELD_BOOL) return read_number(r, f, value, out);
    if (!json_is_boolean(value)) return bad(r, f, "true or false");
    *(bool *)(void *)out = json_is_true(value);
    return HP_OK;
}

static bool is_group(const char *key) {
    for (int i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].group, key) == 0) return true;
    return false;
}

static bool is_key(const char *group, const char *key) {
    for (int i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].group, group) == 0 && strcmp(fields[i].key, key) == 0) return true;
    return false;
}

static hp_status refuse_unknown(const reading *r, const char *group, json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const bool known = is_key(group, key) || (!*group && *key && is_group(key));
        if (!known)
            return hp_fail(r->err, HP_EDATA, "%.300s: unknown machine field \"%.40s%s%.40s\": remove it",
                           r->where, group, *group ? "." : "", is_printable(key) ? key : "?");
    }
    return HP_OK;
}

static hp_status read_machine(const reading *r, json_t *root, hp_machine *m) {
    if (!json_is_object(root))
        return hp_fail(r->err, HP_EDATA, "%.300s: not a JSON object of a machine", r->where);
    HP_TRY(refuse_unknown(r, "", root));
    for (int i = 0; i < N_FIELDS; i++) {
        const field *f = &fields[i];
        json_t *object = *f->group ? json_object_get(root, f->group) : root;
        const bool first = *f->group && strcmp(fields[i - 1].group, f->group) != 0;
        if (first && !json_is_object(object))
            return hp_fail(r->err, HP_EDATA, "%.300s: machine field \"%s\" must be an object: add it",
                           r->where, f->group);
        if (first) HP_TRY(refuse_unknown(r, f->group, object));
        HP_TRY(read_field(r, f, object, m));
    }
    return HP_OK;
}

hp_status hp_machine_parse(const char *json, const char *where, hp_machine *m, hp_error *err) {
    json_error_t bad_json;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &bad_json);
    if (!root)
        return hp_fail(err, HP_EDATA, "%.300s: line %d: not JSON: %.200s", where, bad_json.line,
                       bad_json.text);
    hp_machine read = {0};
    const hp_status status = read_machine(&(reading){where, err}, root, &read);
    json_decref(root);
    if (status == HP_OK) *m = read;
    return status;
}

/* --- writing --- */

static json_t *field_value(const field *f, const hp_machine *m) {
    const char *at = (const char *)m + f->offset;
    const void *p = at;
    switch (f->type) {
    case FIELD_NAME:
    case FIELD_TEXT:
        return json_string(at);
    case FIELD_BOOL:
        return json_boolean(*(const bool *)p);
    case FIELD_INT32:
        return json_integer(*(const int32_t *)p);
    case FIELD_INT64:
        return json_integer(*(const int64_t *)p);
    case FIELD_DOUBLE:
        return json_real(*(const double *)p);
    }
    return NULL;
}

static json_t *machine_object(const hp_machine *m) {
    json_t *root = json_object();
    for (int i = 0; i < N_FIELDS; i++) {
        const field *f = &fields[i];
        json_t *object = *f->group ? json_object_get(root, f->group) : root;
        if (!object) {
            object = json_object();
            HP_ASSERT(json_object_set_new(root, f->group, object) == 0);
        }
        HP_ASSERT(json_object_set_new(object, f->key, field_value(f, m)) == 0);
    }
    return root;
}

/* 15 digits when they say the same numbers ("5e-06"), else the 17 that always do. */
char *hp_machine_text(hp_arena *arena, const hp_machine *m) {
    json_t *root = machine_object(m);
    const size_t layout = JSON_INDENT(2) | JSON_PRESERVE_ORDER;
    char *text = json_dumps(root, layout | JSON_REAL_PRECISION(15));
    HP_ASSERT(text);
    json_t *back = json_loads(text, 0, NULL);
    if (!json_equal(root, back)) {
        free(text);
        text = json_dumps(root, layout | JSON_REAL_PRECISION(17));
        HP_ASSERT(text);
    }
    char *copy = hp_arena_printf(arena, "%s\n", text);
    free(text);
    json_decref(back);
    json_decref(root);
    return copy;
}
