/* placement.c - what follows from where ranks run: shared devices, replicas that are alike. */
#include "plan/machine/placement.h"

bool hp_placement_shares_devices(const hp_placement *p) {
    return p->clients > 1 || hp_placement_places(p) > p->nodes * p->devices_per_node;
}

int hp_placement_replicas_per_node(const hp_placement *p) {
    const int here = p->devices_per_node / p->roles * p->clients;
    if (p->nodes == 1) return p->replicas; /* all on it, however many */
    return here < p->clients ? p->clients : here < p->replicas ? here : p->replicas;
}

bool hp_placement_is_uniform(const hp_placement *p, bool share_cpu) {
    const int here = p->devices_per_node, blocks = p->replicas / p->clients;
    if (p->replicas == 1) return true;
    /* on shared cores replicas drift apart as soon as one of them goes first, and there are few of them */
    if (p->nodes == 1) return !share_cpu && hp_placement_places(p) <= here;
    if (hp_placement_places(p) > p->nodes * here) return false;
    if (p->roles >= here) return p->roles % here == 0;
    /* the last node may hold fewer replicas: on shared cores they would be faster */
    return here % p->roles == 0 && (!share_cpu || blocks % (here / p->roles) == 0);
}
