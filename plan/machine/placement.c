/* placement.c - what follows from where ranks run: shared devices. */
#include "plan/machine/placement.h"

bool hp_placement_shares_devices(const hp_placement *p) {
    return p->clients > 1 || hp_placement_places(p) > p->nodes * p->devices_per_node;
}
