/* hostfile.c - lines "NAME [slots=N] ..." (Open MPI's mpirun(1), "Specifying Host Nodes"); a name may come twice. */
#include "cli/launch/hostfile.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 1024 };

static bool is_this_node(const char *name) {
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    const size_t plain = strcspn(own, "."), n = strcspn(name, ".");
    return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 || strcmp(name, "::1") == 0 ||
           (n == plain && strncmp(name, own, n) == 0);
}

/* Was the name in the file before this line? */
static bool is_repeated(FILE *f, const char *name, long end) {
    char line[LINE], earlier[LINE];
    bool found = false;
    rewind(f);
    while (!found && ftell(f) < end && fgets(line, sizeof line, f))
        found = ftell(f) < end && sscanf(line, "%1023s", earlier) == 1 && strcmp(earlier, name) == 0;
    fseek(f, end, SEEK_SET);
    return found;
}

static void add_line(FILE *f, char *line, given_nodes *g, bool *unsaid) {
    char name[LINE];
    int slots = 0;
    line[strcspn(line, "#")] = '\0';
    if (sscanf(line, "%1023s", name) != 1) return;
    const char *said = strstr(line, "slots");
    if (said) sscanf(said, "slots = %d", &slots);
    if (slots > 0) g->slots += slots;
    *unsaid |= slots <= 0;
    g->here |= is_this_node(name);
    g->nodes += !is_repeated(f, name, ftell(f));
}

static hp_status read_hostfile(const char *path, given_nodes *g, hp_error *err) {
    char line[LINE];
    bool unsaid = false;
    FILE *f = fopen(path, "re");
    if (!f)
        return hp_fail(err, HP_EDATA, "--hostfile %s: %s; give a readable file of node names", path,
                       strerror(errno));
    while (fgets(line, sizeof line, f)) add_line(f, line, g, &unsaid);
    fclose(f);
    if (unsaid) g->slots = 0;
    return g->nodes ? HP_OK : hp_fail(err, HP_EDATA, "--hostfile %s names no node", path);
}

hp_status given_nodes_read(const char *path, given_nodes *given, hp_error *err) {
    const char *slurm = getenv("SLURM_JOB_ID") ? getenv("SLURM_JOB_NUM_NODES") : NULL;
    *given = (given_nodes){0};
    if (path) return read_hostfile(path, given, err);
    *given = (given_nodes){.nodes = slurm && atoi(slurm) > 1 ? atoi(slurm) : 1, .here = true};
    return HP_OK;
}
