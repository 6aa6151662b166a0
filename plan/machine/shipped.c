/* shipped.c - machines as published. Starting values: measured cost tables take precedence over them.
 *
 * Devices: vendors' data sheets, fp32 (not tensor-core) peak and memory bandwidth:
 *   V100 SXM2 15.7 TFLOP/s, 900 GB/s; V100 PCIe 14 TFLOP/s, 900 GB/s (NVIDIA V100 data sheet, 2020)
 *   A100 40GB 19.5 TFLOP/s, 1555 GB/s (NVIDIA A100 data sheet, 2021)
 *   H200 67 TFLOP/s, 4.8 TB/s, 141 GB (NVIDIA H200 data sheet, 2024)
 * Latencies: NCCL 2.30's tuner, protocol Simple, src/graph/tuning.cc: 4.0 us over NVLink, 5.7 us over PCIe
 * (ring), 14 us over the network. Rates of links: per machine below. launch_s is a guess: 5 us for a kernel
 * launch as frameworks do it. */
#include "plan/machine/shipped.h"

#define LAUNCH_S 5e-6
#define NVLINK_S 4.0e-6
#define PCIE_S   5.7e-6
#define NET_S    14e-6

/* clang-format off */
#define V100_SXM2 {.name = "v100-16", .memory_bytes = 16000000000, .flops_per_s = 15.7e12, .bytes_per_s = 900e9, .launch_s = LAUNCH_S}
#define V100_PCIE {.name = "v100-16-pcie", .memory_bytes = 16000000000, .flops_per_s = 14e12, .bytes_per_s = 900e9, .launch_s = LAUNCH_S}
#define A100_40   {.name = "a100-40", .memory_bytes = 40000000000, .flops_per_s = 19.5e12, .bytes_per_s = 1555e9, .launch_s = LAUNCH_S}
#define H200      {.name = "h200", .memory_bytes = 141000000000, .flops_per_s = 67e12, .bytes_per_s = 4.8e12, .launch_s = LAUNCH_S}

const hp_machine hp_machines_shipped[] = {
    {.name = "thesis-a100",
     .source = "A100 data sheet; links: 168 GB/s fitted to published training runs with 2 NVLinked A100 and one HDR "
               "port a node, HDR 24 GB/s effective; latency: NCCL 2.30 tuner; number of nodes and launch: guess",
     .nodes = 512, .devices_per_node = 2, .cores_per_node = 64 /* EPYC 7713 */, .nics_per_node = 1,
     .device = A100_40,
     .intra = {"nvlink", NVLINK_S, 168e9},
     .inter = {"ib-hdr", NET_S, 24e9}},
    {.name = "lassen",
     .source = "V100 data sheet; LLNL: 795 nodes, 4 V100, 44 POWER9 cores; NVLink between pairs 60 GB/s effective (3 x "
               "20, NCCL topo.h), 2 x EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 795, .devices_per_node = 4, .cores_per_node = 44, .nics_per_node = 2,
     .device = V100_SXM2,
     .intra = {"nvlink", NVLINK_S, 60e9},
     .inter = {"ib-edr", NET_S, 12.2e9}},
    {.name = "summit",
     .source = "V100 data sheet; ORNL: 4608 nodes, 6 V100 in triplets, 44 POWER9 cores; NVLink pair 40 GB/s effective "
               "(2 x 20, NCCL topo.h), 2 x EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 4608, .devices_per_node = 6, .cores_per_node = 44, .nics_per_node = 2,
     .device = V100_SXM2,
     .intra = {"nvlink", NVLINK_S, 40e9},
     .inter = {"ib-edr", NET_S, 12.2e9}},
    {.name = "pitzer",
     .source = "V100 data sheet (PCIe); OSC: 74 nodes with 2 V100, 40 cores; PCIe 3 x16 12 GB/s effective (NCCL topo.h), "
               "EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 74, .devices_per_node = 2, .cores_per_node = 40, .nics_per_node = 1,
     .device = V100_PCIE,
     .intra = {"pcie", PCIE_S, 12e9},
     .inter = {"ib-edr", NET_S, 12.2e9}},
    {.name = "thetagpu",
     .source = "A100 data sheet; ALCF: 24 DGX A100, 8 A100 behind NVSwitch, 128 cores; bus bandwidth 220 GB/s (measured "
               "210-232 on such nodes), 8 x HDR 24 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 24, .devices_per_node = 8, .cores_per_node = 128, .nics_per_node = 8,
     .device = A100_40,
     .intra = {"nvswitch", NVLINK_S, 220e9},
     .inter = {"ib-hdr", NET_S, 24e9}},
    {.name = "dgx-h200",
     .source = "H200 and DGX H200 data sheets: 8 H200 behind NVSwitch, 112 cores, 8 NDR ports; 370.8 GB/s ring, NDR 46 GB/s "
               "effective; nodes: one 1024-GPU cluster (guess); latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 128, .devices_per_node = 8, .cores_per_node = 112, .nics_per_node = 8,
     .device = H200,
     .intra = {"nvswitch-h", NVLINK_S, 370.8e9},
     .inter = {"ib-ndr", NET_S, 46e9}},
};
/* clang-format on */

const int hp_machines_shipped_count = sizeof hp_machines_shipped / sizeof hp_machines_shipped[0];
