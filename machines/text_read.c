/* text_read.c - clauses of a machine's text: nodes=8; node=4 x a100-80, nvlink=300GB/s; nic=2 x 200Gb/s.
 * Lines count as clauses; # begins a comment. Reports all errors at once. */
#include "machines/machine_text.h"
#include "base/alloc.h"

#include "base/nearest.h"
#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

enum { MAX_PARTS = 16 };

/* "nvlink=300GB/s": a key and its value. */
typedef struct part {
    char *key, *value; /* value: NULL without one */
} part;

void machine_complain(machine_reading *r, const char *format, ...) {
    char text[320];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    const size_t used = strlen(r->problems), more = strlen(text) + strlen(r->clause) + 16;
    if (used + more >= sizeof r->problems) {
        if (used < 3 || strcmp(r->problems + used - 3, "...") != 0)
            hp_text_add((hp_text){r->problems, sizeof r->problems}, "; ...");
        return;
    }
    hp_text_add((hp_text){r->problems, sizeof r->problems}, "%s%s%s%s%s", used ? "; " : "",
                *r->clause ? "'" : "", r->clause, *r->clause ? "': " : "", text);
}

/* --- values --- */

/* Accepts letters, digits and . _ - only: names appear in cost tables between spaces. */
bool machine_name_ok(const char *s) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return strspn(s, allowed) == strlen(s);
}

static bool put_string(machine_reading *r, const machine_field *f, const char *value, char *out) {
    const size_t n = strlen(value);
    if ((double)n >= f->low && (double)n <= f->high && (f->type != TYPE_NAME || machine_name_ok(value))) {
        memcpy(out, value, n + 1);
        return true;
    }
    machine_complain(r,
                     f->type == TYPE_NAME ? "a name has %g to %g letters, digits, '.', '_', '-'"
                                          : "a text has %g to %g bytes",
                     f->low, f->high);
    return false;
}

static bool put_number(machine_reading *r, const machine_field *f, double v, char *out) {
    char low[48], high[48];
    const bool whole = f->type != TYPE_DOUBLE;
    if (!(v >= f->low && v <= f->high) || (f->type == TYPE_INT32 && v != floor(v))) {
        machine_complain(r, "%s must be %s from %s to %s", *f->key ? f->key : f->clause,
                         whole && f->unit == HP_QUANTITY_COUNT ? "a whole number" : "a number",
                         hp_quantity_text(f->low, f->unit, low), hp_quantity_text(f->high, f->unit, high));
        return false;
    }
    if (f->type == TYPE_INT32)
        *(int32_t *)(void *)out = (int32_t)v;
    else if (f->type == TYPE_INT64)
        *(int64_t *)(void *)out = (int64_t)v; /* at most 1e15: exact in a double */
    else
        *(double *)(void *)out = v;
    return true;
}

static bool put_yes(machine_reading *r, const machine_field *f, const char *value, char *out) {
    const bool yes = strcasecmp(value, "yes") == 0, no = strcasecmp(value, "no") == 0;
    if (!yes && !no) machine_complain(r, "%s is yes or no", f->clause);
    *(bool *)(void *)out = yes;
    return yes || no;
}

static bool put_nic_use(const char *value, char *out) {
    for (int i = 0; i < HP_NIC_USES; i++)
        if (strcasecmp(value, hp_nic_use_names[i]) == 0) return *(int32_t *)(void *)out = i, true;
    return false;
}

void machine_put(machine_reading *r, machine_field_id i, const char *value) {
    const machine_field *f = &machine_fields[i];
    char *out = (char *)&r->m + f->offset;
    double v = 0;
    bool good = false;
    if (r->field[i] == GIVEN) machine_complain(r, "%s is said twice", *f->key ? f->key : f->clause);
    if (f->type == TYPE_NAME || f->type == TYPE_TEXT)
        good = put_string(r, f, value, out);
    else if (f->type == TYPE_YES)
        good = put_yes(r, f, value, out);
    else if (f->type == TYPE_NIC_USE)
        good = put_nic_use(value, out);
    else if (hp_quantity_read(value, f->unit, &v))
        good = put_number(r, f, v, out);
    else
        machine_complain(r, "%s must be %s, not '%.40s'", *f->key ? f->key : f->clause,
                         hp_quantity_example(f->unit), value);
    r->field[i] = good ? GIVEN : WRONG;
}

