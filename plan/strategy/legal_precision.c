/* legal_precision.c - which device computes in which precision, and which layers. */
#include "networks/deploy/deploy.h"
#include "networks/graph/precision.h"
#include "plan/strategy/legal.h"

/* A device that does, a GPU if there is one; NULL: none. */
static const hp_device_info *device_that_computes(int32_t prec, bool infer) {
    const hp_device_info *found = NULL;
    for (const hp_device_info *d = hp_devices; d < hp_devices + HP_DEVICES; d++)
        if (hp_device_computes(d, prec, infer) && (!found || hp_device_on_gpu(d))) found = d;
    return found;
}

bool hp_prec_allowed(int32_t prec, bool infer, const hp_device_info *device, hp_reject *why) {
    const hp_device_info *other = device_that_computes(prec, infer);
    if (other && hp_device_computes(device, prec, infer)) return true;
    if (!other) {
        hp_refuse(why, HP_REJECT_PREC, "nothing trains in %s", hp_prec_names[prec]);
        return hp_fix(why, "--prec fp32, or --mode infer");
    }
    hp_refuse(why, HP_REJECT_PREC, "device %.20s does not %s in %s", device->name, infer ? "infer" : "train",
              hp_prec_names[prec]);
    return hp_fix(why, "--device %s, or --prec fp32", other->name);
}

/* The first of the table. */
static const hp_device_info *device_with_heads(int32_t channels) {
    const hp_device_info *d = hp_devices;
    while (d->head_channels > 0 && d->head_channels < channels) d++;
    return d;
}

/* The smallest number of heads over which the layer's channels fall with at most `most` each; as many heads
 * as before share keys. */
static int32_t heads_within(const hp_layer *l, int32_t channels, int32_t most) {
    const int64_t all = (int64_t)channels * l->groups, shared = l->groups / l->attention.kv_heads;
    int64_t heads = l->groups;
    while (all % heads != 0 || heads % shared != 0 || all / heads > most) heads++;
    return (int32_t)heads;
}

bool hp_device_has_layers(const hp_device_info *device, const hp_graph *g, hp_reject *why) {
    const int32_t most = device ? device->head_channels : 0;
    for (int l = 0; l < g->n_layer && most > 0; l++) {
        const hp_layer *layer = &g->layer[l];
        const int32_t channels = layer->op == HP_ATTENTION ? hp_head_channels(g, layer) : 0;
        if (channels <= most) continue;
        hp_refuse(why, HP_REJECT_LAYER, "layer %.60s has heads of %d channels, device %.20s takes at most %d",
                  layer->name, channels, device->name, most);
        return hp_fix(why, "%d heads, or --device %s", heads_within(layer, channels, most),
                      device_with_heads(channels)->name);
    }
    return true;
}
