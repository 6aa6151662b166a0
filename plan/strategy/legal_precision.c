/* legal_precision.c - which device computes in which precision. */
#include "plan/graph/precision.h"
#include "plan/strategy/legal.h"

#include <string.h>

/* Devices by precision: in training, in inference. */
enum { CPU = 1, REF = 2, CUDA = 4, ALL = CPU | REF | CUDA };
static const struct {
    unsigned train, infer;
} devices_of[HP_PRECS] = {
    [HP_PREC_FP32] = {ALL, ALL},        [HP_PREC_TF32] = {REF | CUDA, CUDA},
    [HP_PREC_BF16] = {REF | CUDA, ALL}, [HP_PREC_FP16] = {REF | CUDA, ALL},
    [HP_PREC_INT8] = {0, ALL},          [HP_PREC_INT8_DYNAMIC] = {0, ALL},
};

static unsigned bit_of(const char *device) {
    if (!device) return ALL;
    return strcmp(device, "cuda") == 0 ? CUDA : strcmp(device, "ref") == 0 ? REF : CPU;
}

bool hp_prec_allowed(int32_t prec, bool infer, const char *device, hp_reject *why) {
    const unsigned have = infer ? devices_of[prec].infer : devices_of[prec].train;
    if (have & bit_of(device)) return true;
    if (!have) {
        hp_refuse(why, "E-PREC", "nothing trains in %s", hp_prec_names[prec]);
        return hp_fix(why, "prec=fp32, or --mode infer");
    }
    hp_refuse(why, "E-PREC", "device %.20s does not %s in %s", device, infer ? "infer" : "train",
              hp_prec_names[prec]);
    return hp_fix(why, "--device cuda, or prec=fp32");
}
