/* simulate_options.c - the options of `simulate`: from words to values, each mistake with its own message. */
#include "cli/options/simulate.h"

#include "costmodels/framework/framework.h"

#include "base/host.h"
#include "base/units.h"
#include "networks/graph/graph_json.h"
#include "plan/strategy/template.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

enum option_key {
    KEY_NET = 256,
    KEY_IMAGE,
    KEY_CLASSES,
    KEY_MODE,
    KEY_BATCH,
    KEY_MACHINE,
    KEY_SET,
    KEY_RANKS_PER_NODE,
    KEY_COST,
    KEY_GPUS,
    KEY_STRATEGY,
    KEY_DEVICE,
    KEY_TOP,
    KEY_SORT,
    KEY_SEED,
    KEY_OUT,
    KEY_LIMIT,
    KEY_JITTER,
    KEY_STRAGGLER,
    KEY_ALL,
    KEY_NO_FOLD,
    KEY_JSON,
    KEY_PREC,
    KEY_FLOAT,
    KEY_MEMORY,
    KEY_RULES,
    KEY_ONNX,
    KEY_MEASURE,
    KEY_SECONDS,
    KEY_CHECK_SPEED,
    KEY_AS,
    KEY_BATCH_PER_GPU,
    KEY_SAMPLES,
    KEY_DATA,
    KEY_PRICE,
    KEY_OPTIMIZER,
    KEY_CLIP_NORM
};

static const struct argp_option option_list[] = {
    {"gpus", KEY_GPUS, "N[,N...]", 0,
     "devices (default: all of the machine); a list sweeps, also 1,2,4,...,64", 1},
    {"ranks", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1}, /* no short form of --ranks-per-node */
    {"image", KEY_IMAGE, "S|HxW[,S...]|max", 0,
     "image size (224); of several each has its plan, the last is written; max: the largest square that has "
     "one",
     1},
    {"net", KEY_NET, "NAME", 0, "network (resnet101)", 1},
    {"onnx", KEY_ONNX, "FILE", 0, "network from an ONNX file, or from a model.db of `hplan import`", 1},
    {"classes", KEY_CLASSES, "K", 0, "classes (1000; 10 for the CIFAR family and cnn)", 1},
    {"mode", KEY_MODE, "train|infer", 0, "what a step is (train)", 1},
    {"batch", KEY_BATCH, "B|max", 0,
     "global batch (one per device); max: the largest that --strategy has a plan for", 1},
    {"batch-per-gpu", KEY_BATCH_PER_GPU, "B", 0, "batch of each device: the global one grows with them", 1},
    {"samples", KEY_SAMPLES, "N", 0, "of an epoch: says its time, device hours and energy", 1},
    {"data", KEY_DATA, "NAME", 0, "the same by name: fashion-mnist", 1},
    {"price", KEY_PRICE, "X", 0, "of a device's hour: says what an epoch costs", 1},
    {"machine", KEY_MACHINE, "NAME|FILE|TEXT", 0,
     "local, a shipped machine, a file, or \"nodes=8; node=4 x a100-80\" (hplan machine)", 2},
    {"ranks-per-node", KEY_RANKS_PER_NODE, "N", 0, "devices of a node beyond N stay empty", 2},
    {"set", KEY_SET, "CHANGE", 0, "what if: nic=2x, nodes=16, a100.memory=80G; again for more", 2},
    {"cost", KEY_COST, "FILE", 0, "cost table, as hplan calibrate writes it", 2},
    {"check-speed", KEY_CHECK_SPEED, NULL, 0, "predict for the speed that this machine has now: takes 2 s",
     2},
    {"device", KEY_DEVICE, HP_DEVICE_NAMES, 0, "what will run the plan (cuda on machines of GPUs, else cpu)",
     2},
    {"prec", KEY_PREC, "LIST", 0,
     "precisions: fp32, tf32, bf16, fp16; in inference int8, int8-dynamic (fp32)", 2},
    {"optimizer", KEY_OPTIMIZER, hp_optimizer_names + 1, 0, "what trains the parameters (sgd)", 2},
    {"clip-norm", KEY_CLIP_NORM, NULL, 0,
     "gradients are clipped by the norm of all of them (hplan run --clip-norm X)", 2},
    {"float-layers", KEY_FLOAT, "LIST", 0, "layers that low precision leaves real, by name", 2},
    {"memory-limit", KEY_LIMIT, "BYTES", 0, "memory of one rank", 2},
    {"memory", KEY_MEMORY, "planned|eager", 0,
     "memory as planned (planned), or what an eager framework keeps; that without recomputation", 2},
    {"strategy", KEY_STRATEGY, "S", 0,
     "evaluate just this strategy; dp=* is as wide as --gpus; several are compared", 3},
    {"top", KEY_TOP, "K", 0,
     "show the best K; otherwise one row per family, of 10 and each family's best stored", 3},
    {"all", KEY_ALL, NULL, 0, "show and store every candidate", 3},
    {"sort", KEY_SORT, "time|images|memory", 0, "order (time)", 3},
    {"as", KEY_AS, "FRAMEWORK", 0,
     "what such a framework would take: pytorch-1.13, pytorch-2, mxnet, tensorflow-1.15, megatron-lm, "
     "tensorrt and others of docs/frameworks.md (hplan itself)",
     2},
    {"rules", KEY_RULES, "hplan|mpi4dl", 0, "whose validity rules (hplan)", 3},
    {"no-fold", KEY_NO_FOLD, NULL, 0,
     "simulate every rank and micro-batch, alike or not: the same times; with --jitter each draws its own",
     4},
    {"jitter", KEY_JITTER, "CV", 0, "relative spread of compute times instead of the cost table's, 0: none",
     4},
    {"straggler", KEY_STRAGGLER, "RANK:FACTOR", 0, "one rank computes slower by this factor", 4},
    {"seed", KEY_SEED, "N", 0, "of jitter, weights and data (1)", 4},
    {"out", KEY_OUT, "FILE", 0, "where the plan goes (plan.db)", 5},
    {"measure", KEY_MEASURE, "K", 0, "then run the best K in turn; the fastest becomes the plan (hplan tune)",
     5},
    {"seconds", KEY_SECONDS, "S", 0, "time for --measure (60)", 5},
    {"json", KEY_JSON, NULL, 0, "one JSON object", 5},
    {0}};

