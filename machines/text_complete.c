/* text_complete.c - completes a machine that people describe: the numbers of nodes and devices and the
 * device's name suffice. Known facts about such a device fill the gaps; given values take precedence. */
#include "machines/machine_text.h"

#include "machines/data_sheets.h"
#include "machines/network.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define ENOUGH "nodes=8; node=4 x a100-80 (docs/machines.md)"

static bool gives(const machine_reading *r, machine_field_id i) {
    return r->field[i] == GIVEN || r->field[i] == KEPT;
}

static void assumed(hp_machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void assumed(hp_machine *m, const char *format, ...) {
    const size_t used = strlen(m->assumed);
    va_list words;
    va_start(words, format);
    if (used) snprintf(m->assumed + used, sizeof m->assumed - used, "; ");
    vsnprintf(m->assumed + strlen(m->assumed), sizeof m->assumed - strlen(m->assumed), format, words);
    va_end(words);
}

static void name_device(const machine_reading *r, hp_device_class *d) {
    if (machine_name_ok(r->device) && strlen(r->device) < sizeof d->name)
        snprintf(d->name, sizeof d->name, "%.31s", r->device);
    else
        hp_device_class_slug(r->device, d->name, sizeof d->name);
}

/* Truncating a long name may remove what distinguishes it from another GPU's, such as "mig". */
static void check_name(machine_reading *r, const hp_device_class *d) {
    bool sure;
    const hp_gpu_model *other = hp_gpu_model_find(d->name, d->memory_bytes, &sure);
    if (other)
        machine_complain(r, "device \"%.60s\": its name must be shorter: cut to %s it is that of %s",
                         r->device, d->name, other->device.name);
}

/* A CPU has no data sheet here: its memory and rates must be given. */
static void suppose_cpu(const machine_reading *r, hp_machine *like) {
    static const hp_link_class shm = LINK_SHM, tcp = LINK_TCP;
    like->device = (hp_device_class){.like = "cpu", .is_cpu = true};
    name_device(r, &like->device);
    like->share_cpu = true;
    like->intra = shm;
    like->inter = tcp;
}

/* A GPU without a data sheet here: its memory cannot be guessed, its speed only within wide bounds. */
static void suppose_unknown_gpu(machine_reading *r, hp_machine *like) {
    static const hp_link_class pcie = LINK_PCIE, edr = LINK_EDR;
    hp_device_class *d = &like->device;
    *d = r->m.device;
    for (int i = M_MEMORY; i < MACHINE_FIELDS; i++) /* a device replaced by --set had other values */
        if (!gives(r, (machine_field_id)i))
            memset((char *)like + machine_fields[i].offset, 0, machine_fields[i].size);
    like->intra = pcie;
    like->inter = edr;
    name_device(r, d);
    check_name(r, d);
    if (*r->device && !gives(r, M_MEMORY) && r->field[M_MEMORY] != WRONG) {
        machine_complain(r,
                         "device \"%.60s\" is unknown: say what it is: device=%.60s, memory=...GB, "
                         "fp32=...TFLOP/s, bandwidth=...GB/s",
                         r->device, r->device);
    }
    if (d->memory_bytes < 1) d->memory_bytes = 1; /* said once */
    if (r->field[M_GUESSED] == KEPT && r->field[M_FP32] == GIVEN && r->field[M_BANDWIDTH] == GIVEN)
        r->m.device.guessed = false;
    hp_device_class_suppose(d);
    const hp_gpu_model *g = hp_gpu_model_nearest(d);
    hp_device_class_assume(d, g);
    if (gives(r, M_GUESSED)) return;
    if (d->guessed)
        assumed(like,
                "device \"%.60s\" is unknown: fp32=%gTFLOP/s and bandwidth=%gGB/s, where not given the least "
                "that "
                "GPUs have: how long it takes is a guess",
                r->device, 1e-12 * d->flops_per_s, 1e-9 * d->bytes_per_s);
    else if (*r->device && !gives(r, M_LIKE))
        assumed(like, "device \"%.60s\" is unknown: %s is assumed where nothing is given", r->device,
                g->device.name);
}

static void suppose_gpu(machine_reading *r, hp_machine *like) {
    bool sure;
    const hp_gpu_model *known = hp_gpu_model_find(r->device, r->m.device.memory_bytes, &sure);
    if (!known) {
        suppose_unknown_gpu(r, like);
        return;
    }
    like->device = known->device;
    if (!sure) assumed(like, "device \"%.60s\" taken as %s", r->device, known->device.name);
    like->intra = known->peer;
    like->inter = known->nic;
}

/* Normalises like=CLASS from a common name. */
static void name_like(machine_reading *r) {
    bool sure;
    const hp_gpu_model *g = hp_gpu_model_find(r->m.device.like, 0, &sure);
    if (g && sure) snprintf(r->m.device.like, sizeof r->m.device.like, "%s", g->device.name);
}

/* A GPU's kernels are not a processor's. */
static void check_like(machine_reading *r, bool cpu) {
    const char *like = r->m.device.like;
    if (gives(r, M_LIKE) && !cpu && strcasecmp(like, "cpu") == 0)
        machine_complain(r, "like=%s: the device is a GPU", like);
}

/* A named link gets its usual rate, if it has one. */
static void suppose_link(const machine_reading *r, machine_field_id name, const hp_link_class *given,
                         hp_link_class *like) {
    const hp_link_class *known = hp_link_class_find(given->name);
    const hp_link_class none = {"", like->latency_s, 0};
    if (gives(r, name) && strcmp(given->name, like->name) != 0) *like = known ? *known : none;
}

/* Is its rate given, or known from links of that name? */
static bool describes(const machine_reading *r, machine_field_id name, machine_field_id rate,
                      const hp_link_class *link) {
    return gives(r, rate) || (gives(r, name) && hp_link_class_find(link->name));
}

/* Does no link of this name have that rate? Then its latency may also differ. */
static bool is_another(const hp_link_class *known, const hp_link_class *given) {
    static const double ALIKE = 1.5;
    const double ratio = given->bytes_per_s / known->bytes_per_s;
    return ratio > ALIKE || ratio < 1 / ALIKE;
}

static void say_links(const machine_reading *r, hp_machine *m) {
    const bool intra = describes(r, M_LINK, M_LINK_RATE, &m->intra) || m->devices_per_node == 1,
               inter = (describes(r, M_NIC, M_NIC_RATE, &m->inter) && gives(r, M_NICS)) || m->nodes == 1;
    if (!intra) assumed(m, "%s of %g GB/s inside a node", m->intra.name, 1e-9 * m->intra.bytes_per_s);
    if (!inter)
        assumed(m, "%d x %s of %g GB/s between nodes", m->nics_per_node, m->inter.name,
                1e-9 * m->inter.bytes_per_s);
    const hp_link_class *known = hp_link_class_find(m->inter.name);
    if (inter && m->nodes > 1 && known && !gives(r, M_NIC_LATENCY) && is_another(known, &m->inter))
        assumed(m, "latency of %s, %g us, between nodes (nic=..., latency=TIME)", m->inter.name,
                1e6 * m->inter.latency_s);
}

/* Numbers below their range mean unknown. */
static bool is_unknown(const machine_field *f, const void *v) {
    return (f->type == TYPE_INT32 && *(const int32_t *)v < f->low) ||
           (f->type == TYPE_INT64 && (double)*(const int64_t *)v < f->low) ||
           (f->type == TYPE_DOUBLE && *(const double *)v < f->low);
}

static void fill_gaps(machine_reading *r, const hp_machine *like) {
    const char *said = "";
    for (int i = 0; i < MACHINE_FIELDS; i++) {
        const machine_field *f = &machine_fields[i];
        char *out = (char *)&r->m + f->offset;
        if (!gives(r, (machine_field_id)i) || i == M_DEVICE)
            memcpy(out, (const char *)like + f->offset, f->size);
        if (r->field[i] != ABSENT || (i != M_DEVICE && !is_unknown(f, out)) || strcmp(said, f->form) == 0)
            continue;
        said = f->form;
        if (strcmp(f->clause, "device") == 0)
            machine_complain(r, "device=%.40s, %s=... is missing", r->device, f->key);
        else
            machine_complain(r, "%s is missing%s", f->form,
                             i == M_NODES ? ": nodes=1 where there is one" : "");
    }
}

/* Accepts libraries with rows in cost tables for messages between GPUs (costmodels/comm_mpi.c). */
static void check_mpi(machine_reading *r) {
    static const char *const known[] = {"", "mvapich2-gdr", "openmpi"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(r->m.mpi, known[i]) == 0) return;
    machine_complain(r, "mpi=%s: known are mvapich2-gdr and openmpi", r->m.mpi);
}

void machine_complete(machine_reading *r) {
    hp_machine like = {.nics_per_node = 1, .taper = 1};
    const bool cpu = gives(r, M_CPU) ? r->m.device.is_cpu : strcasecmp(r->device, "cpu") == 0;
    if (*r->described && *r->device && strcasecmp(r->described, r->device) != 0)
        machine_complain(r, "device=%.40s: the node's devices are called %.40s", r->described, r->device);
    like.cores_per_node = r->m.devices_per_node > 0 ? r->m.devices_per_node : 1;
    if (cpu)
        suppose_cpu(r, &like);
    else
        suppose_gpu(r, &like);
    name_like(r);
    check_like(r, cpu);
    suppose_link(r, M_LINK, &r->m.intra, &like.intra);
    suppose_link(r, M_NIC, &r->m.inter, &like.inter);
    snprintf(like.name, sizeof like.name, "%dx%d-%.31s%s", r->m.nodes, r->m.devices_per_node,
             like.device.name, r->shape.n_name > 1 ? "-mix" : "");
    snprintf(like.source, sizeof like.source, "%s", cpu ? "" : "data sheet where nothing was given");
    like.nic_use = machine_usual_nic_use(cpu);
    fill_gaps(r, &like);
    check_mpi(r);
    if (hp_machine_taper(&r->m) > 1 && r->m.leaf == 0) r->m.leaf = hp_network_usual_leaf(&r->m);
    memcpy(r->m.assumed, like.assumed, sizeof like.assumed);
    memcpy(r->of_device, like.assumed, sizeof like.assumed);
    say_links(r, &r->m);
}

static void read_all(machine_reading *r, const char *text) {
    machine_read_clauses(r, text);
    machine_complete(r);
}

hp_status hp_machine_parse(const char *text, const char *where, hp_machine *m, hp_error *err) {
    const machine_reading start = {0};
    machine_reading r;
    if (text[strspn(text, " \t\r\n")] == '{')
        return hp_fail(err, HP_EDATA, "%.300s: machines are not written in JSON but as " ENOUGH, where);
    machine_read_mix(&start, text, read_all, &r);
    if (*r.problems) return hp_fail(err, HP_EDATA, "%.120s: %s; for example " ENOUGH, where, r.problems);
    *m = r.m;
    return HP_OK;
}
