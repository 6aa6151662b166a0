/* dnn_choice.c - chosen engines as JSON: an index, and knobs numbered by cudnnBackendKnobType_t. */
#include "exec/cuda/dnn/engine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KNOBS = CUDNN_KNOB_TYPE_COUNTS };

/* --- one engine --- */

static void add_knob(json_t *knobs, cudnnBackendDescriptor_t choice) {
    cudnnBackendKnobType_t type;
    int64_t n = 0, value = 0;
    char name[16];
    if (cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &n,
                                 &type) ||
        cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &n, &value))
        return;
    snprintf(name, sizeof name, "%d", (int)type);
    json_object_set_new(knobs, name, json_integer(value));
}

json_t *hp_dnn_choice_of(cudnnBackendDescriptor_t config, int64_t engine) {
    hp_dnn_owner o = {0};
    cudnnBackendDescriptor_t choice[MOST_KNOBS];
    json_t *knobs = json_object();
    int64_t n = 0;
    for (int i = 0; i < MOST_KNOBS; i++) choice[i] = hp_dnn_make(&o, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 MOST_KNOBS, &n, (void *)choice) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < n && i < MOST_KNOBS; i++) add_knob(knobs, choice[i]);
    hp_dnn_release(&o);
    return json_pack("{s:I, s:o}", "engine", (json_int_t)engine, "knobs", knobs);
}

static cudnnBackendDescriptor_t knob(hp_dnn_owner *o, const char *name, const json_t *value) {
    const cudnnBackendDescriptor_t d = hp_dnn_make(o, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)atoi(name);
    hp_dnn_set(o, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    hp_dnn_set_int(o, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, json_integer_value(value));
    hp_dnn_finish(o, d);
    return d;
}

static cudnnBackendDescriptor_t engine_of(hp_dnn_owner *o, cudnnBackendDescriptor_t graph, const hp_dnn *d,
                                          const json_t *choice) {
    const cudnnBackendDescriptor_t e = hp_dnn_make(o, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    hp_dnn_set_desc(o, e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    hp_dnn_set_int(o, e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                   json_integer_value(json_object_get(choice, "engine")));
    if (d->described) hp_dnn_set_desc(o, e, CUDNN_ATTR_ENGINE_DEVICEPROP, d->described);
    hp_dnn_finish(o, e);
    return e;
}

cudnnBackendDescriptor_t hp_dnn_config_of(hp_dnn_owner *o, cudnnBackendDescriptor_t graph, const hp_dnn *d,
                                          const json_t *choice) {
    cudnnBackendDescriptor_t knobs[MOST_KNOBS];
    int64_t n = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(choice, "knobs"), name, value) {
        if (n < MOST_KNOBS) knobs[n++] = knob(o, name, value);
    }
    const cudnnBackendDescriptor_t engine = engine_of(o, graph, d, choice),
                                   config = hp_dnn_make(o, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    hp_dnn_set_desc(o, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (n)
        hp_dnn_set(o, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
                   (const void *)knobs);
    hp_dnn_finish(o, config);
    return config;
}

/* --- all of them --- */

json_t *hp_dnn_choices_document(const hp_dnn *d, json_t *choices) {
    return json_pack("{s:s, s:I, s:O}", "gpu", d->gpu, "cudnn", (json_int_t)cudnnGetVersion(), "engines",
                     choices);
}

static char *text_of(const hp_dnn *d, json_t *choices) {
    json_t *o = hp_dnn_choices_document(d, choices);
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS);
    HP_ASSERT(text);
    json_decref(o);
    return text;
}

static bool is_choice(const json_t *v) {
    const json_t *knobs = json_object_get(v, "knobs");
    const char *name;
    json_t *value;
    if (!json_is_integer(json_object_get(v, "engine")) || !json_is_object(knobs)) return false;
    json_object_foreach((json_t *)knobs, name, value) {
        if (!json_is_integer(value) || !*name || name[strspn(name, "0123456789")]) return false;
    }
    return true;
}

/* *engines = NULL: the document is for another GPU or another cuDNN. */
static hp_status read_document(const hp_dnn *d, const json_t *o, const char *of, json_t **all,
                               hp_error *err) {
    json_t *engines = json_object_get(o, "engines"), *value;
    const char *gpu = json_string_value(json_object_get(o, "gpu")), *key;
    const json_int_t version = json_integer_value(json_object_get(o, "cudnn"));
    if (!gpu || !json_is_object(engines) || version < 1)
        return hp_fail(err, HP_EDATA, "%s is no table of cuDNN engines", of);
    json_object_foreach(engines, key, value) {
        if (!is_choice(value))
            return hp_fail(err, HP_EDATA, "%s: the engine of `%.100s` is damaged", of, key);
    }
    *all = strcmp(gpu, d->gpu) == 0 && version == (json_int_t)cudnnGetVersion() ? engines : NULL;
    return HP_OK;
}

json_t *hp_dnn_choices_of(const hp_dnn *d, const json_t *o) {
    json_t *engines = NULL;
    hp_error none;
    const bool ours = read_document(d, o, "", &engines, &none) == HP_OK && engines;
    return ours ? json_incref(engines) : json_object();
}

/* --- between ranks --- */

char *hp_dnn_choices_export(const hp_dnn *d) {
    json_t *news = json_object();
    for (const hp_dnn_engine *e = d->engines; e; e = e->next)
        if (!json_object_get(d->shared, e->key)) json_object_set(news, e->key, e->choice);
    char *text = json_object_size(news) ? text_of(d, news) : NULL;
    json_decref(news);
    return text;
}

static bool is_in_use(const hp_dnn *d, const char *key, const json_t *choice) {
    for (const hp_dnn_engine *e = d->engines; e; e = e->next)
        if (strcmp(e->key, key) == 0 && !json_equal(e->choice, choice)) return false;
    return true;
}

/* Choices that no rank has announced before. */
static json_t *fresh_of(hp_dnn *d, json_t *engines) {
    json_t *fresh = json_object(), *choice;
    const char *key;
    json_object_foreach(engines, key, choice) {
        if (!json_object_get(d->shared, key)) json_object_set(fresh, key, choice);
    }
    json_object_update(d->shared, fresh);
    json_object_update(d->choices, fresh);
    return fresh;
}

static hp_status import_choices(hp_dnn *d, const json_t *o, const char *of, hp_error *err) {
    json_t *engines = NULL, *choice;
    const char *key;
    hp_status s = HP_OK;
    HP_TRY(read_document(d, o, of, &engines, err));
    json_t *fresh = fresh_of(d, engines);
    json_object_foreach(fresh, key, choice) {
        if (s == HP_OK && !is_in_use(d, key, choice)) s = hp_dnn_replan(d, key, err);
    }
    json_decref(fresh);
    return s;
}

hp_status hp_dnn_choices_import(hp_dnn *d, const char *text, hp_error *err) {
    static const char of[] = "a table of cuDNN engines";
    json_error_t why;
    json_t *o = json_loads(text, 0, &why);
    if (!o) return hp_fail(err, HP_EDATA, "%s: %s", of, why.text);
    const hp_status s = import_choices(d, o, of, err);
    json_decref(o);
    return s;
}
