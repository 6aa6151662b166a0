/* cgroup.c - limits of control groups (Linux: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst; proc(5)
 * for mountinfo). A group is limited by itself and by all groups above it, so the files of all of them are
 * read. */
#include "machines/cgroup.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096 };

static bool read_line(const char *folder, const char *file, char *line, int size) {
    char path[LINE];
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool read = fgets(line, size, f) != NULL;
    fclose(f);
    return read;
}

/* A number of bytes; -1 if the file is missing or says "max". */
static int64_t read_bytes(const char *folder, const char *file) {
    char line[64], *end;
    if (!read_line(folder, file, line, sizeof line)) return -1;
    const int64_t value = strtoll(line, &end, 10);
    return end == line ? -1 : value;
}

/* Value of a row "KEY NUMBER" of a file; `missing` if there is none. */
static int64_t read_row(const char *folder, const char *file, const char *key, int64_t missing) {
    char path[LINE], line[128];
    int64_t value = missing;
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) return missing;
    FILE *f = fopen(path, "re");
    if (!f) return missing;
    const size_t n = strlen(key);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && line[n] == ' ') value = strtoll(line + n, NULL, 10);
    fclose(f);
    return value;
}

/* --- one group: its files by version --- */

typedef struct memory_files {
    const char *limit, *used;
    const char *inactive, *active; /* rows of memory.stat: inactive and active file pages */
    const char *events;            /* file whose row oom_kill counts killed processes */
} memory_files;

static const memory_files MEMORY_V1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                       "total_inactive_file", "total_active_file", "memory.oom_control"},
                          MEMORY_V2 = {"memory.max", "memory.current", "inactive_file", "active_file",
                                       "memory.events"};

static void limit_memory(const char *folder, const memory_files *files, hp_cgroup *out) {
    static const int64_t NO_LIMIT_V1 = INT64_MAX - (1 << 20); /* INT64_MAX in whole pages */
    if (out->oom_kills < 0) out->oom_kills = read_row(folder, files->events, "oom_kill", -1);
    const int64_t limit = read_bytes(folder, files->limit), used = read_bytes(folder, files->used);
    if (limit < 0 || limit >= NO_LIMIT_V1) return;
    /* file pages are dropped before the limit is exceeded; MemAvailable counts them the same way */
    const int64_t held = used - read_row(folder, "memory.stat", files->inactive, 0) -
                         read_row(folder, "memory.stat", files->active, 0);
    const int64_t left = held <= 0 ? limit : held < limit ? limit - held : 0;
    if (left < out->memory_free_bytes) out->memory_free_bytes = left;
    if (limit >= out->memory_bytes) return;
    out->memory_bytes = limit;
    snprintf(out->memory_file, sizeof out->memory_file, "%.480s/%s", folder, files->limit);
}

static void limit_cpus(const char *folder, const char *file, double quota_us, double period_us,
                       hp_cgroup *out) {
    if (!(quota_us > 0 && period_us > 0) || quota_us / period_us >= out->cpus) return;
    out->cpus = quota_us / period_us;
    snprintf(out->cpus_file, sizeof out->cpus_file, "%.480s/%s", folder, file);
}

static void apply_memory_v1(const char *folder, hp_cgroup *out) {
    limit_memory(folder, &MEMORY_V1, out);
}

static void apply_cpu_v1(const char *folder, hp_cgroup *out) {
    const int64_t quota_us = read_bytes(folder, "cpu.cfs_quota_us"),
                  period_us = read_bytes(folder, "cpu.cfs_period_us");
    limit_cpus(folder, "cpu.cfs_quota_us", (double)quota_us, (double)period_us, out);
}

static void apply_v2(const char *folder, hp_cgroup *out) {
    char line[64];
    double quota_us, period_us;
    limit_memory(folder, &MEMORY_V2, out);
    if (read_line(folder, "cpu.max", line, sizeof line) &&
        sscanf(line, "%lf %lf", &quota_us, &period_us) == 2)
        limit_cpus(folder, "cpu.max", quota_us, period_us, out);
}

/* --- where the groups are --- */

typedef struct hierarchy {
    const char *filesystem, *controller; /* as in mountinfo; version 2 has all controllers in one hierarchy */
    void (*apply)(const char *folder, hp_cgroup *out);
} hierarchy;

