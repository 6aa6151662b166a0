/* detect.c - network cards: the rates of active InfiniBand ports ("200 Gb/sec (4X HDR)"), otherwise of
 * Ethernet ("10000", in Mb/s). If rates differ, only the cards with the highest count. */
#include "machines/detect.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct cards {
    double rate; /* bytes per second */
    int n;
} cards;

static void add(cards *c, double rate) {
    if (rate > c->rate) *c = (cards){rate, 0};
    c->n += rate > 0 && rate == c->rate;
}

/* The number at the start of a file; 0: none. */
static double number_in(const char *folder, const char *file) {
    char path[PATH_MAX];
    double v = 0;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    if (fscanf(f, "%lf", &v) != 1) v = 0;
    fclose(f);
    return v > 0 ? v : 0;
}

/* Calls `each` for every directory in `folder`. */
static void for_each(const char *folder, void (*each)(const char *path, cards *c), cards *c) {
    DIR *d = opendir(folder);
    char path[PATH_MAX];
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < PATH_MAX)
            each(path, c);
    if (d) closedir(d);
}

/* state: "4: ACTIVE" */
static void add_port(const char *port, cards *c) {
    if (number_in(port, "state") == 4 || number_in(port, "state") == 0)
        add(c, number_in(port, "rate") * 1e9 / 8);
}

static void add_infiniband(const char *card, cards *c) {
    char ports[PATH_MAX];
    if (snprintf(ports, sizeof ports, "%s/ports", card) < PATH_MAX) for_each(ports, add_port, c);
}

/* Bridges and tunnels have no device of their own and are skipped. */
static void add_ethernet(const char *card, cards *c) {
    char device[PATH_MAX];
    if (snprintf(device, sizeof device, "%s/device", card) >= PATH_MAX) return;
    DIR *d = opendir(device);
    if (!d) return;
    closedir(d);
    add(c, number_in(card, "speed") * 1e6 / 8);
}

static cards find_cards(const char *sys, bool *infiniband) {
    char folder[PATH_MAX];
    cards c = {0};
    snprintf(folder, sizeof folder, "%s/class/infiniband", sys);
    for_each(folder, add_infiniband, &c);
    *infiniband = c.n > 0;
    if (c.n) return c;
    snprintf(folder, sizeof folder, "%s/class/net", sys);
    for_each(folder, add_ethernet, &c);
    return c;
}

static void set_nics(hp_machine *m, const cards *c, bool infiniband) {
    char text[80];
    hp_error err;
    snprintf(text, sizeof text, "nic=%d x %.15gGb/s%s", c->n < 1024 ? c->n : 1024, c->rate * 8e-9,
             infiniband ? "" : ", tcp");
    hp_machine_set(m, text, &err);
    const hp_link_class *link = hp_link_class_find(m->inter.name);
    if (link) m->inter.latency_s = link->latency_s;
}

bool hp_machine_detect(const char *sys, hp_machine *m) {
    bool infiniband;
    const cards c = find_cards(sys, &infiniband);
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    const long n = nodes ? strtol(nodes, NULL, 10) : 0;
    if (n >= 1 && n <= 1000000) m->nodes = (int32_t)n;
    if (c.n) set_nics(m, &c, infiniband);
    return c.n > 0;
}