bool machine_counted(char *text, char **rest) {
    char *at = text + strspn(text, "+-0123456789.eE");
    char *end = at;
    while (*at == ' ') at++;
    if (end == text || (*at != 'x' && *at != 'X')) return false;
    for (*rest = at + 1; **rest == ' ';) ++*rest;
    *end = '\0';
    return **rest != '\0';
}

/* --- clauses --- */

static void refuse_part(machine_reading *r, const char *key, const char *clause) {
    const char *names[MACHINE_FIELDS];
    char all[160] = "";
    int n = 0;
    for (int i = 0; i < MACHINE_FIELDS; i++)
        if (*machine_fields[i].key && strcmp(machine_fields[i].clause, clause) == 0 &&
            strcmp(machine_fields[i].key, "rate") != 0)
            names[n++] = machine_fields[i].key;
    const char *near = hp_nearest(key, names, n);
    for (int i = 0; i < n && !near; i++)
        hp_text_add((hp_text){all, sizeof all}, "%s%s", i ? ", " : "", names[i]);
    machine_complain(r, "there is no '%.40s' here (%s)", key, near ? near : n ? all : "one value");
}

/* Reports a link that has no rate and whose name has no usual one. */
static void refuse_link(machine_reading *r, const char *name) {
    static const char *const links[] = {"nvlink", "nvswitch", "nvswitch-h", "nvswitch-b", "pcie",   "pcie4",
                                        "pcie5",  "shm",      "ib-edr",     "ib-hdr",     "ib-ndr", "tcp"};
    const char *near = hp_nearest(name, links, sizeof links / sizeof *links);
    machine_complain(r, "'%.40s' is neither %s nor a link whose rate is known (%s)", name,
                     hp_quantity_example(HP_QUANTITY_RATE),
                     near ? near
                          : "nvlink, nvswitch, nvswitch-h, nvswitch-b, pcie, pcie4, pcie5, shm, ib-edr, "
                            "ib-hdr, ib-ndr, tcp");
}

/* "memory": of a device, whose clause is another. */
static bool is_of_device(const char *key) {
    for (int i = M_MEMORY; i < MACHINE_FIELDS; i++)
        if (strcasecmp(machine_fields[i].key, key) == 0) return true;
    return false;
}

/* The parts behind the first of a node or NIC: its link, with a rate or without, and its latency. */
static void read_link(machine_reading *r, const part *p, const char *clause, machine_field_id name,
                      machine_field_id rate, machine_field_id latency) {
    static const char *const latencies[] = {"latency"};
    if (strcasecmp(p->key, "latency") == 0 && p->value) {
        machine_put(r, latency, p->value);
    } else if (p->value && is_of_device(p->key)) {
        machine_complain(r, "%s is said of a device, in a clause of its own: device=NAME, %s=%.40s", p->key,
                         p->key, p->value);
    } else if (!hp_link_class_find(p->key) && hp_nearest(p->key, latencies, 1)) {
        refuse_part(r, p->key, clause);
    } else if (!p->value && !hp_link_class_find(p->key) && r->field[rate] == ABSENT) {
        refuse_link(r, p->key);
        r->field[name] = r->field[rate] = WRONG;
    } else {
        machine_put(r, name, p->key);
        if (p->value) machine_put(r, rate, p->value);
    }
}

static void read_node(machine_reading *r, const part *p, int n) {
    if (r->field[M_DEVICE] == GIVEN) machine_complain(r, "node is said twice");
    if (!p->value || !machine_read_shape(r, p->value)) {
        if (!p->value) machine_complain(r, "a node is K x DEVICE, for example node=4 x a100-80");
        r->field[M_DEVICES] = r->field[M_DEVICE] = WRONG;
    } else {
        r->field[M_DEVICE] = GIVEN;
    }
    for (int i = 1; i < n; i++) read_link(r, &p[i], "node", M_LINK, M_LINK_RATE, M_LINK_LATENCY);
}