/* Where in simulate_options an option's word or switch goes. */
typedef struct place {
    int key;
    size_t at;
} place;

#define AT(field) offsetof(simulate_options, field)
static const place words[] = {{KEY_NET, AT(network.net)},
                              {KEY_IMAGE, AT(network.image)},
                              {KEY_CLASSES, AT(network.classes)},
                              {KEY_ONNX, AT(network.onnx)},
                              {KEY_PREC, AT(network.prec)},
                              {KEY_FLOAT, AT(network.float_layers)},
                              {KEY_MODE, AT(step.mode)},
                              {KEY_BATCH, AT(step.batch)},
                              {KEY_BATCH_PER_GPU, AT(step.batch_per_gpu)},
                              {KEY_OPTIMIZER, AT(step.optimizer)},
                              {KEY_SEED, AT(step.seed)},
                              {KEY_SAMPLES, AT(epoch.samples)},
                              {KEY_DATA, AT(epoch.data)},
                              {KEY_PRICE, AT(epoch.price)},
                              {KEY_MACHINE, AT(machine.name)},
                              {KEY_GPUS, AT(machine.gpus)},
                              {KEY_RANKS_PER_NODE, AT(machine.ranks_per_node)},
                              {KEY_DEVICE, AT(machine.device)},
                              {KEY_MEMORY, AT(machine.memory)},
                              {KEY_LIMIT, AT(machine.memory_limit)},
                              {KEY_COST, AT(costs.table)},
                              {KEY_AS, AT(costs.as)},
                              {KEY_JITTER, AT(costs.jitter)},
                              {KEY_STRAGGLER, AT(costs.straggler)},
                              {KEY_RULES, AT(rules)},
                              {KEY_TOP, AT(show.top)},
                              {KEY_SORT, AT(show.sort)},
                              {KEY_MEASURE, AT(race.measure)},
                              {KEY_SECONDS, AT(race.seconds)},
                              {KEY_OUT, AT(out)},
                              {0, 0}},
                   switches[] = {{KEY_ALL, AT(show.all)},
                                 {KEY_JSON, AT(show.json)},
                                 {KEY_CLIP_NORM, AT(step.clip_norm)},
                                 {KEY_CHECK_SPEED, AT(costs.check_speed)},
                                 {KEY_NO_FOLD, AT(costs.no_fold)},
                                 {0, 0}};
