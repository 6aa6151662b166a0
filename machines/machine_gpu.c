/* machine_gpu.c - this node's GPUs as a machine: figures from the driver, and from the data sheet if the
 * model is known. */
#include "machines/shipped.h"

#include "machines/data_sheets.h"

/* Messages between ranks on one GPU are copies in its memory: one read, one write. The latency is that of a
 * peer copy, as over NVLink (NCCL 2.30 tuner). */
static const hp_link_class same_gpu = {.name = "same-gpu", .latency_s = 4e-6};

/* Uses the data sheet's rates and the class's name. For an unknown model, uses the driver's rates and name,
 * and fills gaps from the most similar GPU. */
static hp_device_class device_of(const hp_gpu *g, const hp_gpu_model *known) {
    hp_device_class d = {
        .memory_bytes = g->memory_bytes, .flops_per_s = g->flops_per_s, .bytes_per_s = g->bytes_per_s};
    if (known) {
        d = known->device;
        d.memory_bytes = g->memory_bytes;
    } else {
        hp_device_class_slug(g->name, d.name, sizeof d.name);
        hp_device_class_suppose(&d);
        hp_device_class_assume(&d, hp_gpu_model_nearest(&d));
    }
    return d;
}

hp_status hp_machine_of_gpus(const hp_device_info *device, const hp_gpu *g, hp_machine *m, hp_error *err) {
    static const hp_link_class pcie = LINK_PCIE;
    bool sure;
    const hp_gpu_model *known = hp_gpu_model_find(g->name, g->memory_bytes, &sure);
    HP_TRY(hp_machine_local(m, err));
    snprintf(m->name, sizeof m->name, "%s", device->machine);
    snprintf(m->source, sizeof m->source, "%d x %.100s; %s; links: guesses", g->count, g->name,
             known                ? "rates of its data sheet"
             : g->flops_per_s > 0 ? "clocks and widths as the driver says"
                                  : "rates: guesses");
    m->devices_per_node = g->count;
    m->share_cpu = false;
    m->nic_use = HP_NICS_NEAR;
    m->device = device_of(g, known);
    m->intra = known ? known->peer : pcie;
    if (g->count == 1) {
        m->intra = same_gpu;
        m->intra.bytes_per_s = m->device.bytes_per_s / 2;
    }
    return HP_OK;
}
