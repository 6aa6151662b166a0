/* json.c - the fields of a machine as JSON text, and writing them; json_read.c reads them. */
#include "plan/machine/json.h"

#include <stddef.h>
#include <string.h>

#define FIELD(group, key, type, member, low, high)                                                           \
    { group, key, type, offsetof(hp_machine, member), sizeof(((hp_machine *)NULL)->member), low, high }

/* Ranges only keep arithmetic safe (devices fit in 32 bits, rates are not zero); they say nothing about real
 * machines. */
const machine_field machine_fields[MACHINE_FIELDS] = {
    FIELD("", "name", FIELD_NAME, name, 1, 63),
    FIELD("", "source", FIELD_TEXT, source, 0, 255),
    FIELD("", "nodes", FIELD_INT32, nodes, 1, 1e6),
    FIELD("", "devices_per_node", FIELD_INT32, devices_per_node, 1, 1024),
    FIELD("", "cores_per_node", FIELD_INT32, cores_per_node, 1, 1e5),
    FIELD("", "nics_per_node", FIELD_INT32, nics_per_node, 1, 1024),
    FIELD("", "share_cpu", FIELD_BOOL, share_cpu, 0, 0),
    FIELD("device", "name", FIELD_NAME, device.name, 1, 31),
    FIELD("device", "like", FIELD_NAME, device.like, 0, 31),
    FIELD("device", "is_cpu", FIELD_BOOL, device.is_cpu, 0, 0),
    FIELD("device", "memory_bytes", FIELD_INT64, device.memory_bytes, 1, 1e15),
    FIELD("device", "flops_per_s", FIELD_DOUBLE, device.flops_per_s, 1, 1e18),
    FIELD("device", "tf32_flops_per_s", FIELD_DOUBLE, device.tf32_flops_per_s, 0, 1e18),
    FIELD("device", "bf16_flops_per_s", FIELD_DOUBLE, device.bf16_flops_per_s, 0, 1e18),
    FIELD("device", "fp16_flops_per_s", FIELD_DOUBLE, device.fp16_flops_per_s, 0, 1e18),
    FIELD("device", "int8_ops_per_s", FIELD_DOUBLE, device.int8_ops_per_s, 0, 1e18),
    FIELD("device", "bytes_per_s", FIELD_DOUBLE, device.bytes_per_s, 1, 1e18),
    FIELD("device", "launch_s", FIELD_DOUBLE, device.launch_s, 0, 1),
    FIELD("intra", "name", FIELD_NAME, intra.name, 1, 31),
    FIELD("intra", "latency_s", FIELD_DOUBLE, intra.latency_s, 0, 1),
    FIELD("intra", "bytes_per_s", FIELD_DOUBLE, intra.bytes_per_s, 1, 1e18),
    FIELD("inter", "name", FIELD_NAME, inter.name, 1, 31),
    FIELD("inter", "latency_s", FIELD_DOUBLE, inter.latency_s, 0, 1),
    FIELD("inter", "bytes_per_s", FIELD_DOUBLE, inter.bytes_per_s, 1, 1e18),
};

static json_t *field_value(const machine_field *f, const hp_machine *m) {
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
    for (int i = 0; i < MACHINE_FIELDS; i++) {
        const machine_field *f = &machine_fields[i];
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
