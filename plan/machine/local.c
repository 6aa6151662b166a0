/* local.c - the machine hplan runs on, as a machine of CPU devices: one device is one core with one
 * thread. */
#include "plan/machine/here.h"
#include "plan/machine/shipped.h"

/* Rates before anything was measured: guesses at one core of a server of the 2020s (two 8-wide FMA units at
 * about 2 GHz; a fair share of the memory channels; a memcpy through shared memory; a function call). `hplan
 * calibrate` replaces them. */
static const hp_device_class guessed_core = {
    .name = "cpu", .is_cpu = true, .flops_per_s = 60e9, .bytes_per_s = 10e9, .launch_s = 2e-6};
static const hp_link_class guessed_shm = {"shm", 1e-6, 5e9};
/* One node has no network; 10 Gb/s Ethernet stands in where a rate is asked for. */
static const hp_link_class guessed_net = {"tcp", 50e-6, 1.25e9};

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
                      .device = guessed_core,
                      .intra = guessed_shm,
                      .inter = guessed_net,
                      .share_cpu = true};
    m->device.memory_bytes = here.memory_bytes;
    return HP_OK;
}