#undef AT

/* NULL: not in this table. */
static void *field_of(simulate_options *o, const place *table, int key) {
    for (; table->key; table++)
        if (table->key == key) return (char *)o + table->at;
    return NULL;
}

/* One too many is said by simulate_parse_curves. */
static void add_strategy(simulate_options *o, const char *text) {
    if (!o->strategy)
        o->strategy = text;
    else if (o->n_more < SIM_MAX_STRATEGIES)
        o->more[o->n_more++] = text;
    else
        o->more[SIM_MAX_STRATEGIES - 1] = text;
}

static void add_change(simulate_options *o, const char *text, struct argp_state *state) {
    if (o->machine.n_set == SIM_MAX_CHANGES) argp_error(state, "--set: at most %d of them", SIM_MAX_CHANGES);
    o->machine.set[o->machine.n_set++] = text;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
    simulate_options *o = state->input;
    const char **word = field_of(o, words, key);
    bool *is_on = field_of(o, switches, key);
    if (word) *word = arg;
    if (is_on) *is_on = true;
    if (word || is_on) return 0;
    switch (key) {
    case KEY_STRATEGY:
        add_strategy(o, arg);
        return 0;
    case KEY_SET:
        add_change(o, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is no option; for example: hplan simulate --gpus 8 --image 1024", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp simulate_argp = {
    option_list,
    parse_option,
    "",
    "Predicts the step time and memory of every strategy for a network and a machine, ranks them, and writes "
    "the best one "
    "to plan.db.\vFor example: hplan simulate --net resnet101 --image 1024 --gpus 128 --machine "
    "thesis-a100\n\n"
    "A machine is described as in \"nodes=8; node=4 x A100-SXM4-80GB\", on the command line or in a file: "
    "devices "
    "are called as nvidia-smi prints them, and what is assumed is said. All of it: docs/machines.md.",
    NULL,
    NULL,
    NULL};

static hp_status parse_int(const char *text, const char *what, int64_t low, int64_t high, int64_t *value,
                           hp_error *err) {
    return text ? hp_parse_int(text, what, low, high, value, err) : HP_OK;
}

/* A word among names; `names` ends with NULL. */
static hp_status parse_name(const char *text, const char *what, const char *const *names, int *value,
                            hp_error *err) {
    if (!text) return HP_OK;
    for (int i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *value = i;
            return HP_OK;
        }
    }
    char known[128] = "";
    for (int i = 0; names[i]; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    }
    return hp_fail(err, HP_EUSAGE, "%s '%.40s' is not one of %s", what, text, known);
}

/* 0 by hand is none, whatever the table says. */
static hp_status parse_jitter(const char *text, double *cv, hp_error *err) {
    HP_TRY(hp_parse_double(text, "--jitter", 0, 10, cv, err));
    if (*cv <= 0) *cv = -1;
    return HP_OK;
}

static hp_status parse_straggler(const char *text, hp_eval_setup *e, hp_error *err) {
    char rank[32];
    const char *colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof rank)
        return hp_fail(err, HP_EUSAGE, "--straggler '%.40s' is not RANK:FACTOR, for example 3:1.5", text);
    snprintf(rank, sizeof rank, "%.*s", (int)(colon - text), text);
    int64_t value;
    HP_TRY(hp_parse_int(rank, "--straggler rank", 0, INT32_MAX, &value, err));
    e->straggler_rank = (int)value;
    return hp_parse_double(colon + 1, "--straggler factor", 0.01, 1000, &e->straggler_factor, err);
}

