/* host.h - this machine: its name and its processor, which measurements are kept with, and where its user keeps files. */
#ifndef HP_HOST_H
#define HP_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Both return `out`; "unknown" where the system does not say. */
const char *hp_host_name(char *out, size_t n);
/* As the system names it: "AMD EPYC 7763 64-Core Processor"; where it has no name, the instruction set. */
const char *hp_host_processor(char *out, size_t n);
/* Has it registers of 512 bits, and the operations on them that float32 needs (AVX-512F)? */
bool hp_host_avx512(void);

/* A file that hplan keeps for its user: $VARIABLE/hplan/FILE, where the variable is an absolute path (XDG base directory specification
 * 0.8); else HOME/BELOW/hplan/FILE, of $HOME or of what the system has as the user's: never in a folder that others write. */
const char *hp_user_path(const char *variable, const char *below, const char *file, char *out, size_t n);

#endif
