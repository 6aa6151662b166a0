/* machine_text.c - the fields of a machine, and its text; text_read.c reads it. */
#include "machines/machine_text.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define FIELD(clause, key, type, unit, member, low, high, form)                                              \
    {                                                                                                        \
        clause, key, type, HP_QUANTITY_##unit, offsetof(hp_machine, member),                                 \
            sizeof(((hp_machine *)NULL)->member), low, high, form                                            \
    }
#define DEVICE(key, type, unit, member, low, high)                                                           \
    FIELD("device", key, type, unit, device.member, low, high, "device=NAME, " key "=...")
#define NODE "node=K x DEVICE"
#define NIC  "nic=K x RATE"

/* The ranges only keep arithmetic safe (device numbers fit in 32 bits, rates are not zero); real machines are
 * far from these limits. */
const machine_field machine_fields[MACHINE_FIELDS] = {
    [M_NAME] = FIELD("name", "", TYPE_NAME, COUNT, name, 1, 63, "name=NAME"),
    [M_SOURCE] = FIELD("source", "", TYPE_TEXT, COUNT, source, 0, 255, "source=\"TEXT\""),
    [M_NODES] = FIELD("nodes", "", TYPE_INT32, COUNT, nodes, 1, 1e6, "nodes=N"),
    [M_DEVICES] = FIELD("node", "", TYPE_INT32, COUNT, devices_per_node, 1, 1024, NODE),
    [M_DEVICE] = FIELD("node", "", TYPE_NAME, COUNT, device.name, 1, 31, NODE),
    [M_LINK] = FIELD("node", "link", TYPE_NAME, COUNT, intra.name, 1, 31, NODE ", LINK"),
    [M_LINK_RATE] = FIELD("node", "rate", TYPE_DOUBLE, RATE, intra.bytes_per_s, 1, 1e18, NODE ", LINK=RATE"),
    [M_LINK_LATENCY] =
        FIELD("node", "latency", TYPE_DOUBLE, SECONDS, intra.latency_s, 0, 1, NODE ", latency=TIME"),
    [M_CORES] = FIELD("cores", "", TYPE_INT32, COUNT, cores_per_node, 1, 1e5, "cores=N"),
    [M_NICS] = FIELD("nic", "", TYPE_INT32, COUNT, nics_per_node, 1, 1024, NIC),
    [M_NIC] = FIELD("nic", "link", TYPE_NAME, COUNT, inter.name, 1, 31, NIC ", LINK"),
    [M_NIC_RATE] = FIELD("nic", "rate", TYPE_DOUBLE, RATE, inter.bytes_per_s, 1, 1e18, NIC),
    [M_NIC_LATENCY] =
        FIELD("nic", "latency", TYPE_DOUBLE, SECONDS, inter.latency_s, 0, 1, NIC ", latency=TIME"),
    [M_NIC_USE] = FIELD("nic", "rails", TYPE_NIC_USE, COUNT, nic_use, 0, HP_NIC_USES - 1, NIC ", rails"),
    [M_TAPER] = FIELD("fat-tree", "", TYPE_DOUBLE, COUNT, taper, 1, 1024, "fat-tree A:B"),
    [M_LEAF] = FIELD("fat-tree", "leaf", TYPE_INT32, COUNT, leaf, 0, 1e6, "fat-tree A:B, leaf=N"),
    [M_MPI] = FIELD("mpi", "", TYPE_NAME, COUNT, mpi, 0, 23, "mpi=LIBRARY"),
    [M_SHARP] = FIELD("sharp", "", TYPE_YES, COUNT, sharp, 0, 0, "sharp=yes"),
    [M_ANY_SIZE] = FIELD("any-size", "", TYPE_YES, COUNT, any_size, 0, 0, "any-size=yes"),
    [M_SHARE] = FIELD("share-cpu", "", TYPE_YES, COUNT, share_cpu, 0, 0, "share-cpu=yes"),
    [M_CPU] = FIELD("cpu", "", TYPE_YES, COUNT, device.is_cpu, 0, 0, "cpu"),
    [M_MEMORY] = DEVICE("memory", TYPE_INT64, BYTES, memory_bytes, 1, 1e15),
    [M_FP32] = DEVICE("fp32", TYPE_DOUBLE, OPS, flops_per_s, 1, 1e18),
    [M_TF32] = DEVICE("tf32", TYPE_DOUBLE, OPS, tf32_flops_per_s, 0, 1e18),
    [M_BF16] = DEVICE("bf16", TYPE_DOUBLE, OPS, bf16_flops_per_s, 0, 1e18),
    [M_FP16] = DEVICE("fp16", TYPE_DOUBLE, OPS, fp16_flops_per_s, 0, 1e18),
    [M_INT8] = DEVICE("int8", TYPE_DOUBLE, OPS, int8_ops_per_s, 0, 1e18),
    [M_BANDWIDTH] = DEVICE("bandwidth", TYPE_DOUBLE, RATE, bytes_per_s, 1, 1e18),
    [M_LAUNCH] = DEVICE("launch", TYPE_DOUBLE, SECONDS, launch_s, 0, 1),
    [M_LIKE] = DEVICE("like", TYPE_NAME, COUNT, like, 0, 31),
    [M_GUESSED] = DEVICE("guessed", TYPE_YES, COUNT, guessed, 0, 0),
};

