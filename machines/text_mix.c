/* text_mix.c - text of machines whose devices differ: node=2 x a100-80 + 2 x v100-16 | 4 x a100-80, nodes=6 +
 * 2, slow=3:70%, 5.0:80%. A text is read once for every class that it names, as a machine of that class. */
#include "machines/machine_text.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- reading --- */

static char *trimmed(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = '\0';
    return s;
}

/* The number of a class's name; -1: no room for it, which is reported. */
static int class_named(machine_reading *r, const char *name) {
    machine_shape *s = &r->shape;
    for (int i = 0; i < s->n_name; i++)
        if (strcasecmp(s->name[i], name) == 0) return i;
    if (s->n_name == 1 + HP_MORE_CLASSES || strlen(name) >= sizeof *s->name) {
        machine_complain(r,
                         s->n_name == 1 + HP_MORE_CLASSES ? "a machine has at most %d classes of devices"
                                                          : "a device's name has at most %d bytes",
                         s->n_name == 1 + HP_MORE_CLASSES ? 1 + HP_MORE_CLASSES : MACHINE_NAME - 1);
        return -1;
    }
    snprintf(s->name[s->n_name], sizeof *s->name, "%s", name);
    return s->n_name++;
}

/* Adds "2 x a100" to a kind of node. */
static bool read_part(machine_reading *r, char *text, hp_node_kind *kind) {
    char *name, *end;
    if (!machine_counted(text, &name)) {
        machine_complain(r,
                         "a node is K x DEVICE, for example node=4 x a100-80, or 2 x a100-80 + 2 x v100-16");
        return false;
    }
    const long count = strtol(text, &end, 10);
    if (*end || count < 1 || count > 1024 || kind->n_part == HP_NODE_PARTS) {
        machine_complain(r,
                         "node must be a whole number from 1 to 1024 of a device, at most %d kinds of them",
                         HP_NODE_PARTS);
        return false;
    }
    const int class = class_named(r, name);
    if (class >= 0) kind->part[kind->n_part++] = (hp_node_part){class, (int32_t)count};
    return class >= 0;
}

static bool read_kind(machine_reading *r, char *text) {
    if (r->shape.n_kind == HP_NODE_KINDS) {
        machine_complain(r, "a machine has at most %d kinds of nodes", HP_NODE_KINDS);
        return false;
    }
    hp_node_kind *kind = &r->shape.kind[r->shape.n_kind++];
    *kind = (hp_node_kind){0};
    for (char *at = text; at;) {
        char *next = strchr(at, '+');
        if (next) *next++ = '\0';
        if (!read_part(r, trimmed(at), kind)) return false;
        at = next;
    }
    return true;
}

static int devices_of(const hp_node_kind *k) {
    int n = 0;
    for (int i = 0; i < k->n_part; i++) n += k->part[i].count;
    return n;
}

bool machine_read_shape(machine_reading *r, char *text) {
    char total[16];
    r->shape.n_name = r->shape.n_kind = 0;
    for (char *at = text; at;) {
        char *next = strchr(at, '|');
        if (next) *next++ = '\0';
        if (!read_kind(r, at)) return false;
        at = next;
    }
    const int devices = devices_of(&r->shape.kind[0]);
    for (int k = 1; k < r->shape.n_kind; k++) {
        if (devices_of(&r->shape.kind[k]) == devices) continue;
        machine_complain(r, "all nodes must have equally many devices, not %d and %d", devices,
                         devices_of(&r->shape.kind[k]));
        return false;
    }
    snprintf(total, sizeof total, "%d", devices);
    machine_put(r, M_DEVICES, total);
    const int pick = r->pick < r->shape.n_name ? r->pick : 0;
    snprintf(r->device, sizeof r->device, "%s", r->shape.name[pick]);
    return true;
}

bool machine_read_nodes(machine_reading *r, char *text) {
    char total[24];
    long sum = 0;
    if (!strchr(text, '+')) {
        r->shape.n_nodes = 0;
        machine_put(r, M_NODES, text);
        return true;
    }
    for (char *at = text; at;) {
        char *next = strchr(at, '+'), *end;
        if (next) *next++ = '\0';
        at = trimmed(at);
        const long n = strtol(at, &end, 10);
        if (end == at || *end || n < 1 || n > 1000000 || r->shape.n_nodes == HP_NODE_KINDS) {
            machine_complain(
                r, "nodes must be whole numbers from 1 to 1000000, one for each of at most %d kinds",
                HP_NODE_KINDS);
            return false;
        }
        r->shape.nodes[r->shape.n_nodes++] = (int32_t)n;
        sum += n;
        at = next;
    }
    snprintf(total, sizeof total, "%ld", sum);
    machine_put(r, M_NODES, total);
    return true;
}

void machine_read_slow(machine_reading *r, const char *text) {
    hp_mix *mix = &r->m.mix;
    hp_slow_place s = {.device = -1};
    int used = 0, more = 0;
    double percent = 0;
    if (!*text && mix->n_slow == 0) return; /* nobody */
    const bool node = sscanf(text, "%d:%lf%n", &s.node, &percent, &used) == 2;
    const bool device = !node && sscanf(text, "%d.%d:%lf%n", &s.node, &s.device, &percent, &used) == 3;
    sscanf(text + used, " %%%n", &more);
    s.speed = percent / 100;
    if ((!node && !device) || !more || text[used + more] || !(s.speed >= 0.01 && s.speed <= 1) ||
        s.node < 0 || (device && s.device < 0))
        machine_complain(
            r,
            "a slow place is NODE:SPEED%% or NODE.DEVICE:SPEED%%, numbered from 0, of 1%% to 100%%, "
            "as in slow=3:70%%, not '%.40s'",
            text);
    else if (mix->n_slow == HP_SLOW_PLACES)
        machine_complain(r, "at most %d places are slow", HP_SLOW_PLACES);
    else
        mix->slow[mix->n_slow++] = s;
}

