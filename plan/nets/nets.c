/* nets.c - the table of built-in networks, and building one by name. */
#include "plan/nets/nets.h"

#include "plan/base/units.h"
#include "plan/fuse.h"

#include <string.h>

/* A family's depth is step*n + 2, n >= 1. */
typedef struct net_row {
    const char *name; /* of a family: its prefix, the depth follows */
    int step;         /* 0: not a family */
    int variant;      /* not a family: given to the writer */
    int default_classes;
    hp_net_writer *write;
} net_row;

static const net_row rows[] = {
    {"cnn", 0, 0, 10, hp_net_write_cnn},
    {"resnet18", 0, 18, 1000, hp_net_write_resnet},
    {"resnet34", 0, 34, 1000, hp_net_write_resnet},
    {"resnet50", 0, 50, 1000, hp_net_write_resnet},
    {"resnet101", 0, 101, 1000, hp_net_write_resnet},
    {"resnet152", 0, 152, 1000, hp_net_write_resnet},
    {"vgg19", 0, 0, 1000, hp_net_write_vgg19},
    {"mobilenetv2", 0, 0, 1000, hp_net_write_mobilenetv2},
    {"densenet121", 0, 0, 1000, hp_net_write_densenet121},
    {"resnet-v1-", 6, 0, 10, hp_net_write_cifar_v1},
    {"resnet-v2-", 9, 0, 10, hp_net_write_cifar_v2},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

#define NET_NAMES                                                                                            \
    "cnn, resnet18, resnet34, resnet50, resnet101, resnet152, vgg19, mobilenetv2, densenet121, resnet-v1-N " \
    "(N = 6n+2), "                                                                                           \
    "resnet-v2-N (N = 9n+2)"

/* Networks the command line's documentation names and this version does not have. */
static const char *const absent[] = {"amoebanetd", "unet", "gpt", "moe-gpt", "dlrm"};

enum {
    MAX_DEPTH = 20000,  /* keeps a stranger's plan file from asking for gigabytes of layers */
    MAX_SIDE = 1 << 18, /* multiply-adds of the deepest network still fit in 63 bits */
    MAX_CLASSES = 1 << 24,
    SMALLEST_TRIED = 4096 /* no built-in network needs a larger image than this */
};

static const net_row *find_row(const char *net) {
    for (int i = 0; i < N_ROWS; i++) {
        const size_t n = strlen(rows[i].name);
        if (rows[i].step ? strncmp(net, rows[i].name, n) == 0 : strcmp(net, rows[i].name) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool is_absent(const char *net) {
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        const size_t n = strlen(absent[i]);
        if (strncmp(net, absent[i], n) == 0 && (net[n] == '\0' || net[n] == ':')) return true;
    }
    return false;
}

static hp_status family_depth(const net_row *row, const char *net, int *depth, hp_error *err) {
    const char *digits = net + strlen(row->name);
    int64_t value = 0;
    HP_TRY(hp_parse_int(digits, "the depth of the network", 1, MAX_DEPTH, &value, err));
    const int rest = (int)value - 2;
    if (rest >= row->step && rest % row->step == 0 && *digits >= '1' && *digits <= '9') {
        *depth = (int)value;
        return HP_OK;
    }
    const int below = rest < row->step ? row->step + 2 : rest / row->step * row->step + 2;
    return hp_fail(err, HP_EUSAGE, "network %s: the depth must be %dn+2, for example %s%d", net, row->step,
                   row->name, below);
}

static hp_status write_graph(hp_arena *arena, const net_row *row, int variant, const char *net, int h, int w,
                             int classes, hp_graph **graph, hp_error *err) {
    hp_builder b = hp_builder_start(arena, net, h, w, classes, err);
    row->write(&b, variant);
    hp_graph *plain = NULL;
    HP_TRY(hp_builder_finish(&b, &plain));
    *graph = hp_graph_fuse(arena, plain);
    return HP_OK;
}

/* Smallest square image the network takes, 0 when there is none. Windows treat height and width alike, so it
 * is also the least of either side. */
static int smallest_side(const net_row *row, int variant, const char *net) {
    int side = 0;
    hp_status status = HP_EPLAN;
    while (status != HP_OK && side < SMALLEST_TRIED) {
        hp_arena *scratch = hp_arena_new();
        hp_graph *g = NULL;
        side++;
        status = write_graph(scratch, row, variant, net, side, side, 1, &g, NULL);
        hp_arena_free(scratch);
    }
    return status == HP_OK ? side : 0;
}

static hp_status check_arguments(const char *net, int h, int w, int classes, hp_error *err) {
    if (h < 1 || w < 1 || h > MAX_SIDE || w > MAX_SIDE)
        return hp_fail(err, HP_EUSAGE, "network %s: image %dx%d: each side must be in 1..%d", net, h, w,
                       MAX_SIDE);
    if (classes < 1 || classes > MAX_CLASSES)
        return hp_fail(err, HP_EUSAGE, "network %s: %d classes: must be in 1..%d", net, classes, MAX_CLASSES);
    return HP_OK;
}

static hp_status unknown(const char *net, hp_error *err) {
    if (is_absent(net))
        return hp_fail(err, HP_EUNAVAIL, "network %s: this version does not have it; it has " NET_NAMES, net);
    return hp_fail(err, HP_EUSAGE, "unknown network '%s'; known are " NET_NAMES, net);
}

hp_status hp_net_build(hp_arena *arena, const char *net, int image_h, int image_w, int classes,
                       hp_graph **graph, hp_error *err) {
    const net_row *row = find_row(net);
    if (!row) return unknown(net, err);
    int variant = row->variant;
    if (row->step) HP_TRY(family_depth(row, net, &variant, err));
    HP_TRY(check_arguments(net, image_h, image_w, classes, err));
    const hp_status status = write_graph(arena, row, variant, net, image_h, image_w, classes, graph, err);
    if (status != HP_EPLAN) return status;
    const int side = smallest_side(row, variant, net);
    if (image_h >= side && image_w >= side) return status;
    return hp_fail(err, HP_EPLAN, "image %dx%d is too small for network %s; the smallest that works is %dx%d",
                   image_h, image_w, net, side, side);
}

int hp_net_default_classes(const char *net) {
    const net_row *row = find_row(net);
    return row ? row->default_classes : 1000; /* ImageNet's */
}
