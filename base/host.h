/* host.h - this machine: its name and processor, under which measurements are stored, its identity among
 * nodes, and the user's data directory. */
#ifndef HP_HOST_H
#define HP_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both return `out`; "unknown" if the system does not tell. */
const char *hp_host_name(char *out, size_t n);
/* Processor name, e.g. "AMD EPYC 7763 64-Core Processor"; the instruction set where the system has no
 * name. */
const char *hp_host_processor(char *out, size_t n);
/* Identifies the node as NCCL does: host name and boot id. */
uint64_t hp_node_id(void);
/* Does the processor have AVX-512F (512-bit registers and their float32 operations)? */
bool hp_host_avx512(void);

/* Path of a file that hplan keeps for its user: $VARIABLE/hplan/FILE if the variable holds an absolute path
 * (XDG base directory specification 0.8), otherwise HOME/BELOW/hplan/FILE. HOME comes from the environment or
 * the user database; it is never a directory that others can write. */
const char *hp_user_path(const char *variable, const char *below, const char *file, char *out, size_t n);

#endif
