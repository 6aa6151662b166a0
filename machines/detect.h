/* detect.h - detects a node's network cards and a job's number of nodes. */
#ifndef HP_DETECT_H
#define HP_DETECT_H

#include "machines/machine.h"

/* Sets the NICs from the directory `sys` ("/sys": class/infiniband, otherwise class/net) and the nodes from
 * Slurm's SLURM_JOB_NUM_NODES. Returns whether there are NICs; without any, m's are unchanged. */
bool hp_machine_detect(const char *sys, hp_machine *m);

#endif
