/* shipped.h - the machines that hplan knows without a file: machines/data, compiled into the binary. */
#ifndef HP_SHIPPED_H
#define HP_SHIPPED_H

#include "machines/machine.h"

/* The text of a machine; NULL if there is none of that name. */
const char *hp_machine_shipped(const char *name);
/* Names, in the order of shipped.def; NULL after the last. */
const char *hp_machine_shipped_name(int i);

/* This machine: one device per usable core, and all of its memory. Errors: HP_EUNAVAIL. */
hp_status hp_machine_local(hp_machine *m, hp_error *err);

#endif