static char *quoted(hp_arena *arena, const char *s) {
    char *out = hp_arena_alloc(arena, 2 * strlen(s) + 3), *at = out;
    *at++ = '"';
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') *at++ = '\\';
        *at++ = *s;
    }
    *at++ = '"';
    *at = '\0';
    return out;
}

/* Prints 22:18 if the taper is a ratio of small numbers. */
static const char *taper_text(hp_arena *arena, double taper) {
    for (int b = 1; b <= 64; b++) {
        const double a = round(taper * b);
        if (a / b == taper) return hp_arena_printf(arena, "%.0f:%d", a, b);
    }
    return hp_arena_printf(arena, "%.17g:1", taper);
}

static const char *tree_text(hp_arena *arena, const hp_machine *m) {
    const double taper = hp_machine_taper(m);
    if (taper <= 1 && m->leaf <= 0) return "";
    const char *leaf = m->leaf > 0 ? hp_arena_printf(arena, ", leaf=%d", m->leaf) : "";
    return hp_arena_printf(arena, "fat-tree %s%s\n", taper_text(arena, taper), leaf);
}

const char *const hp_nic_use_names[HP_NIC_USES] = {"shared", "near", "rails"};

hp_nic_use machine_usual_nic_use(bool cpu) {
    return cpu ? HP_NICS_SHARED : HP_NICS_NEAR;
}

/* The use of the NICs, if it is not the usual one. */
static const char *use_text(hp_arena *arena, const hp_machine *m) {
    if (m->nic_use == (int32_t)machine_usual_nic_use(m->device.is_cpu)) return "";
    return hp_arena_printf(arena, ", %s", hp_nic_use_names[m->nic_use]);
}

static const char *device_text(hp_arena *arena, const hp_device_class *d) {
    char memory[48], fp32[48], tf32[48], bf16[48], fp16[48], int8[48], bandwidth[48], launch[48];
    return hp_arena_printf(arena,
                           "device=%s, memory=%s, fp32=%s, tf32=%s, bf16=%s, fp16=%s, int8=%s, bandwidth=%s, "
                           "launch=%s, like=%s%s\n",
                           d->name, hp_quantity_text((double)d->memory_bytes, HP_QUANTITY_BYTES, memory),
                           hp_quantity_text(d->flops_per_s, HP_QUANTITY_OPS, fp32),
                           hp_quantity_text(d->tf32_flops_per_s, HP_QUANTITY_OPS, tf32),
                           hp_quantity_text(d->bf16_flops_per_s, HP_QUANTITY_OPS, bf16),
                           hp_quantity_text(d->fp16_flops_per_s, HP_QUANTITY_OPS, fp16),
                           hp_quantity_text(d->int8_ops_per_s, HP_QUANTITY_OPS, int8),
                           hp_quantity_text(d->bytes_per_s, HP_QUANTITY_RATE, bandwidth),
                           hp_quantity_text(d->launch_s, HP_QUANTITY_SECONDS, launch),
                           *d->like ? d->like : "\"\"", d->guessed ? ", guessed=yes" : "");
}

char *hp_machine_text(hp_arena *arena, const hp_machine *m) {
    char link[48], wait[48], nic[48], nic_wait[48];
    const char *devices = "";
    for (int k = 0; k < hp_machine_classes(m); k++)
        devices = hp_arena_printf(arena, "%s%s", devices, device_text(arena, hp_machine_class(m, k)));
    return hp_arena_printf(
        arena,
        "name=%s\nsource=%s\nnodes=%s\nnode=%s, %s=%s, latency=%s\ncores=%d\nnic=%d "
        "x %s, %s, latency=%s%s\n"
        "%s%s%s%s%s%sshare-cpu=%s\ncpu=%s\n%s",
        m->name, quoted(arena, m->source), machine_nodes_text(arena, m), hp_machine_node_text(arena, m),
        m->intra.name, hp_quantity_text(m->intra.bytes_per_s, HP_QUANTITY_RATE, link),
        hp_quantity_text(m->intra.latency_s, HP_QUANTITY_SECONDS, wait), m->cores_per_node, m->nics_per_node,
        hp_quantity_text(m->inter.bytes_per_s, HP_QUANTITY_RATE, nic), m->inter.name,
        hp_quantity_text(m->inter.latency_s, HP_QUANTITY_SECONDS, nic_wait), use_text(arena, m),
        tree_text(arena, m), m->sharp ? "sharp=yes\n" : "", m->any_size ? "any-size=yes\n" : "",
        *m->mpi ? hp_arena_printf(arena, "mpi=%s\n", m->mpi) : "", hp_machine_slow_text(arena, m),
        m->mix.n_slow ? "\n" : "", m->share_cpu ? "yes" : "no", m->device.is_cpu ? "yes" : "no", devices);
}
