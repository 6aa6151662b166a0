/* quota.c - control groups with a quota of CPU time, in versions 1 and 2. */
#include "machines/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double PERIOD_US = 2000, LEAST_US = 1000; /* the smallest values that the kernel accepts */

hp_status hp_quota_parse(const char *text, int index, int n, double *processors, hp_error *err) {
    int entries = 1;
    for (const char *p = text; *p; p++) entries += *p == ':';
    if (entries != 1 && entries != n)
        return hp_fail(err, HP_EUSAGE,
                       "--quota=%.64s has %d shares for %d ranks: give one for each, or one for all", text,
                       entries, n);
    const char *p = text;
    for (int i = 0; i < index && entries > 1; i++) p = strchr(p, ':') + 1;
    char *end;
    *processors = strtod(p, &end);
    if (end == p || (*end && *end != ':') || !(*processors >= 0.01 && *processors <= 4096))
        return hp_fail(err, HP_EUSAGE, "--quota=%.64s: '%.*s' is no number of processors from 0.01 to 4096",
                       text, (int)strcspn(p, ":"), p);
    return HP_OK;
}

static hp_status write_file(const char *folder, const char *file, const char *value, hp_error *err) {
    char path[HP_CGROUP_PATH + 128];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    const int why = errno;
    if (fd >= 0) close(fd);
    if (written) return HP_OK;
    return hp_fail(
        err, HP_EUNAVAIL,
        "cannot share out CPU time: %s: %s; --quota needs control groups that may be changed (root, or "
        "systemd-run --user --scope -p Delegate=cpu)",
        path, strerror(why));
}

static hp_status limit(const char *folder, bool version_2, double processors, hp_error *err) {
    double period = PERIOD_US;
    if (processors * period < LEAST_US) period = ceil(LEAST_US / processors);
    const long quota = lrint(processors * period);
    char value[64];
    if (version_2) {
        snprintf(value, sizeof value, "%ld %.0f", quota, period);
        return write_file(folder, "cpu.max", value, err);
    }
    snprintf(value, sizeof value, "%.0f", period);
    HP_TRY(write_file(folder, "cpu.cfs_period_us", value, err));
    snprintf(value, sizeof value, "%ld", quota);
    return write_file(folder, "cpu.cfs_quota_us", value, err);
}

static hp_status enter(const char *folder, hp_error *err) {
    char self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    return write_file(folder, "cgroup.procs", self, err);
}

hp_status hp_quota_join(hp_quota *q, const char *root, double processors, hp_error *err) {
    *q = (hp_quota){.folder = ""};
    bool version_2;
    char made[sizeof q->folder];
    if (!hp_cgroup_cpu(root, q->parent, &version_2))
        return hp_fail(err, HP_EUNAVAIL,
                       "--quota: this system has no control groups that share out CPU time");
    if (version_2) { /* a group's children get only the controllers that it delegates; it may do so already */
        hp_error ignored;
        write_file(q->parent, "cgroup.subtree_control", "+cpu", &ignored);
    }
    snprintf(made, sizeof made, "%s/hplan-%d", q->parent, (int)getpid());
    if (mkdir(made, 0755) != 0 && errno != EEXIST)
        return hp_fail(err, HP_EUNAVAIL, "--quota: cannot make the control group %s: %s", made,
                       strerror(errno));
    hp_status s = limit(made, version_2, processors, err);
    if (s == HP_OK) s = enter(made, err);
    if (s == HP_OK)
        strcpy(q->folder, made);
    else
        rmdir(made);
    return s;
}

void hp_quota_leave(hp_quota *q) {
    hp_error ignored;
    if (!q->folder[0]) return;
    enter(q->parent, &ignored);
    rmdir(q->folder);
    q->folder[0] = '\0';
}

/* The process that a group of this name belongs to; 0: the group is not ours. */
static pid_t owner_of(const char *name) {
    int pid, end = 0;
    return sscanf(name, "hplan-%d%n", &pid, &end) == 1 && !name[end] && pid > 0 ? pid : 0;
}

void hp_quota_sweep(const char *root) {
    char parent[HP_CGROUP_PATH], path[HP_CGROUP_PATH + 300];
    bool version_2;
    DIR *folder = hp_cgroup_cpu(root, parent, &version_2) ? opendir(parent) : NULL;
    if (!folder) return;
    for (const struct dirent *e; (e = readdir(folder));) {
        const pid_t owner = owner_of(e->d_name);
        if (!owner || kill(owner, 0) == 0 || errno != ESRCH) continue;
        snprintf(path, sizeof path, "%s/%s", parent, e->d_name);
        rmdir(path); /* fails if a process is still in it */
    }
    closedir(folder);
}
