/* gpu.c - the GPUs of this node as a machine: figures of the driver, and of the data sheet where the model is
 * known. */
#include "plan/machine/shipped.h"

#include <ctype.h>
#include <string.h>

/* Part of the driver's name for a GPU, and its device class in a shipped machine. */
static const struct {
    const char *part, *class;
} KNOWN[] = {{"H200", "h200"},
             {"A100-SXM4-40GB", "a100-40"},
             {"A100-PCIE-40GB", "a100-40"},
             {"V100-SXM2-16GB", "v100-16"},
             {"V100-PCIE-16GB", "v100-16-pcie"}};

/* Rates where neither the driver nor a data sheet gives any: guesses at a data-centre GPU of the 2020s. */
static const hp_device_class guessed = {.flops_per_s = 20e12, .bytes_per_s = 1.5e12, .launch_s = 5e-6};

/* Messages between ranks of one GPU are copies in its memory: read and written. The latency is a peer copy's,
 * as over NVLink (NCCL 2.30 tuner). */
static const hp_link_class same_gpu = {.name = "same-gpu", .latency_s = 4e-6};
/* Between GPUs of a kind that no shipped machine has: PCIe 4 x16, effective (NCCL topo.h). */
static const hp_link_class guessed_peer = {"pcie4", 5.7e-6, 24e9};

static const hp_machine *machine_with(const char *class) {
    for (int i = 0; i < hp_machines_shipped_count; i++)
        if (strcmp(hp_machines_shipped[i].device.name, class) == 0) return &hp_machines_shipped[i];
    return NULL;
}

static const hp_machine *known_machine(const char *gpu) {
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strstr(gpu, KNOWN[i].part)) return machine_with(KNOWN[i].class);
    return NULL;
}

/* "NVIDIA L40S" -> "nvidia-l40s": as cost tables name classes. */
static void class_of(const char *gpu, char *out, size_t n) {
    size_t k = 0;
    for (const char *c = gpu; *c && k + 1 < n; c++) {
        const bool plain = isalnum((unsigned char)*c);
        if (plain) out[k++] = (char)tolower((unsigned char)*c);
        if (!plain && k && out[k - 1] != '-') out[k++] = '-';
    }
    while (k && out[k - 1] == '-') k--;
    snprintf(out + k, n - k, "%s", k ? "" : "gpu");
}

static double known_or(double value, double otherwise) {
    return value > 0 ? value : otherwise;
}

static hp_device_class device_of(const hp_gpu *g, const hp_machine *like) {
    hp_device_class d = like ? like->device : guessed;
    if (!like) {
        class_of(g->name, d.name, sizeof d.name);
        d.flops_per_s = known_or(g->flops_per_s, guessed.flops_per_s);
        d.bytes_per_s = known_or(g->bytes_per_s, guessed.bytes_per_s);
    }
    d.memory_bytes = g->memory_bytes;
    return d;
}

hp_status hp_machine_of_gpus(const hp_device_info *device, const hp_gpu *g, hp_machine *m, hp_error *err) {
    const hp_machine *like = known_machine(g->name);
    HP_TRY(hp_machine_local(m, err));
    snprintf(m->name, sizeof m->name, "%s", device->machine);
    snprintf(m->source, sizeof m->source, "%d x %.100s; %s; links: guesses", g->count, g->name,
             like                 ? "rates of its data sheet"
             : g->flops_per_s > 0 ? "clocks and widths as the driver says"
                                  : "rates: guesses");
    m->devices_per_node = g->count;
    m->share_cpu = false;
    m->device = device_of(g, like);
    m->intra = like ? like->intra : guessed_peer;
    if (g->count == 1) {
        m->intra = same_gpu;
        m->intra.bytes_per_s = m->device.bytes_per_s / 2;
    }
    return HP_OK;
}
