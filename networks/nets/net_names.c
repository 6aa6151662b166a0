/* net_names.c - the table of built-in networks, and parsing a network's name: "resnet50", "resnet-v2-110",
 * "amoebanetd:18,208", "unet:32". */
#include "networks/nets/nets.h"

#include "base/nearest.h"
#include "base/units.h"

#include <string.h>

enum { /* limits for names from untrusted plan files: memory, and multiply-adds within 63 bits */
       MAX_DEPTH = 20000,
       MAX_AMOEBA_LAYERS = 300,
       MAX_AMOEBA_FILTERS = 1024,
       MAX_UNET_FILTERS = 512,
       MAX_BLOCKS = 1000,
       MAX_HIDDEN = 1 << 16,
       MAX_HEADS = 1024,
       MAX_PATCH = 1 << 10,
       MAX_TOKENS = 1 << 20,
       MAX_IDS = 1 << 20
};

/* Parses an integer at *text, without sign or leading zero, and advances *text past it. */
static hp_status parse_number(const char **text, const char *what, int low, int high, int *value,
                              hp_error *err) {
    char digits[16];
    const size_t n = strspn(*text, "0123456789");
    int64_t v = 0;
    snprintf(digits, sizeof digits, "%.*s", (int)n, *text);
    HP_TRY(hp_parse_int(digits, what, low, high, &v, err));
    if (digits[0] == '0') return hp_fail(err, HP_EUSAGE, "%s: '%s' starts with a zero", what, digits);
    *text += n;
    *value = (int)v;
    return HP_OK;
}

/* Depths of a family are step*n + 2, n >= 1. */
static hp_status parse_depth(const char *net, const char **rest, int step, hp_net_args *args, hp_error *err) {
    const int stem = (int)(*rest - net);
    HP_TRY(parse_number(rest, "the depth of the network", 1, MAX_DEPTH, &args->depth, err));
    const int over = args->depth - 2;
    if (over >= step && over % step == 0) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "network %s: the depth must be %dn+2, for example %.*s%d", net, step, stem,
                   net, over < step ? step + 2 : over / step * step + 2);
}

static hp_status parse_end(const char *net, const char *rest, const char *form, hp_error *err) {
    if (*rest == '\0') return HP_OK;
    return hp_fail(err, HP_EUSAGE, "network %s: unexpected '%s'; the form is %s", net, rest, form);
}

static hp_status parse_v1(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    HP_TRY(parse_depth(net, &rest, 6, args, err));
    return parse_end(net, rest, "resnet-v1-N", err);
}

static hp_status parse_v2(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    HP_TRY(parse_depth(net, &rest, 9, args, err));
    if (strcmp(rest, ":131") == 0) {
        args->narrow_first = true;
        return HP_OK;
    }
    return parse_end(net, rest, "resnet-v2-N or resnet-v2-N:131 (kernels 1-3-1 instead of 3-3-1)", err);
}

static hp_status parse_amoebanetd(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    static const char form[] = "amoebanetd:L,F, for example amoebanetd:18,208";
    if (*rest++ != ':')
        return hp_fail(err, HP_EUSAGE, "network %s: how many layers and filters? The form is %s", net, form);
    HP_TRY(parse_number(&rest, "the layers of amoebanetd", 3, MAX_AMOEBA_LAYERS, &args->layers, err));
    if (args->layers % 3)
        return hp_fail(err, HP_EUSAGE,
                       "network %s: the layers must be divisible by 3, for example amoebanetd:%d,208", net,
                       args->layers / 3 * 3);
    if (*rest++ != ',') return hp_fail(err, HP_EUSAGE, "network %s: the form is %s", net, form);
    HP_TRY(parse_number(&rest, "the filters of amoebanetd", 8, MAX_AMOEBA_FILTERS, &args->filters, err));
    return parse_end(net, rest, form, err);
}

static hp_status parse_unet(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    if (*rest == '\0') return HP_OK;
    rest++; /* ':' */
    HP_TRY(parse_number(&rest, "the filters of the network", 1, MAX_UNET_FILTERS, &args->filters, err));
    return parse_end(net, rest, "NAME or NAME:F, for example unet:32", err);
}

/* Numbers separated by commas. */
typedef struct number {
    const char *what;
    int high, *value;
} number;

static hp_status parse_numbers(const char *net, const char *rest, const char *form, const number *list, int n,
                               hp_error *err) {
    for (int i = 0; i < n; i++) {
        if (*rest++ != (i ? ',' : ':'))
            return hp_fail(err, HP_EUSAGE, "network %s: the form is %s", net, form);
        HP_TRY(parse_number(&rest, list[i].what, 1, list[i].high, list[i].value, err));
    }
    return parse_end(net, rest, form, err);
}

