/* stopped.c - reads the state of a run's processes on this node from /proc. */
#include "cli/launch/stopped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 8 };

/* The rank, as Open MPI and Slurm set it; -1: not a rank. */
static int rank_of(pid_t pid) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "SLURM_PROCID="};
    char path[64];
    char *line = NULL;
    size_t room = 0;
    int rank = -1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && rank < 0 && getdelim(&line, &room, '\0', f) > 0)
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && rank < 0; i++)
            if (strncmp(line, NAMES[i], strlen(NAMES[i])) == 0) rank = atoi(line + strlen(NAMES[i]));
    if (f) fclose(f);
    free(line);
    return rank;
}

static bool is_executor(pid_t pid) {
    char path[64], command[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "r");
    const bool known = f && fgets(command, sizeof command, f);
    if (f) fclose(f);
    return known && strncmp(command, "hplan-exec", strlen("hplan-exec")) == 0;
}

/* A process that no launcher started is the only rank. */
static void name(pid_t pid, bool top, char *who, size_t n) {
    const int rank = top && is_executor(pid) ? 0 : top ? -1 : rank_of(pid);
    if (rank >= 0)
        snprintf(who, n, "rank %d (process %d)", rank, (int)pid);
    else
        snprintf(who, n, "%s (process %d)", top ? "the launcher" : "a process of the run", (int)pid);
}

void launch_children(pid_t pid, char *list, size_t n) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    list[f ? fread(list, 1, n - 1, f) : 0] = '\0';
    if (f) fclose(f);
}

static void look(pid_t pid, hp_process_state state, int depth, int *halted, char *who, size_t n) {
    char list[8192] = "", *save = NULL;
    if (hp_process_state_of(pid) == state && (*halted)++ == 0) name(pid, depth == 0, who, n);
    if (depth < DEEP) launch_children(pid, list, sizeof list);
    for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
        if (atoi(p) > 1 && !hp_process_decodes(atoi(p)))
            look((pid_t)atoi(p), state, depth + 1, halted, who, n);
}

bool launch_is_halted(pid_t child, int ranks, hp_process_state state, bool *silent, char *who, size_t n) {
    int halted = 0;
    look(child, state, 0, &halted, who, n);
    *silent = halted >= ranks || hp_process_state_of(child) == state;
    const size_t used = halted ? strlen(who) : 0;
    if (halted > 1) snprintf(who + used, n - used, " and %d more", halted - 1);
    return halted > 0;
}

bool launch_is_left_alone(pid_t child) {
    char list[8192], *save = NULL;
    int ended = 0;
    launch_children(child, list, sizeof list);
    for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save), ended++)
        if (hp_process_state_of(atoi(p)) != HP_PROCESS_GONE) return false;
    return ended > 0;
}
