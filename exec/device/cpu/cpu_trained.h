/* cpu_trained.h - layers of deployed graphs that run as in training (networks/graph/deploy.h). */
#ifndef HP_CPU_TRAINED_H
#define HP_CPU_TRAINED_H

#include "exec/device/infer/infer_host.h"

hp_infer_prepare_fn hp_cpu_prepare_trained;

#endif