/* A network from a file says its name, and its image size and classes where they are fixed. */
static hp_status read_network(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err) {
    if (o->network.net) return hp_fail(err, HP_EUSAGE, "--net and --onnx exclude each other: give one");
    HP_TRY(hp_model_read(arena, o->network.onnx, o->network.image ? s->network.image_h : 0,
                         o->network.image ? s->network.image_w : 0, &s->network.trained, err));
    snprintf(s->network.net, sizeof s->network.net, "%s", s->network.trained->net);
    s->network.image_h = s->network.trained->image_h;
    s->network.image_w = s->network.trained->image_w;
    s->network.classes = s->network.trained->classes;
    s->network.model = hp_graph_json(arena, s->network.trained);
    return HP_OK;
}

static hp_status parse_network(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err) {
    snprintf(s->network.net, sizeof s->network.net, "%s", o->network.net ? o->network.net : "resnet101");
    s->network.image_h = s->network.image_w = 224;
    if (o->network.image)
        HP_TRY(cli_parse_image(o->network.image, &s->network.image_h, &s->network.image_w, err));
    if (o->network.onnx) return read_network(arena, o, s, err);
    int64_t classes = hp_net_default_classes(s->network.net);
    HP_TRY(parse_int(o->network.classes, "--classes", 1, 1 << 24, &classes, err));
    s->network.classes = (int)classes;
    HP_TRY(hp_net_build(arena, s->network.net, s->network.image_h, s->network.image_w, s->network.classes,
                        &s->network.trained, err));
    if (o->network.image && hp_graph_ids(s->network.trained) > 0)
        return hp_fail(err, HP_EUSAGE, "network %s reads ids, not images: leave out --image", s->network.net);
    s->network.image_h = s->network.trained->image_h; /* a network that reads text has its size in its name */
    s->network.image_w = s->network.trained->image_w;
    s->network.classes = s->network.trained->classes;
    return HP_OK;
}

/* A list of names; the strategy's own precision when there is one. */
static hp_status add_precision(const char *word, simulate_setup *s, hp_error *err) {
    int p = 0;
    if (!strcmp(word, "fp8") || !strcmp(word, "int4"))
        return hp_fail(err, HP_EUNAVAIL, "this version does not have --prec %s", word);
    HP_TRY(parse_name(word, "--prec", hp_prec_names, &p, err));
    for (int i = 0; i < s->network.n_prec; i++)
        if (s->network.prec[i] == p) return hp_fail(err, HP_EUSAGE, "--prec: %s comes twice", word);
    s->network.prec[s->network.n_prec++] = p;
    return HP_OK;
}

/* Is the precision possible on this device, with the units of the machine's GPUs? */
static hp_status check_precision(const simulate_setup *s, int prec, hp_error *err) {
    const hp_device_class *class = &s->machine.device;
    hp_reject why;
    if (!hp_prec_allowed(prec, s->step.mode == HP_MODE_INFER, s->device, &why))
        return hp_fail(err, HP_EUNAVAIL, "%s: %s; give %s", hp_reject_text(why.code), why.limit, why.fix);
    const hp_framework *f = s->eval.framework;
    if (f && f->kernels.no_int8 && hp_device_on_gpu(s->device) &&
        (prec == HP_PREC_INT8 || prec == HP_PREC_INT8_DYNAMIC))
        return hp_fail(err, HP_EUNAVAIL, "%s: %s multiplies no bytes on GPUs; --as tensorrt does",
                       hp_reject_text(HP_REJECT_PREC), f->name);
    if (!hp_device_on_gpu(s->device) || hp_device_class_has(class, (hp_prec)prec)) return HP_OK;
    return hp_fail(err, HP_EUNAVAIL, "%s: %s has no units for %s; give --prec %s",
                   hp_reject_text(HP_REJECT_PREC), class->name, hp_prec_names[prec],
                   hp_device_class_has(class, HP_PREC_FP16) ? "fp16" : "fp32");
}