/* The usual link with that rate, for a link without a name. */
static const char *link_of_rate(double bytes_per_s) {
    static const char *const links[] = {"tcp", "ib-edr", "ib-hdr", "ib-ndr"};
    const char *best = links[0];
    double nearest = INFINITY;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        const double far = fabs(log(bytes_per_s / hp_link_class_find(links[i])->bytes_per_s));
        if (far >= nearest) continue;
        nearest = far;
        best = links[i];
    }
    return best;
}

static bool is_nic_use(const char *word) {
    int32_t use;
    return put_nic_use(word, (char *)&use);
}

static void read_nic(machine_reading *r, const part *p, int n) {
    char *what;
    const bool whole = p->value && machine_counted(p->value, &what);
    if (!whole) {
        machine_complain(r, "NICs are K x RATE, for example nic=2 x 200Gb/s, or K x LINK");
        r->field[M_NICS] = r->field[M_NIC_RATE] = WRONG;
    } else {
        machine_put(r, M_NICS, p->value);
        const bool link = hp_link_class_find(what) != NULL, rate = strpbrk(what, "0123456789.") == what;
        if (link || rate)
            machine_put(r, link ? M_NIC : M_NIC_RATE, what);
        else
            refuse_link(r, what), r->field[M_NIC_RATE] = r->field[M_NIC] = WRONG;
    }
    for (int i = 1; i < n; i++) {
        if (!p[i].value && is_nic_use(p[i].key))
            machine_put(r, M_NIC_USE, p[i].key);
        else
            read_link(r, &p[i], "nic", M_NIC, M_NIC_RATE, M_NIC_LATENCY);
    }
    if (whole && r->field[M_NIC_RATE] == GIVEN && r->field[M_NIC] != GIVEN && r->field[M_NIC] != WRONG)
        machine_put(r, M_NIC, link_of_rate(r->m.inter.bytes_per_s));
}

static void read_nodes(machine_reading *r, const part *p, int n) {
    if (!p->value) machine_complain(r, "it is written nodes=N");
    if (!p->value || !machine_read_nodes(r, p->value)) r->field[M_NODES] = WRONG;
    if (n > 1) refuse_part(r, p[1].key, "nodes");
}

static void read_slow(machine_reading *r, const part *p, int n) {
    if (r->slow) machine_complain(r, "slow is said twice");
    r->slow = true;
    r->m.mix.n_slow = 0;
    machine_read_slow(r, p->value ? p->value : "");
    for (int i = 1; i < n; i++) machine_read_slow(r, p[i].key);
}

static void read_device(machine_reading *r, const part *p, int n) {
    if (p->value && machine_of_another(r, p->value)) return;
    if (!p->value || !*p->value || strlen(p->value) >= sizeof r->described)
        machine_complain(r, "a device has a name: device=NAME");
    else
        snprintf(r->described, sizeof r->described, "%s", p->value);
    for (int i = 1; i < n; i++) {
        int f = M_MEMORY;
        while (f < MACHINE_FIELDS && strcasecmp(machine_fields[f].key, p[i].key) != 0) f++;
        if (f == MACHINE_FIELDS || !p[i].value)
            refuse_part(r, p[i].key, "device");
        else
            machine_put(r, (machine_field_id)f, p[i].value);
    }
}

static void read_taper(machine_reading *r, const part *p, int n) {
    double down, up;
    char *colon = p->value ? strchr(p->value, ':') : NULL, text[64];
    if (colon) *colon = '\0';
    if (!colon || !hp_quantity_read(p->value, HP_QUANTITY_COUNT, &down) ||
        !hp_quantity_read(colon + 1, HP_QUANTITY_COUNT, &up) || !(up > 0) || down < up || down > 1024 * up) {
        machine_complain(r, "a taper is A:B, of A links down B go up: 2:1, at least 1:1");
        r->field[M_TAPER] = WRONG;
        return;
    }
    snprintf(text, sizeof text, "%.17g", down / up);
    machine_put(r, M_TAPER, text);
    for (int i = 1; i < n; i++) {
        if (strcasecmp(p[i].key, "leaf") == 0 && p[i].value)
            machine_put(r, M_LEAF, p[i].value);
        else
            refuse_part(r, p[i].key, "fat-tree");
    }
}

static void read_plain(machine_reading *r, machine_field_id i, const part *p, int n) {
    if (p->value || i == M_CPU)
        machine_put(r, i, p->value ? p->value : "yes");
    else
        machine_complain(r, "it is written %s", machine_fields[i].form), r->field[i] = WRONG;
    if (n > 1) refuse_part(r, p[1].key, p->key);
}

