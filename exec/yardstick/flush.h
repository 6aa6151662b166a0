/* flush.h - flushes a line of memory out of every cache, where a process may. Otherwise HP_FLUSH_WORKS is 0
 * and the yardstick of memory rotates through slices of a larger buffer. */
#ifndef HP_FLUSH_H
#define HP_FLUSH_H

enum {
    HP_FLUSH_LINE = 64
}; /* a smaller line is flushed with its neighbour; no line is larger where flushing works */

#if defined(__x86_64__)
enum { HP_FLUSH_WORKS = 1 };
static inline void hp_flush_line(const char *p) {
    __builtin_ia32_clflush(p);
}
static inline void hp_flush_end(void) {
    __builtin_ia32_mfence();
}
#elif defined(__aarch64__) && defined(__linux__)
enum { HP_FLUSH_WORKS = 1 }; /* Linux lets processes clean and invalidate by address (SCTLR_EL1.UCI) */
static inline void hp_flush_line(const char *p) {
    __asm__ volatile("dc civac, %0" ::"r"(p) : "memory");
}
static inline void hp_flush_end(void) {
    __asm__ volatile("dsb ish" ::: "memory");
}
#else
enum { HP_FLUSH_WORKS = 0 };
static inline void hp_flush_line(const char *p) {
    (void)p;
}
static inline void hp_flush_end(void) {}
#endif

#endif
