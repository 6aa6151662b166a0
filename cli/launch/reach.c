/* reach.c - probes each node by mpirun: a failure shows what a run would meet there. */
#include "cli/launch/reach.h"

#include "cli/launch/launch_capture.h"
#include "cli/launch/hostfile.h"
#include "cli/launch/launch_command.h"

#include <errno.h>
#include <string.h>

static const double ANSWER_S = 20;

/* Is `name` in a comma-separated list? */
static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0')) return true;
    return false;
}

static bool answers(const char *name) {
    char said[256];
    const char *const command[] = {
        "mpirun", "--allow-run-as-root", LAUNCH_KEEP_ALIVE, "-n", "1", "--host", name, "true", NULL};
    return given_node_is_here(name) || cli_capture(command, ANSWER_S, said, sizeof said);
}

static hp_status copy_lines(hp_arena *arena, FILE *from, FILE *to, const char *avoid, reached_nodes *r) {
    char line[1024], name[1024];
    const char *kept = "";
    while (fgets(line, sizeof line, from)) {
        if (sscanf(line, " %1023[^ \t\r\n#]", name) != 1) continue;
        if (!is_listed(kept, name)) {
            if (is_listed(r->lost, name)) continue;
            const bool there = !is_listed(avoid, name) && answers(name);
            const char **list = there ? &kept : &r->lost;
            *list = hp_arena_printf(arena, "%s%s%s", *list, (*list)[0] ? "," : "", name);
            r->n += there;
            if (!there) continue;
        }
        fputs(line, to);
    }
    return HP_OK;
}

hp_status reach_nodes(hp_arena *arena, const char *hostfile, const char *avoid, const char *out,
                      reached_nodes *r, hp_error *err) {
    *r = (reached_nodes){.lost = ""};
    FILE *from = fopen(hostfile, "re"), *to = from ? fopen(out, "we") : NULL;
    const int why = errno;
    if (to) copy_lines(arena, from, to, avoid, r);
    if (from) fclose(from);
    if (to && fclose(to) == 0) return HP_OK;
    return hp_fail(err, from ? HP_EIO : HP_EDATA, "%s: %s", from ? out : hostfile,
                   strerror(to ? errno : why));
}
