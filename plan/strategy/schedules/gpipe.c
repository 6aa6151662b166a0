/* gpipe.c - every forward pass before the first backward one (Huang et al. 2019). */
#include "plan/strategy/sched_kind.h"

const hp_sched_kind hp_sched_gpipe = {.name = "gpipe"};
