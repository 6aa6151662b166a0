/* framework_rows.c - data/frameworks/NAME.cost compiled into the binary. */
#include "costmodels/framework/framework_rows.h"

#include <stddef.h>

#define EMBED(symbol, file)                                                                                  \
    __asm__(".section .rodata\n"                                                                             \
            ".global " #symbol "\n" #symbol ":\n"                                                            \
            ".incbin \"" HPLAN_COST_DIR "/frameworks/" file ".cost\"\n"                                      \
            ".byte 0\n"                                                                                      \
            ".previous\n")

EMBED(hp_rows_gpu_aware, "gpu-aware");
EMBED(hp_rows_cudnn, "cudnn");
EMBED(hp_rows_pytorch_1, "pytorch-1");
EMBED(hp_rows_pytorch_compiled, "pytorch-compiled");
EMBED(hp_rows_mxnet, "mxnet");
EMBED(hp_rows_tensorflow, "tensorflow");

const char *const hp_framework_tables[] = {
    hp_rows_gpu_aware,  hp_rows_cudnn, hp_rows_pytorch_1, hp_rows_pytorch_compiled, hp_rows_mxnet,
    hp_rows_tensorflow, NULL};
