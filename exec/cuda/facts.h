/* facts.h - what kind of GPU this process has. */
#ifndef HP_FACTS_H
#define HP_FACTS_H

#include "exec/device/device_plugin.h"

hp_status hp_cuda_facts(hp_gpu_facts *f, hp_error *err);

#endif
