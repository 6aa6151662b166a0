/* host.h - where a measurement was made: the name of the machine, and of its processor. */
#ifndef HP_HOST_H
#define HP_HOST_H

#include <stddef.h>

/* Both return `out`; "unknown" where the system does not say. */
const char *hp_host_name(char *out, size_t n);
/* As the system names it: "AMD EPYC 7763 64-Core Processor"; where it has no name, the instruction set. */
const char *hp_host_processor(char *out, size_t n);

#endif