bool machine_of_another(const machine_reading *r, const char *name) {
    for (int i = 0; i < r->whole.n_name; i++)
        if (i != r->pick && strcasecmp(r->whole.name[i], name) == 0) return true;
    return false;
}

/* --- putting classes together --- */

/* Two names may mean one device: "a100-40" and "NVIDIA A100 40GB". */
static void check_names(machine_reading *r) {
    for (int k = 1; k < hp_machine_classes(&r->m); k++)
        for (int j = 0; j < k; j++)
            if (strcasecmp(hp_machine_class(&r->m, j)->name, hp_machine_class(&r->m, k)->name) == 0) {
                machine_complain(r, "'%.40s' and '%.40s' both mean %s: write it one way", r->shape.name[j],
                                 r->shape.name[k], hp_machine_class(&r->m, k)->name);
                return;
            }
}

static void check_slow(machine_reading *r) {
    const hp_mix *mix = &r->m.mix;
    for (int i = 0; i < mix->n_slow; i++) {
        const hp_slow_place *s = &mix->slow[i];
        if (s->node >= r->m.nodes)
            machine_complain(r, "slow=%d:...: there are %d nodes, numbered from 0", s->node, r->m.nodes);
        else if (s->device >= r->m.devices_per_node)
            machine_complain(r, "slow=%d.%d:...: there are %d devices in a node, numbered from 0", s->node,
                             s->device, r->m.devices_per_node);
    }
}

/* Sets the number of nodes of each kind. */
static void place_kinds(machine_reading *r, const machine_shape *s) {
    hp_mix *mix = &r->m.mix;
    const int said = s->n_kind > 0 ? s->n_kind : mix->n_kind, kinds = said > 0 ? said : 1;
    if (s->n_nodes > 0 && s->n_nodes != kinds)
        machine_complain(r, "nodes has %d numbers, node has %d kind%s of nodes", s->n_nodes, kinds,
                         kinds > 1 ? "s" : "");
    else if (s->n_nodes == 0 && kinds > 1 && (s->n_kind > 0 || r->field[M_NODES] == GIVEN))
        machine_complain(r, "node has %d kinds of nodes: nodes=A + B says how many of each", kinds);
    for (int k = 0; k < mix->n_kind; k++) {
        if (s->n_nodes > k) mix->kind[k].nodes = s->nodes[k];
        if (mix->n_kind == 1) mix->kind[k].nodes = r->m.nodes;
    }
}

void machine_read_mix(const machine_reading *start, const char *text, machine_read *reads,
                      machine_reading *out) {
    machine_reading one = *start;
    reads(&one, text); /* a first pass to find its names */
    const machine_shape shape = one.shape;
    const bool mixed = shape.n_name > 1;
    *out = *start;
    out->whole = shape;
    reads(out, text);
    if (shape.n_kind > 0) { /* it describes the nodes from scratch */
        out->m.mix.n_class = mixed ? shape.n_name - 1 : 0;
        out->m.mix.n_kind = mixed ? shape.n_kind : 0;
        if (mixed) memcpy(out->m.mix.kind, shape.kind, sizeof shape.kind);
    }
    for (int k = 1; mixed && k < shape.n_name && !*out->problems; k++) {
        one = *start;
        one.whole = shape;
        one.pick = k;
        reads(&one, text);
        out->m.mix.class[k - 1] = one.m.device;
        memcpy(out->problems, one.problems, sizeof out->problems);
        if (*one.of_device)
            hp_text_add((hp_text){out->m.assumed, sizeof out->m.assumed}, "%s%s", *out->m.assumed ? "; " : "",
                        one.of_device);
    }
    if (*out->problems) return;
    if (mixed) check_names(out);
    place_kinds(out, &shape);
    check_slow(out);
}

/* --- writing --- */

const char *machine_nodes_text(hp_arena *arena, const hp_machine *m) {
    if (m->mix.n_kind < 2) return hp_arena_printf(arena, "%d", m->nodes);
    const char *text = "";
    for (int k = 0; k < m->mix.n_kind; k++)
        text = hp_arena_printf(arena, "%s%s%d", text, k ? " + " : "", m->mix.kind[k].nodes);
    return text;
}

const char *hp_machine_node_text(hp_arena *arena, const hp_machine *m) {
    if (m->mix.n_kind == 0) return hp_arena_printf(arena, "%d x %s", m->devices_per_node, m->device.name);
    const char *text = "";
    for (int k = 0; k < m->mix.n_kind; k++)
        for (int p = 0; p < m->mix.kind[k].n_part; p++) {
            const hp_node_part *part = &m->mix.kind[k].part[p];
            text = hp_arena_printf(arena, "%s%s%d x %s", text,
                                   p   ? " + "
                                   : k ? " | "
                                       : "",
                                   part->count, hp_machine_class(m, part->class)->name);
        }
    return text;
}

const char *hp_machine_slow_text(hp_arena *arena, const hp_machine *m) {
    const char *text = "";
    for (int i = 0; i < m->mix.n_slow; i++) {
        const hp_slow_place *s = &m->mix.slow[i];
        const char *device = s->device < 0 ? "" : hp_arena_printf(arena, ".%d", s->device);
        text = hp_arena_printf(arena, "%s%s%d%s:%.17g%%", text, i ? ", " : "slow=", s->node, device,
                               100 * s->speed);
    }
    return text;
}