/* Strategies beside the first may have precisions of their own, which then stand among those named. */
static hp_status check_templates(simulate_setup *s, hp_error *err) {
    for (int i = 1; i < s->curves.n_template; i++) {
        hp_strategy smallest;
        HP_TRY(hp_template_smallest(s->curves.template[i], &smallest, err));
        const int prec = smallest.prec;
        bool named = prec == HP_PREC_FP32;
        for (int k = 0; k < s->network.n_prec; k++) named |= s->network.prec[k] == prec;
        if (!named) HP_TRY(check_precision(s, prec, err));
        if (!named && s->network.n_prec < HP_PRECS) s->network.prec[s->network.n_prec++] = prec;
    }
    return HP_OK;
}

static hp_status parse_precisions(const simulate_options *o, simulate_setup *s, hp_error *err) {
    char copy[64], *save = NULL;
    if (!o->network.prec) {
        s->network.prec[s->network.n_prec++] =
            s->curves.has_strategy ? s->curves.strategy.prec : HP_PREC_FP32;
    } else {
        if ((size_t)snprintf(copy, sizeof copy, "%s", o->network.prec) >= sizeof copy)
            return hp_fail(err, HP_EUSAGE, "--prec: the list is too long");
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
            HP_TRY(add_precision(word, s, err));
        if (!s->network.n_prec)
            return hp_fail(err, HP_EUSAGE, "--prec is empty; for example --prec fp32,int8");
    }
    if (s->curves.has_strategy && s->network.n_prec > 1)
        return hp_fail(err, HP_EUSAGE, "--strategy is in one precision, --prec has %d", s->network.n_prec);
    if (s->curves.has_strategy && s->curves.strategy.prec != HP_PREC_FP32 &&
        s->curves.strategy.prec != s->network.prec[0])
        return hp_fail(err, HP_EUSAGE, "--strategy says prec=%s, --prec %s: give one of them",
                       hp_prec_names[s->curves.strategy.prec], o->network.prec);
    if (s->curves.has_strategy) s->curves.strategy.prec = s->network.prec[0];
    for (int i = 0; i < s->network.n_prec; i++) HP_TRY(check_precision(s, s->network.prec[i], err));
    return check_templates(s, err);
}

hp_status simulate_precision(hp_arena *arena, simulate_setup *s, int prec, hp_error *err) {
    const hp_deploy_options o = {.prec = prec, .float_layers = s->network.float_layers};
    hp_reject why;
    if (!hp_device_has_layers(s->device, s->network.trained, &why))
        return hp_fail(err, HP_EUNAVAIL, "%s: %s; give %s", hp_reject_text(why.code), why.limit, why.fix);
    if (s->step.mode == HP_MODE_INFER)
        return hp_graph_deploy(arena, s->network.trained, &o, &s->network.graph, err);
    s->network.graph = hp_graph_train_in(arena, s->network.trained, prec);
    s->network.graph->optimizer = s->step.optimizer;
    s->network.graph->clips = s->step.clips;
    return HP_OK;
}

