/* attr.c - checks that a node's attributes are known, of the right type and in range. */
#include "networks/onnx/onnx_inside.h"

#include <inttypes.h>
#include <string.h>

const Onnx__AttributeProto *onnx_attr(const onnx_call *c, const char *name) {
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = c->node->attribute[i];
        if (a->name && strcmp(a->name, name) == 0) return a;
    }
    return NULL;
}

static hp_status find(const onnx_call *c, const char *name, Onnx__AttributeProto__AttributeType type,
                      const Onnx__AttributeProto **a) {
    *a = onnx_attr(c, name);
    if (!*a || !(*a)->has_type || (*a)->type == type) return HP_OK; /* the type is optional in old files */
    return onnx_fail(c, "its attribute '%s' has the wrong type", name);
}

hp_status onnx_attr_int(const onnx_call *c, const char *name, int64_t low, int64_t high, int64_t *value) {
    const Onnx__AttributeProto *a;
    HP_TRY(find(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &a));
    if (!a) return HP_OK;
    if (low == high && a->i != low)
        return onnx_fail(c, "attribute %s = %" PRId64 " is not supported: only %" PRId64, name, a->i, low);
    if (a->i < low || a->i > high)
        return onnx_fail(c, "attribute %s = %" PRId64 " is not supported: %" PRId64 " to %" PRId64 " is",
                         name, a->i, low, high);
    *value = a->i;
    return HP_OK;
}

hp_status onnx_attr_float(const onnx_call *c, const char *name, double *value) {
    const Onnx__AttributeProto *a;
    HP_TRY(find(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &a));
    if (a) *value = (double)a->f;
    return HP_OK;
}

hp_status onnx_attr_text(const onnx_call *c, const char *name, const char **value) {
    const Onnx__AttributeProto *a;
    HP_TRY(find(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, &a));
    if (!a) return HP_OK;
    char *text = hp_arena_alloc(c->r->scratch, a->s.len + 1);
    if (a->s.len) memcpy(text, a->s.data, a->s.len);
    *value = text;
    return HP_OK;
}

hp_status onnx_attr_ints(const onnx_call *c, const char *name, int most, int64_t *value, int *n) {
    const Onnx__AttributeProto *a;
    *n = 0;
    HP_TRY(find(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, &a));
    if (!a) return HP_OK;
    if (a->n_ints > (size_t)most)
        return onnx_fail(c, "its attribute '%s' has more than %d numbers", name, most);
    *n = (int)a->n_ints;
    for (int i = 0; i < *n; i++) value[i] = a->ints[i];
    return HP_OK;
}

hp_status onnx_ints(const onnx_call *c, const char *name, int k, int most, int64_t *value, int *n) {
    const onnx_const *k_const;
    HP_TRY(onnx_attr_ints(c, name, most, value, n));
    if (*n || !onnx_in(c, k)) return HP_OK;
    HP_TRY(onnx_need_const(c, k, name, &k_const));
    if (!onnx_type_of(k_const->type)->whole || k_const->count > most)
        return onnx_fail(c, "its %s must be at most %d whole numbers", name, most);
    *n = (int)k_const->count;
    for (int i = 0; i < *n; i++) value[i] = onnx_integer(k_const, i);
    return HP_OK;
}

/* Unknown attributes are errors: they may change what the node computes. */
hp_status onnx_check_attributes(const onnx_call *c) {
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const char *name = c->node->attribute[i]->name;
        char word[80];
        snprintf(word, sizeof word, " %.70s ", name ? name : "?");
        if (!strstr(c->op->attributes, word))
            return onnx_fail(c, "attribute '%s' is not supported",
                             onnx_clean(c->r->scratch, name ? name : "?"));
    }
    return HP_OK;
}

hp_status onnx_axis(const onnx_call *c, int64_t axis, int n, int *out) {
    if (axis < -n || axis >= n)
        return onnx_fail(c, "axis %" PRId64 " does not exist: the input has %d dimensions", axis, n);
    *out = (int)(axis < 0 ? axis + n : axis);
    return HP_OK;
}