/* A perceptron's hidden layer is four times as wide. */
static hp_status check_heads(const char *net, hp_net_args *args, hp_error *err) {
    args->mlp = 4 * args->hidden;
    if (args->hidden % args->heads == 0) return HP_OK;
    return hp_fail(err, HP_EUSAGE, "network %s: %d heads do not divide %d channels, for example %d heads",
                   net, args->heads, args->hidden, args->hidden % 64 ? 1 : args->hidden / 64);
}

static hp_status parse_gpt(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    const number list[] = {{"the layers of gpt", MAX_BLOCKS, &args->layers},
                           {"the channels of gpt", MAX_HIDDEN, &args->hidden},
                           {"the heads of gpt", MAX_HEADS, &args->heads},
                           {"the tokens of gpt", MAX_TOKENS, &args->seq},
                           {"the ids of gpt", MAX_IDS, &args->vocab}};
    HP_TRY(parse_numbers(
        net, rest, "gpt:L,C,H,S,V (layers, channels, heads, tokens, ids), for example gpt:4,128,4,256,256",
        list, 5, err));
    return check_heads(net, args, err);
}

static hp_status parse_vit(const char *net, const char *rest, hp_net_args *args, hp_error *err) {
    const number list[] = {{"the layers of vit", MAX_BLOCKS, &args->layers},
                           {"the channels of vit", MAX_HIDDEN, &args->hidden},
                           {"the heads of vit", MAX_HEADS, &args->heads},
                           {"the pixels of a patch of vit", MAX_PATCH, &args->patch}};
    HP_TRY(parse_numbers(net, rest,
                         "vit:L,C,H,P (layers, channels, heads, pixels of a patch), for example vit:4,96,4,4",
                         list, 4, err));
    return check_heads(net, args, err);
}

#define VIT(l, c, h, m, p)                                                                                   \
    { .layers = l, .hidden = c, .heads = h, .mlp = m, .patch = p }
#define SWIN(l, c, h)                                                                                        \
    { .layers = l, .hidden = c, .heads = h }
#define GPT(l, c, h, s)                                                                                      \
    { .layers = l, .hidden = c, .heads = h, .mlp = 4 * (c), .seq = s, .vocab = 50257 }

static const hp_net_row rows[] = {
    {.name = "cnn", .default_classes = 10, .write = hp_net_write_cnn},
    {.name = "resnet18", .args = {.depth = 18}, .default_classes = 1000, .write = hp_net_write_resnet},
    {.name = "resnet34", .args = {.depth = 34}, .default_classes = 1000, .write = hp_net_write_resnet},
    {.name = "resnet50", .args = {.depth = 50}, .default_classes = 1000, .write = hp_net_write_resnet},
    {.name = "resnet101", .args = {.depth = 101}, .default_classes = 1000, .write = hp_net_write_resnet},
    {.name = "resnet152", .args = {.depth = 152}, .default_classes = 1000, .write = hp_net_write_resnet},
    {.name = "vgg16", .args = {.depth = 16}, .default_classes = 1000, .write = hp_net_write_vgg},
    {.name = "vgg19", .args = {.depth = 19}, .default_classes = 1000, .write = hp_net_write_vgg},
    {.name = "mobilenetv2", .default_classes = 1000, .write = hp_net_write_mobilenetv2},
    {.name = "mobilenetv3",
     .args = {.layers = 15},
     .default_classes = 1000,
     .write = hp_net_write_mobilenetv3},
    {.name = "mobilenetv3-small",
     .args = {.layers = 11},
     .default_classes = 1000,
     .write = hp_net_write_mobilenetv3},
    {.name = "efficientnet-b0", .default_classes = 1000, .write = hp_net_write_efficientnet},
    {.name = "densenet121", .default_classes = 1000, .write = hp_net_write_densenet121},
    {.name = "amoebanetd",
     .default_classes = 1000,
     .write = hp_net_write_amoebanetd,
     .parse = parse_amoebanetd},
    {.name = "unet",
     .args = {.filters = 64},
     .default_classes = 2,
     .write = hp_net_write_unet,
     .parse = parse_unet},
    {.name = "attention-unet",
     .args = {.filters = 64},
     .default_classes = 2,
     .write = hp_net_write_attention_unet,
     .parse = parse_unet},
    {.name = "convnext-t",
     .args = {.layers = 9, .hidden = 96},
     .default_classes = 1000,
     .write = hp_net_write_convnext},
    {.name = "vit-b16",
     .args = VIT(12, 768, 12, 3072, 16),
     .default_classes = 1000,
     .write = hp_net_write_vit},
    {.name = "vit-l16",
     .args = VIT(24, 1024, 16, 4096, 16),
     .default_classes = 1000,
     .write = hp_net_write_vit},
    {.name = "vit-h14",
     .args = VIT(32, 1280, 16, 5120, 14),
     .default_classes = 1000,
     .write = hp_net_write_vit},
    {.name = "vit", .default_classes = 1000, .write = hp_net_write_vit, .parse = parse_vit},
    {.name = "swin-t", .args = SWIN(6, 96, 3), .default_classes = 1000, .write = hp_net_write_swin},
    {.name = "swin-b", .args = SWIN(18, 128, 4), .default_classes = 1000, .write = hp_net_write_swin},
    {.name = "gpt", .write = hp_net_write_gpt, .parse = parse_gpt},
    {.name = "gpt2", .args = GPT(12, 768, 12, 1024), .write = hp_net_write_gpt},
    {.name = "gpt2-medium", .args = GPT(24, 1024, 16, 1024), .write = hp_net_write_gpt},
    {.name = "gpt2-large", .args = GPT(36, 1280, 20, 1024), .write = hp_net_write_gpt},
    {.name = "gpt2-xl", .args = GPT(48, 1600, 25, 1024), .write = hp_net_write_gpt},
    {.name = "gpt3-6.7b", .args = GPT(32, 4096, 32, 2048), .write = hp_net_write_gpt},
    {.name = "gpt3-13b", .args = GPT(40, 5120, 40, 2048), .write = hp_net_write_gpt}, /* printed as 5140 */
    {.name = "gpt3-175b", .args = GPT(96, 12288, 96, 2048), .write = hp_net_write_gpt},
    {.name = "resnet-v1-", .default_classes = 10, .write = hp_net_write_cifar_v1, .parse = parse_v1},
    {.name = "resnet-v2-", .default_classes = 10, .write = hp_net_write_cifar_v2, .parse = parse_v2},
};

