/* detect.h - what the system says of a node's network cards and of how many nodes a job has. */
#ifndef HP_DETECT_H
#define HP_DETECT_H

#include "machines/machine.h"

/* Sets the NICs from the folder `sys` ("/sys": class/infiniband, else class/net) and the nodes from Slurm's
 * SLURM_JOB_NUM_NODES. Returns whether there are NICs; without, they stay as they were. */
bool hp_machine_detect(const char *sys, hp_machine *m);

#endif
