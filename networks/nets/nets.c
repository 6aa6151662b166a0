/* nets.c - building a network by name. */
#include "networks/nets/nets.h"

#include "networks/graph/fuse.h"

enum {
    MAX_SIDE = 1 << 18, /* the largest network's multiply-adds still fit in 63 bits */
    MAX_CLASSES = 1 << 24,
    SMALLEST_TRIED = 4096 /* no built-in network needs a larger image than this */
};

typedef struct request {
    const char *net;
    const hp_net_row *row;
    hp_net_args args;
} request;

static hp_status write_graph(hp_arena *arena, const request *r, int h, int w, int classes, hp_graph **graph,
                             hp_error *err) {
    const bool text = r->args.seq > 0;
    hp_builder b = hp_builder_start(arena, r->net, text ? r->args.seq : h, text ? 1 : w,
                                    text ? r->args.vocab : classes, err);
    if (text) b.g->image_c = b.g->tensor[0].c = 1;
    r->row->write(&b, &r->args);
    hp_graph *plain = NULL;
    HP_TRY(hp_builder_finish(&b, &plain));
    *graph = hp_graph_fuse(arena, plain);
    return HP_OK;
}

/* Side of the smallest square image that the network accepts; 0: none. Windows treat height and width alike,
 * so it is also the minimum of either side. */
static int smallest_side(const request *r) {
    int side = 0;
    hp_status status = HP_EPLAN;
    while (status != HP_OK && side < SMALLEST_TRIED) {
        hp_arena *scratch = hp_arena_new();
        hp_graph *g = NULL;
        side++;
        status = write_graph(scratch, r, side, side, 1, &g, NULL);
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

hp_status hp_net_build(hp_arena *arena, const char *net, int image_h, int image_w, int classes,
                       hp_graph **graph, hp_error *err) {
    request r = {.net = net};
    HP_TRY(hp_net_parse(net, &r.row, &r.args, err));
    HP_TRY(check_arguments(net, image_h, image_w, classes, err));
    const hp_status status = write_graph(arena, &r, image_h, image_w, classes, graph, err);
    if (status != HP_EPLAN) return status;
    const int side = smallest_side(&r);
    if (image_h >= side && image_w >= side) return status;
    return hp_fail(err, HP_EPLAN, "image %dx%d is too small for network %s; the smallest that works is %dx%d",
                   image_h, image_w, net, side, side);
}
