/* legal_precision.c - which device computes in which precision, and which layers. */
#include "plan/graph/deploy.h"
#include "plan/graph/precision.h"
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
static const hp_device_info *device_with_tokens(void) {
    const hp_device_info *d = hp_devices;
    while (!hp_device_infers_tokens(d)) d++;
    return d;
}

bool hp_device_infers(const hp_device_info *device, const hp_graph *g, hp_reject *why) {
    for (int l = 0; l < g->n_layer && g->deployed && !hp_device_infers_tokens(device); l++) {
        if (!hp_layer_as_trained(&g->layer[l])) continue;
        hp_refuse(why, HP_REJECT_PREC, "device %.20s has no %s in inference, layer %.60s is one",
                  device->name, hp_layer_infos[g->layer[l].op].name, g->layer[l].name);
        return hp_fix(why, "--device %s", device_with_tokens()->name);
    }
    return true;
}