static void read_parts(machine_reading *r, const part *p, int n) {
    static const struct {
        const char *name;
        void (*read)(machine_reading *r, const part *p, int n);
    } special[] = {{"nodes", read_nodes},   {"node", read_node},      {"nic", read_nic},
                   {"device", read_device}, {"fat-tree", read_taper}, {"slow", read_slow}};
    static const char *const names[] = {"name", "source", "nodes",     "node",    "cores",
                                        "nic",  "device", "share-cpu", "cpu",     "fat-tree",
                                        "slow", "mpi",    "sharp",     "any-size"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcasecmp(p->key, special[i].name) == 0) {
            special[i].read(r, p, n);
            return;
        }
    for (int i = 0; i < MACHINE_FIELDS; i++)
        if (!*machine_fields[i].key && strcasecmp(p->key, machine_fields[i].clause) == 0) {
            read_plain(r, (machine_field_id)i, p, n);
            return;
        }
    const char *near = hp_nearest(p->key, names, sizeof names / sizeof *names);
    machine_complain(r, "there is no such clause (%s)",
                     near ? near
                          : "name, source, nodes, node, cores, nic, device, share-cpu, cpu, fat-tree, slow, "
                            "mpi, sharp, any-size");
}

/* --- text --- */

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = '\0';
    return s;
}

/* Removes quotes and backslashes from "...", in place. */
static char *unquote(machine_reading *r, char *s) {
    if (*s != '"') return s;
    char *out = s, *at = s + 1;
    while (*at && *at != '"') {
        if (*at == '\\' && at[1]) at++;
        *out++ = *at++;
    }
    if (*at != '"' || at[1]) machine_complain(r, "a quote is not closed, or text follows it");
    *out = '\0';
    return s;
}

/* Splits "key=value", "fat-tree 2:1" or "cpu". */
static part split_part(machine_reading *r, char *text) {
    text = trim(text);
    part p = {text, NULL};
    const size_t n = strcspn(text, "= ");
    char *at = text + n + strspn(text + n, " ");
    if (*at == '=')
        p.value = at + 1;
    else if (n == strlen("fat-tree") && strncasecmp(text, "fat-tree", n) == 0 && *at)
        p.value = at;
    if (p.value) {
        text[n] = '\0';
        p.value = unquote(r, trim(p.value));
    }
    return p;
}

/* Cuts the text at the next of `ends` outside quotes, or at the end of a line; *last: the character found. */
static char *take(char **text, const char *ends, char *last) {
    char *from = *text, *at = from;
    bool inside = false;
    for (; *at && *at != '\n' && (inside || !strchr(ends, *at)); at++) {
        if (inside && *at == '\\' && at[1] && at[1] != '\n')
            at++;
        else if (*at == '"')
            inside = !inside;
    }
    *last = *at;
    *text = *at ? at + 1 : at;
    *at = '\0';
    return from;
}

static void read_clause(machine_reading *r, char *text) {
    part p[MAX_PARTS];
    int n = 0;
    char last = ',';
    text = trim(text);
    if (!*text) return;
    snprintf(r->clause, sizeof r->clause, strlen(text) < 44 ? "%.44s" : "%.40s...", text);
    while (last == ',' && n < MAX_PARTS) p[n++] = split_part(r, take(&text, ",", &last));
    if (last == ',') machine_complain(r, "a clause has at most %d parts", MAX_PARTS);
    read_parts(r, p, n);
    *r->clause = '\0';
}

void machine_read_clauses(machine_reading *r, const char *text) {
    for (const char *s = text; *s; s++)
        if (((unsigned char)*s < ' ' && !strchr("\n\r\t", *s)) || *s == 0x7f) {
            machine_complain(r, "a machine's text has no control characters");
            return;
        }
    char *copy = hp_strdup(text), *at = copy, last;
    for (char *s = copy; *s; s++)
        if (*s == '\r' || *s == '\t') *s = ' ';
    while (*at) {
        char *clause = take(&at, ";#", &last);
        if (last == '#') at += strcspn(at, "\n");
        read_clause(r, clause);
    }
    free(copy);
}
