/* facts.h - what kind of GPU this process has. */
#ifndef HP_CUDA_FACTS_H
#define HP_CUDA_FACTS_H

#include "exec/device/plugin.h"

hp_status hp_cuda_facts(hp_gpu_facts *f, hp_error *err);

#endif
