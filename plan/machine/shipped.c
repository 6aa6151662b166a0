/* shipped.c - machines as published. Starting values: measured cost tables take precedence over them.
 * Devices and links: plan/machine/data_sheets.h. */
#include "plan/machine/shipped.h"

#include "plan/machine/data_sheets.h"

/* clang-format off */
const hp_machine hp_machines_shipped[] = {
    {.name = "thesis-a100",
     .source = "A100 data sheet; links: 168 GB/s fitted to published training runs with 2 NVLinked A100 and one HDR "
               "port a node, HDR 24 GB/s effective; latency: NCCL 2.30 tuner; number of nodes and launch: guess",
     .nodes = 512, .devices_per_node = 2, .cores_per_node = 64 /* EPYC 7713 */, .nics_per_node = 1,
     .device = CLASS_A100_40,
     .intra = LINK_NVLINK,
     .inter = LINK_HDR},
    {.name = "lassen",
     .source = "V100 data sheet; LLNL: 795 nodes, 4 V100, 44 POWER9 cores; NVLink between pairs 60 GB/s effective (3 x "
               "20, NCCL topo.h), 2 x EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 795, .devices_per_node = 4, .cores_per_node = 44, .nics_per_node = 2,
     .device = CLASS_V100_16,
     .intra = LINK_NVLINK_V,
     .inter = LINK_EDR},
    {.name = "summit",
     .source = "V100 data sheet; ORNL: 4608 nodes, 6 V100 in triplets, 44 POWER9 cores; NVLink pair 40 GB/s effective "
               "(2 x 20, NCCL topo.h), 2 x EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 4608, .devices_per_node = 6, .cores_per_node = 44, .nics_per_node = 2,
     .device = CLASS_V100_16,
     .intra = {"nvlink", NVLINK_S, 40e9},
     .inter = LINK_EDR},
    {.name = "pitzer",
     .source = "V100 data sheet (PCIe); OSC: 74 nodes with 2 V100, 40 cores; PCIe 3 x16 12 GB/s effective (NCCL topo.h), "
               "EDR 12.2 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 74, .devices_per_node = 2, .cores_per_node = 40, .nics_per_node = 1,
     .device = CLASS_V100_16_PCIE,
     .intra = LINK_PCIE,
     .inter = LINK_EDR},
    {.name = "thetagpu",
     .source = "A100 data sheet; ALCF: 24 DGX A100, 8 A100 behind NVSwitch, 128 cores; bus bandwidth 220 GB/s (measured "
               "210-232 on such nodes), 8 x HDR 24 GB/s effective; latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 24, .devices_per_node = 8, .cores_per_node = 128, .nics_per_node = 8,
     .device = CLASS_A100_40,
     .intra = LINK_NVSWITCH,
     .inter = LINK_HDR},
    {.name = "dgx-h200",
     .source = "H200 and DGX H200 data sheets: 8 H200 behind NVSwitch, 112 cores, 8 NDR ports; 370.8 GB/s ring, NDR 46 GB/s "
               "effective; nodes: one 1024-GPU cluster (guess); latency: NCCL 2.30 tuner; launch: guess",
     .nodes = 128, .devices_per_node = 8, .cores_per_node = 112, .nics_per_node = 8,
     .device = CLASS_H200,
     .intra = LINK_NVSWITCH_H,
     .inter = LINK_NDR},
};
/* clang-format on */

const int hp_machines_shipped_count = sizeof hp_machines_shipped / sizeof hp_machines_shipped[0];
