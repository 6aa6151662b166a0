/* hostfile.c - parses lines "NAME [slots=N] ..." (Open MPI's mpirun(1), "Specifying Host Nodes"); a name may
 * occur twice. */
#define _GNU_SOURCE
#include "cli/launch/hostfile.h"
#include "base/arena.h"
#include "base/input.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 1024 };

/* --- this node --- */

static bool is_own_name(const char *name) {
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    const size_t plain = strcspn(own, "."), n = strcspn(name, ".");
    return strcmp(name, "localhost") == 0 || (n == plain && strncmp(name, own, n) == 0);
}

/* Only this machine's addresses can be bound to a socket. */
static bool is_own_address(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool own = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;
    if (fd >= 0) close(fd);
    return own;
}

bool given_node_is_here(const char *name) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    bool here = is_own_name(name);
    if (here || getaddrinfo(name, NULL, &hints, &list) != 0) return here;
    for (const struct addrinfo *a = list; a && !here; a = a->ai_next) here = is_own_address(a);
    freeaddrinfo(list);
    return here;
}

/* --- the file --- */

typedef struct node {
    const char *name;
    int slots;
    bool unsaid; /* a line without slots */
} node;

typedef struct node_list {
    hp_arena *arena;
    node *at;
    int n, capacity;
} node_list;

static node *find_node(node_list *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->at[i].name, name) == 0) return &l->at[i];
    HP_ROOM(l->arena, l->at, l->n, l->capacity);
    l->at[l->n] = (node){.name = hp_arena_strdup(l->arena, name)};
    return &l->at[l->n++];
}

/* The number in "slots=N" or "slots = N", but not in "max_slots=N". */
static int slots_of(const char *words) {
    int slots = 0;
    const char *said = words;
    while ((said = strstr(said, "slots")) && said > words && !strchr(" \t", said[-1])) said++;
    if (said) sscanf(said, "slots = %d", &slots);
    return slots;
}

static void add_line(node_list *l, char *line) {
    char name[LINE];
    line[strcspn(line, "#")] = '\0';
    if (sscanf(line, "%1023s", name) != 1) return;
    const int slots = slots_of(line);
    node *n = find_node(l, name);
    if (slots > 0) n->slots += slots;
    n->unsaid |= slots <= 0;
}

static given_nodes sum_up(const node_list *l) {
    given_nodes g = {.nodes = l->n};
    bool unsaid = false;
    for (int i = 0; i < l->n; i++) {
        g.here = g.here || given_node_is_here(l->at[i].name);
        g.slots += l->at[i].slots;
        if (l->at[i].slots > g.most_slots) g.most_slots = l->at[i].slots;
        unsaid |= l->at[i].unsaid;
    }
    if (unsaid) g.slots = g.most_slots = 0;
    return g;
}

static hp_status read_hostfile(hp_arena *arena, const char *path, node_list *l, hp_error *err) {
    char line[LINE];
    *l = (node_list){.arena = arena};
    FILE *f = hp_input_fopen(path);
    if (!f)
        return hp_fail(err, HP_EDATA, "--hostfile %s: %s; give a readable file of node names", path,
                       strerror(errno));
    while (fgets(line, sizeof line, f)) add_line(l, line);
    fclose(f);
    return l->n ? HP_OK : hp_fail(err, HP_EDATA, "--hostfile %s names no node", path);
}

hp_status given_nodes_read(const char *path, given_nodes *given, hp_error *err) {
    const char *slurm = getenv("SLURM_JOB_ID") ? getenv("SLURM_JOB_NUM_NODES") : NULL;
    *given = (given_nodes){.nodes = slurm && atoi(slurm) > 1 ? atoi(slurm) : 1, .here = true};
    if (!path) return HP_OK;
    hp_arena *arena = hp_arena_new();
    node_list l;
    const hp_status s = read_hostfile(arena, path, &l, err);
    if (s == HP_OK) *given = sum_up(&l);
    hp_arena_free(arena);
    return s;
}

bool given_nodes_name(const char *path, int number, char *name, size_t n) {
    hp_arena *arena = hp_arena_new();
    node_list l;
    const bool there = read_hostfile(arena, path, &l, NULL) == HP_OK && number >= 0 && number < l.n;
    if (there) snprintf(name, n, "%s", l.at[number].name);
    hp_arena_free(arena);
    return there;
}

/* mpirun knows its own node by the node's own name, whatever the hostfile calls it. */
static void name_own_node(node_list *l) {
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    for (int i = 0; i < l->n; i++)
        if (given_node_is_here(l->at[i].name)) l->at[i].name = hp_arena_strdup(l->arena, own);
}

static hp_status write_names(const node_list *l, const int32_t *node_of, int ranks, const char *out,
                             hp_error *err) {
    FILE *f = fopen(out, "we");
    bool good = f != NULL;
    for (int r = 0; good && r < ranks; r++) good = fprintf(f, "%s\n", l->at[node_of[r] % l->n].name) > 0;
    if (f && fclose(f) != 0) good = false;
    return good ? HP_OK : hp_fail(err, HP_EIO, "cannot write %s: %s", out, strerror(errno));
}

hp_status given_nodes_deal(const char *hostfile, const int32_t *node_of, int ranks, const char *out,
                           hp_error *err) {
    hp_arena *arena = hp_arena_new();
    node_list l;
    hp_status s = read_hostfile(arena, hostfile, &l, err);
    if (s == HP_OK) name_own_node(&l);
    if (s == HP_OK) s = write_names(&l, node_of, ranks, out, err);
    hp_arena_free(arena);
    return s;
}

/* --- the ranks --- */

int given_nodes_fullest(const given_nodes *g, int ranks) {
    if (ranks <= g->slots) return ranks < g->most_slots ? ranks : g->most_slots;
    return g->most_slots + (ranks - g->slots + g->nodes - 1) / g->nodes;
}
