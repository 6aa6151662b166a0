/* machine_local.c - the machine that hplan runs on, as a machine of CPU devices: one device is one core with
 * one thread. */
#include "base/host.h"
#include "machines/data_sheets.h"
#include "machines/here.h"
#include "machines/shipped.h"

/* Guessed rates until something is measured, for a server core of the 2020s: two FMA units, 8-wide at about 2
 * GHz or 16-wide at about 3 GHz; a fair share of the memory channels; a function call. `hplan calibrate`
 * replaces them. */
static const double narrow_flops_per_s = 60e9, wide_flops_per_s = 190e9;

static hp_device_class guessed_core(void) {
    return (hp_device_class){.name = "cpu",
                             .is_cpu = true,
                             .flops_per_s = hp_host_avx512() ? wide_flops_per_s : narrow_flops_per_s,
                             .bytes_per_s = 10e9,
                             .launch_s = 2e-6};
}

hp_status hp_machine_local(hp_machine *m, hp_error *err) {
    hp_here here;
    HP_TRY(hp_here_read(&hp_here_system, &here, err));
    *m = (hp_machine){.name = "local",
                      .source =
                          "cores and memory as the system says; rates are guesses until `hplan calibrate`",
                      .nodes = 1,
                      .devices_per_node = here.cores,
                      .cores_per_node = here.cores,
                      .nics_per_node = 1,
                      .device = guessed_core(),
                      .intra = LINK_SHM,
                      .inter = LINK_TCP /* unused: one node has no network */,
                      .share_cpu = true};
    m->device.memory_bytes = here.memory_bytes;
    return HP_OK;
}