#define NET_NAMES                                                                                            \
    "cnn, resnet18, resnet34, resnet50, resnet101, resnet152, vgg16, vgg19, mobilenetv2, mobilenetv3, "      \
    "mobilenetv3-small, efficientnet-b0, densenet121, "                                                      \
    "amoebanetd:L,F "                                                                                        \
    "(L = 3n), unet:F, attention-unet:F, convnext-t, vit-b16, vit-l16, vit-h14, vit:L,C,H,P, swin-t, "       \
    "swin-b, gpt2, "                                                                                         \
    "gpt2-medium, gpt2-large, gpt2-xl, gpt3-6.7b, gpt3-13b, gpt3-175b, "                                     \
    "gpt:L,C,H,S,V, "                                                                                        \
    "resnet-v1-N (N = 6n+2), resnet-v2-N (N = 9n+2)"

/* Networks that the command line's documentation names but that this version lacks. */
static const char *const planned[] = {"moe-gpt", "dlrm"};

const char *hp_net_name(int i) {
    return i >= 0 && i < (int)(sizeof rows / sizeof rows[0]) ? rows[i].name : NULL;
}

/* Does `net` start with `name`, alone or before a colon? */
static bool has_base_name(const char *net, const char *name) {
    const size_t n = strlen(name);
    return strncmp(net, name, n) == 0 && (net[n] == '\0' || net[n] == ':');
}

static bool row_matches(const hp_net_row *row, const char *net) {
    const size_t n = strlen(row->name);
    if (!row->parse) return strcmp(net, row->name) == 0;
    return row->name[n - 1] == '-' ? strncmp(net, row->name, n) == 0 : has_base_name(net, row->name);
}

/* NULL if no network has that name. */
static const hp_net_row *find_row(const char *net) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (row_matches(&rows[i], net)) return &rows[i];
    return NULL;
}

/* Keeps what follows the colon in the suggestion: "Unet:8" becomes unet:8. */
static hp_status unknown_net(const char *net, hp_error *err) {
    enum { N = sizeof rows / sizeof rows[0] };
    const char *names[N], *rest = net + strcspn(net, ":");
    char base[40];
    for (int i = 0; i < N; i++) names[i] = rows[i].name;
    snprintf(base, sizeof base, "%.*s", (int)(rest - net), net);
    const char *near = rest - net < (long)sizeof base ? hp_nearest(base, names, N) : NULL;
    if (!near) return hp_fail(err, HP_EUSAGE, "unknown network '%s'; known are " NET_NAMES, net);
    return hp_fail(err, HP_EUSAGE, "unknown network '%s': did you mean '%s%s%s'? known are " NET_NAMES, net,
                   near, near[strlen(near) - 1] == '-' ? "N" : "", rest);
}

hp_status hp_net_parse(const char *net, const hp_net_row **row, hp_net_args *args, hp_error *err) {
    *row = find_row(net);
    for (size_t i = 0; !*row && i < sizeof planned / sizeof planned[0]; i++)
        if (has_base_name(net, planned[i]))
            return hp_fail(err, HP_EUNAVAIL, "network %s: this version does not have it; it has " NET_NAMES,
                           net);
    if (!*row) return unknown_net(net, err);
    *args = (*row)->args;
    return (*row)->parse ? (*row)->parse(net, net + strlen((*row)->name), args, err) : HP_OK;
}

int hp_net_default_classes(const char *net) {
    const hp_net_row *row = find_row(net);
    return row && row->args.vocab        ? row->args.vocab
           : row && row->default_classes ? row->default_classes
                                         : 1000; /* ImageNet's */
}
