/* shipped.h - the machines hplan knows without a file. */
#ifndef HP_MACHINE_SHIPPED_H
#define HP_MACHINE_SHIPPED_H

#include "plan/machine/machine.h"

extern const hp_machine hp_machines_shipped[];
extern const int hp_machines_shipped_count;

/* This machine: one device per core it may use, all of its memory. Errors: HP_EUNAVAIL. */
hp_status hp_machine_local(hp_machine *m, hp_error *err);

#endif