static hp_status parse_values(const simulate_options *o, simulate_setup *s, hp_error *err) {
    static const char *const modes[] = {"train", "infer", NULL},
                             *const sorts[] = {"time", "images", "memory", NULL},
                             *const memories[] = {"planned", "eager", NULL};
    int mode = 0, sort = 0, memory = 0, rules = HP_RULES_HPLAN;
    int64_t top = 10, seed = 1;
    HP_TRY(parse_name(o->step.mode, "--mode", modes, &mode, err));
    HP_TRY(parse_name(o->show.sort, "--sort", sorts, &sort, err));
    HP_TRY(parse_name(o->machine.memory, "--memory", memories, &memory, err));
    HP_TRY(parse_name(o->rules, "--rules", hp_rules_names, &rules, err));
    HP_TRY(parse_int(o->show.top, "--top", 1, 1 << 20, &top, err));
    s->top_given = o->show.top || o->show.all;
    HP_TRY(parse_int(o->step.seed, "--seed", 0, INT64_MAX, &seed, err));
    HP_TRY(parse_int(o->step.batch, "--batch", 1, INT64_C(1) << 40, &s->step.batch, err));
    s->step.mode = mode == 0 ? HP_MODE_TRAIN : HP_MODE_INFER;
    HP_TRY(hp_optimizer_find(o->step.optimizer, &s->step.optimizer, err));
    s->step.clips = o->step.clip_norm;
    if (s->step.mode == HP_MODE_INFER && (o->step.optimizer || o->step.clip_norm))
        return hp_fail(err, HP_EUSAGE,
                       "--optimizer and --clip-norm are about training: leave out --mode infer");
    s->step.seed = (uint64_t)seed;
    s->rules = (hp_rules)rules;
    s->search = (hp_search_options){
        .top = o->show.all ? INT_MAX : (int)top, .sort = (hp_sort)sort, .all_of_top = s->top_given};
    s->eval = (hp_eval_setup){
        .straggler_rank = -1, .no_fold = o->costs.no_fold, .eager = memory == 1, .rules = s->rules};
    HP_TRY(hp_framework_find(o->costs.as, &s->eval.framework, err));
    if (s->eval.framework && s->eval.framework->infers && s->step.mode == HP_MODE_TRAIN)
        return hp_fail(err, HP_EUSAGE, "--as %s does not train: add --mode infer", s->eval.framework->name);
    if (s->eval.framework && !o->machine.memory) s->eval.eager = s->eval.framework->memory.eager;
    if (o->machine.memory_limit) HP_TRY(hp_parse_bytes(o->machine.memory_limit, &s->eval.memory_limit, err));
    if (o->machine.memory_limit && s->eval.memory_limit < 1)
        return hp_fail(err, HP_EUSAGE, "--memory-limit %.40s: nothing fits in it; leave it out for no limit",
                       o->machine.memory_limit);
    if (o->costs.jitter) HP_TRY(parse_jitter(o->costs.jitter, &s->eval.jitter_cv, err));
    if (o->costs.straggler) HP_TRY(parse_straggler(o->costs.straggler, &s->eval, err));
    return HP_OK;
}

hp_status simulate_prepare(hp_arena *arena, const simulate_options *o, simulate_setup *s, hp_error *err) {
    *s = (simulate_setup){0};
    HP_TRY(parse_values(o, s, err));
    HP_TRY(simulate_parse_curves(o, s, err));
    HP_TRY(simulate_choose_machine(o, s, err));
    HP_TRY(parse_network(arena, o, s, err));
    HP_TRY(parse_precisions(o, s, err));
    s->network.float_layers = o->network.float_layers;
    HP_TRY(simulate_precision(arena, s, s->network.prec[0], err));
    HP_TRY(hp_cost_load(arena, o->costs.table, &s->machine, &s->costs.table, err));
    return simulate_choose_speed(arena, o, s, err);
}

hp_plan simulate_plan(const simulate_setup *s, const hp_strategy *strategy, int64_t batch) {
    hp_plan plan = {.image_h = s->network.image_h,
                    .image_w = s->network.image_w,
                    .classes = s->network.classes,
                    .mode = (int32_t)s->step.mode,
                    .dtype = (int32_t)s->network.dtype,
                    .batch = batch,
                    .seed = s->step.seed,
                    .optimizer = s->step.optimizer,
                    .clips = s->step.clips,
                    .device = s->device,
                    .strategy = *strategy,
                    .machine = s->machine,
                    .model = s->network.model,
                    .float_layers = s->step.mode == HP_MODE_INFER ? s->network.float_layers : NULL};
    snprintf(plan.net, sizeof plan.net, "%s", s->network.net);
    return plan;
}

hp_eval *simulate_eval(hp_arena *arena, const simulate_setup *s, int64_t batch) {
    hp_eval_setup e = s->eval;
    hp_plan *plan = HP_NEW(arena, hp_plan, 1);
    *plan = simulate_plan(s, &s->curves.strategy, batch);
    plan->strategy.prec = s->network.graph->prec;
    e.table = s->costs.table;
    e.graph = s->network.graph;
    e.plan = plan;
    e.machine = &s->machine;
    e.mode = s->step.mode;
    e.dtype = s->network.dtype;
    e.device = s->device;
    e.batch = batch;
    e.seed = s->step.seed;
    return hp_eval_new(arena, &e);
}
