/* machine.c - finds a machine: this one, a shipped one, a file, or a description on the command line. */
#include "machines/machine.h"
#include "base/alloc.h"
#include "base/host.h"
#include "base/input.h"
#include "base/nearest.h"

#include "machines/shipped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 64 };
enum { MAX_FILE = 1 << 16 }; /* a machine's text has about 1 kB */

const char *hp_cache_path(const char *file, char *out, size_t n) {
    return hp_user_path("XDG_CACHE_HOME", ".cache", file, out, n);
}

static hp_status not_found(const char *name, int why, hp_error *err) {
    const bool path = strchr(name, '/') || strchr(name, '.');
    if (path || why != ENOENT) return hp_fail(err, HP_EDATA, "machine file %.300s: %s", name, strerror(why));
    const char *gpu = name;
    char *end;
    long devices = strtol(name, &end, 10);
    while (end > name && *end == ' ') end++;
    if (end > name && (*end == 'x' || *end == 'X')) gpu = end + 1;
    if (gpu == name || devices < 1 || devices > 64) devices = 1;
    bool sure;
    const hp_gpu_model *model = hp_gpu_model_find(gpu, 0, &sure);
    if (model)
        return hp_fail(
            err, HP_EUSAGE,
            "unknown machine '%.300s': it names a device; did you mean --machine \"nodes=1; node=%ld x %s\"?",
            name, devices, model->device.name);
    const char *known[MOST_NAMES];
    int n = 0;
    for (const char *shipped; n < MOST_NAMES && (shipped = hp_machine_shipped_name(n)); n++)
        known[n] = shipped;
    const char *near = hp_nearest(name, known, n);
    if (near)
        return hp_fail(err, HP_EUSAGE, "unknown machine '%.300s': did you mean '%s'? hplan machine list",
                       name, near);
    return hp_fail(err, HP_EUSAGE,
                   "unknown machine '%.300s'; known are %s, %s, a file, or words such as \"nodes=8; node=4 x "
                   "a100-80\"",
                   name, hp_device_machines, hp_machine_names());
}

/* Reads at most MAX_FILE bytes into text (of MAX_FILE + 1) and terminates it. */
static hp_status read_file(const char *name, char *text, hp_error *err) {
    FILE *f = hp_input_fopen(name);
    if (!f) return not_found(name, errno, err);
    const size_t n = fread(text, 1, MAX_FILE + 1, f);
    const int why = ferror(f) ? errno : 0;
    fclose(f);
    if (why) return hp_fail(err, HP_EDATA, "machine file %.300s: %s", name, strerror(why));
    if (n > MAX_FILE)
        return hp_fail(err, HP_EDATA, "machine file %.300s: more than %d bytes: not a machine", name,
                       MAX_FILE);
    if (memchr(text, '\0', n)) return hp_fail(err, HP_EDATA, "machine file %.300s: not text", name);
    text[n] = '\0';
    return HP_OK;
}

static hp_status load_file(const char *name, hp_machine *m, hp_error *err) {
    char *text = hp_alloc(MAX_FILE + 1);
    hp_status status = read_file(name, text, err);
    if (status == HP_OK) status = hp_machine_parse(text, name, m, err);
    free(text);
    return status;
}

static hp_status load_gpus(const hp_device_info *device, hp_machine *m, hp_error *err) {
    char path[4096], file[64];
    snprintf(file, sizeof file, "%s.machine", device->machine);
    if (access(hp_cache_path(file, path, sizeof path), R_OK) == 0) return load_file(path, m, err);
    return hp_fail(err, HP_EUNAVAIL,
                   "nothing is known of this machine's GPUs yet (no %.300s): hplan calibrate --device %s",
                   path, device->name);
}

/* Errors here are the command line's, not a file's. */
static hp_status load_words(const char *text, hp_machine *m, hp_error *err) {
    const hp_status status = hp_machine_parse(text, "--machine", m, err);
    if (status != HP_OK && err) err->code = HP_EUSAGE;
    return status == HP_OK ? status : HP_EUSAGE;
}

hp_status hp_machine_load(const char *what, hp_machine *m, hp_error *err) {
    const hp_device_info *here = hp_device_of_machine(what);
    if (here) return hp_device_on_gpu(here) ? load_gpus(here, m, err) : hp_machine_local(m, err);
    const char *shipped = hp_machine_shipped(what);
    if (shipped) return hp_machine_parse(shipped, what, m, err);
    return strchr(what, '=') && access(what, F_OK) != 0 ? load_words(what, m, err) : load_file(what, m, err);
}