static const hierarchy HIERARCHIES[] = {
    {"cgroup", "memory", apply_memory_v1}, {"cgroup", "cpu", apply_cpu_v1}, {"cgroup2", "", apply_v2}};

static bool has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *p = list; *p; p += *p == ',') {
        const size_t k = strcspn(p, ",\n");
        if (k == n && strncmp(p, word, n) == 0) return true;
        p += k;
        if (*p == '\n') break;
    }
    return n == 0 && (*list == '\0' || *list == '\n');
}

/* The process's group in the hierarchy, from the line "ID:CONTROLLERS:PATH". */
static bool find_group(const char *root, const hierarchy *h, char group[LINE]) {
    char path[LINE], line[LINE];
    bool found = false;
    snprintf(path, sizeof path, "%.1024s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at) continue;
        *at = '\0';
        at[1 + strcspn(at + 1, "\n")] = '\0';
        found = has_word(controllers + 1, h->controller);
        if (found) strcpy(group, at + 1);
    }
    if (f) fclose(f);
    return found;
}

typedef struct mount {
    char top[LINE], point[LINE]; /* the mounted group, and its mount point */
} mount;

/* Parses a line of mountinfo: "36 35 98:0 TOP POINT options [fields] - FILESYSTEM source OPTIONS". */
static bool parse_mount(char *line, const hierarchy *h, mount *m) {
    char filesystem[64], options[LINE];
    const char *kind = strstr(line, " - ");
    if (!kind || sscanf(kind, " - %63s %*s %4095s", filesystem, options) != 2) return false;
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", m->top, m->point) != 2) return false;
    return strcmp(filesystem, h->filesystem) == 0 && (!*h->controller || has_word(options, h->controller));
}

static bool find_mount(const char *root, const hierarchy *h, mount *m) {
    char path[LINE], line[LINE];
    bool found = false;
    snprintf(path, sizeof path, "%.1024s/proc/self/mountinfo", root);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) found = parse_mount(line, h, m);
    if (f) fclose(f);
    return found;
}

/* The group's path below the mounted one. In a container, it may lie elsewhere ("/../.."); only the mounted
 * part is visible then. */
static const char *below_top(const char *group, const char *top) {
    const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool inside = strncmp(group, top, n) == 0 && (group[n] == '/' || group[n] == '\0');
    return inside && !strstr(group, "/..") ? group + n : "";
}

/* Finds the directory of the process's group. Returns the length of its prefix, the mount point; 0: there is
 * none. */
static int find_folder(const char *root, const hierarchy *h, char folder[3 * LINE]) {
    char group[LINE];
    mount m;
    if (!find_group(root, h, group) || !find_mount(root, h, &m)) return 0;
    const int top = snprintf(folder, 3 * LINE, "%.1024s%s", root, m.point);
    snprintf(folder + top, (size_t)(3 * LINE - top), "%s", below_top(group, m.top));
    for (size_t n = strlen(folder); n > (size_t)top && folder[n - 1] == '/'; n--) folder[n - 1] = '\0';
    return top;
}

static void walk_up(const char *root, const hierarchy *h, hp_cgroup *out) {
    char folder[3 * LINE];
    const int top = find_folder(root, h, folder);
    while (top) {
        h->apply(folder, out);
        char *last = strrchr(folder + top, '/');
        if (!last) return;
        *last = '\0';
    }
}

void hp_cgroup_read(const char *root, hp_cgroup *out) {
    *out = (hp_cgroup){
        .memory_bytes = INT64_MAX, .memory_free_bytes = INT64_MAX, .cpus = HUGE_VAL, .oom_kills = -1};
    for (size_t i = 0; i < sizeof HIERARCHIES / sizeof *HIERARCHIES; i++) walk_up(root, &HIERARCHIES[i], out);
}

bool hp_cgroup_cpu(const char *root, char folder[HP_CGROUP_PATH], bool *version_2) {
    static const hierarchy *const VERSIONS[] = {&HIERARCHIES[1], &HIERARCHIES[2]};
    for (int i = 0; i < 2; i++) {
        char path[3 * LINE];
        if (!find_folder(root, VERSIONS[i], path) || strlen(path) >= HP_CGROUP_PATH) continue;
        strcpy(folder, path);
        *version_2 = i == 1;
        return true;
    }
    return false;
}
