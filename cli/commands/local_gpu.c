/* local_gpu.c - `hplan-exec --version`, the driver's version and the multi-process service's pipe. */
#include "cli/commands/local_gpu.h"

#include "cli/launch/launch_capture.h"
#include "cli/cli.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static const double ask_limit_s = 30; /* the first use of a GPU loads its libraries */

/* nvidia-cuda-mps-control makes this pipe as it starts; the folder is what clients look for as well. */
bool local_gpu_mps(char *pipe, size_t n) {
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(pipe, n, "%s/control", folder && folder[0] ? folder : "/tmp/nvidia-mps");
    return access(pipe, F_OK) == 0;
}

/* The word with two dots of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..." */
static void driver_version(char *out, size_t n) {
    char line[256] = "", *save = NULL;
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    snprintf(out, n, "no NVIDIA driver");
    if (!f) return;
    if (fgets(line, sizeof line, f)) snprintf(out, n, "NVIDIA");
    fclose(f);
    for (char *w = strtok_r(line, " \t\n", &save); w; w = strtok_r(NULL, " \t\n", &save))
        if (strspn(w, "0123456789.") == strlen(w) && strchr(w, '.')) snprintf(out, n, "%s", w);
}

static void read_gpu(json_t *o, hp_gpu *g) {
    const char *name = json_string_value(json_object_get(o, "name"));
    snprintf(g->name, sizeof g->name, "%s", name ? name : "GPU");
    g->count = (int32_t)json_integer_value(json_object_get(o, "count"));
    g->memory_bytes = json_integer_value(json_object_get(o, "memory_bytes"));
    g->flops_per_s = json_number_value(json_object_get(o, "flops_per_s"));
    g->bytes_per_s = json_number_value(json_object_get(o, "bytes_per_s"));
}

hp_status local_gpu_find(local_gpu *g, hp_error *err) {
    char path[PATH_MAX], answer[8192] = "", version[40], pipe[PATH_MAX];
    cli_executor_path(path, sizeof path);
    const bool answered =
        cli_capture((const char *const[]){path, "--version", NULL}, ask_limit_s, answer, sizeof answer);
    json_t *o = answered ? json_loads(answer, 0, NULL) : NULL, *gpu = json_object_get(o, "gpu");
    *g = (local_gpu){.driver = ""};
    if (gpu) read_gpu(gpu, &g->gpu);
    json_decref(o);
    if (g->gpu.count < 1)
        return hp_fail(err, HP_EUNAVAIL, "hplan-exec finds no GPU here: hplan doctor says what is missing");
    driver_version(version, sizeof version);
    snprintf(g->driver, sizeof g->driver, "%s, %s", version,
             local_gpu_mps(pipe, sizeof pipe) ? "MPS" : "time slices");
    return HP_OK;
}
