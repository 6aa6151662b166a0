/* names.c - the table of built-in networks, and parsing a network's name: "resnet50", "resnet-v2-110",
 * "amoebanetd:18,208", "unet:32". */
#include "plan/nets/nets.h"

#include "plan/base/units.h"

#include <string.h>

enum { /* limits for names from untrusted plan files: memory, and multiply-adds within 63 bits */
       MAX_DEPTH = 20000,
       MAX_AMOEBA_LAYERS = 300,
       MAX_AMOEBA_FILTERS = 1024,
       MAX_UNET_FILTERS = 512
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
    HP_TRY(parse_number(&rest, "the filters of unet", 1, MAX_UNET_FILTERS, &args->filters, err));
    return parse_end(net, rest, "unet or unet:F", err);
}

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
    {.name = "resnet-v1-", .default_classes = 10, .write = hp_net_write_cifar_v1, .parse = parse_v1},
    {.name = "resnet-v2-", .default_classes = 10, .write = hp_net_write_cifar_v2, .parse = parse_v2},
};

#define NET_NAMES                                                                                            \
    "cnn, resnet18, resnet34, resnet50, resnet101, resnet152, vgg16, vgg19, mobilenetv2, densenet121, "      \
    "amoebanetd:L,F "                                                                                        \
    "(L = 3n), unet:F, resnet-v1-N (N = 6n+2), resnet-v2-N (N = 9n+2)"

/* Networks that the command line's documentation names but this version does not have. */
static const char *const planned[] = {"gpt", "moe-gpt", "dlrm"};

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

const hp_net_row *hp_net_find(const char *net) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (row_matches(&rows[i], net)) return &rows[i];
    return NULL;
}

hp_status hp_net_parse(const char *net, const hp_net_row **row, hp_net_args *args, hp_error *err) {
    *row = hp_net_find(net);
    for (size_t i = 0; !*row && i < sizeof planned / sizeof planned[0]; i++)
        if (has_base_name(net, planned[i]))
            return hp_fail(err, HP_EUNAVAIL, "network %s: this version does not have it; it has " NET_NAMES,
                           net);
    if (!*row) return hp_fail(err, HP_EUSAGE, "unknown network '%s'; known are " NET_NAMES, net);
    *args = (*row)->args;
    return (*row)->parse ? (*row)->parse(net, net + strlen((*row)->name), args, err) : HP_OK;
}

int hp_net_default_classes(const char *net) {
    const hp_net_row *row = hp_net_find(net);
    return row ? row->default_classes : 1000; /* ImageNet's */
}
