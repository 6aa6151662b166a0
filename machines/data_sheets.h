/* data_sheets.h - published figures of GPUs and links, as initialisers for the tables built from them.
 *
 * GPUs: NVIDIA's data sheets. float32 is outside tensor cores. Matrix rates are dense: half of the rate if a
 * sheet gives it with sparsity. Memory is as sold. Sources by class: p40 (2016), v100 (2020), t4 (2019), a100
 * (2021 and 2022: SXM 80 GB 2039 GB/s, PCIe 80 GB 1935 GB/s), a10 (2021), a30 (2022), a40 (2021), l4 (2023),
 * l40s (2023), h100 (2023: SXM5, PCIe, NVL), h200 (2024), b200 (HGX, 2025, up to 8 TB/s), rtx-pro-6000
 * (Blackwell Server Edition, 2025); rtx-3090, rtx-4090, rtx-5090: NVIDIA's white papers on GA102 (2021),
 * AD102 (2022), GB202 (2025), in 16 bits with float32 accumulation, which is half of their rate without. V100
 * multiplies 8-bit integers outside tensor cores, four products for a float32 one; T4 multiplies them in
 * tensor cores.
 *
 * Latencies: NCCL 2.30's tuner, protocol Simple, src/graph/tuning.cc: 4.0 us over NVLink, 5.7 us over PCIe
 * (ring), 14 us over the network. Link rates: effective rates of NCCL's topo.h (PCIe 3 x16 12 GB/s, doubled
 * by each generation; EDR 12.2, HDR 24, NDR 46 GB/s); NVLink per machine or as measured on it. launch_s is a
 * guess: 5 us for a kernel launch, as in frameworks. */
#ifndef HP_DATA_SHEETS_H
#define HP_DATA_SHEETS_H

#define NVLINK_S 4.0e-6
#define PCIE_S   5.7e-6
#define NET_S    14e-6

/* clang-format off */
/* Rates in 10^12 operations/s and 10^9 bytes/s: float32; tf32, bf16, fp16, int8 on matrices; memory. */
#define GPU_CLASS(class, similar, gigabytes, fp32, tf32, bf16, fp16, int8, memory) \
    {.name = class, .like = similar, .memory_bytes = gigabytes * INT64_C(1000000000), .flops_per_s = fp32 * 1e12, \
     .tf32_flops_per_s = tf32 * 1e12, .bf16_flops_per_s = bf16 * 1e12, .fp16_flops_per_s = fp16 * 1e12, \
     .int8_ops_per_s = int8 * 1e12, .bytes_per_s = memory * 1e9, .launch_s = 5e-6}

/* `like` is the most similar architecture with measured or published figures (costmodels/data/shipped.cost),
 * used at the class's own data-sheet rates */
#define CLASS_A100_40      GPU_CLASS("a100-40",      "a100-40", 40,  19.5, 156,   312,   312,   624,  1555)
#define CLASS_A100_80      GPU_CLASS("a100-80",      "a100-40", 80,  19.5, 156,   312,   312,   624,  2039)
#define CLASS_A100_80_PCIE GPU_CLASS("a100-80-pcie", "a100-40", 80,  19.5, 156,   312,   312,   624,  1935)
#define CLASS_H100         GPU_CLASS("h100",         "a100-40", 80,  67,   494.5, 989.5, 989.5, 1979, 3350)
#define CLASS_H100_PCIE    GPU_CLASS("h100-pcie",    "h100",    80,  51,   378,   756.5, 756.5, 1513, 2000)
#define CLASS_H100_NVL     GPU_CLASS("h100-nvl",     "h100",    94,  60,   417.5, 835.5, 835.5, 1671, 3900)
#define CLASS_H200         GPU_CLASS("h200",         "h100",    141, 67,   494.5, 989.5, 989.5, 1979, 4800)
#define CLASS_L40S         GPU_CLASS("l40s",         "a100-40", 48,  91.6, 183,   362,   362,   733,  864)
#define CLASS_B200         GPU_CLASS("b200",         "h100",    180, 75,   1125,  2250,  2250,  4500, 8000)
#define CLASS_RTX_PRO_6000 GPU_CLASS("rtx-pro-6000", "l40s",    96,  117,  251.9, 503.8, 503.8, 1007.6, 1597)
#define CLASS_RTX_3090     GPU_CLASS("rtx-3090",     "a100-40", 24,  35.6, 35.6,  71.2,  71.2,  284.7, 936)
#define CLASS_RTX_4090     GPU_CLASS("rtx-4090",     "l40s",    24,  82.6, 82.6,  165.2, 165.2, 660.6, 1008)
#define CLASS_RTX_5090     GPU_CLASS("rtx-5090",     "rtx-pro-6000", 32, 104.8, 104.8, 209.5, 209.5, 838, 1792)
#define CLASS_L4           GPU_CLASS("l4",           "a100-40", 24,  30.3, 60,    121,   121,   242.5, 300)
#define CLASS_A10          GPU_CLASS("a10",          "a100-40", 24,  31.2, 62.5,  125,   125,   250,  600)
#define CLASS_A30          GPU_CLASS("a30",          "a100-40", 24,  10.3, 82,    165,   165,   330,  933)
#define CLASS_A40          GPU_CLASS("a40",          "a100-40", 48,  37.4, 74.8,  149.7, 149.7, 299.3, 696)
#define CLASS_V100_16      GPU_CLASS("v100-16",      "v100-16", 16,  15.7, 0,     0,     125,   62.8, 900)
#define CLASS_V100_32      GPU_CLASS("v100-32",      "v100-16", 32,  15.7, 0,     0,     125,   62.8, 900)
#define CLASS_V100_16_PCIE GPU_CLASS("v100-16-pcie", "v100-16-pcie", 16, 14, 0,   0,     112,   56,   900)
#define CLASS_V100_32_PCIE GPU_CLASS("v100-32-pcie", "v100-16-pcie", 32, 14, 0,   0,     112,   56,   900)
#define CLASS_T4           GPU_CLASS("t4",           "v100-16", 16,  8.1,  0,     0,     65,    130,  320)
#define CLASS_P40          GPU_CLASS("p40",          "v100-16", 24,  12,   0,     0,     0,     47,   346)

#define LINK_SHM        {"shm", 1e-6, 5e9}       /* a guess: memcpy through shared memory */
#define LINK_TCP        {"tcp", 50e-6, 1.25e9}   /* a guess: 10 Gb/s Ethernet */
#define LINK_PCIE       {"pcie", PCIE_S, 12e9}
#define LINK_PCIE4      {"pcie4", PCIE_S, 24e9}
#define LINK_PCIE5      {"pcie5", PCIE_S, 48e9}
#define LINK_NVLINK_V   {"nvlink", NVLINK_S, 60e9}      /* V100: three of 20 GB/s between two (NCCL topo.h) */
#define LINK_NVLINK     {"nvlink", NVLINK_S, 168e9}     /* A100: fitted to published training runs */
#define LINK_NVSWITCH   {"nvswitch", NVLINK_S, 220e9}   /* A100: measured bus bandwidth is 210-232 */
#define LINK_NVSWITCH_H {"nvswitch-h", NVLINK_S, 370.8e9} /* H100, H200: ring */
#define LINK_NVSWITCH_B {"nvswitch-b", NVLINK_S, 721.8e9} /* B200: 18 of 40.1 GB/s (NCCL topo.h) */
#define LINK_EDR        {"ib-edr", NET_S, 12.2e9}
#define LINK_HDR        {"ib-hdr", NET_S, 24e9}
#define LINK_NDR        {"ib-ndr", NET_S, 46e9}
/* clang-format on */

#endif
