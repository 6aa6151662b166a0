/* confine.c - restricts what a decoder may do.
 *
 * Limits (setrlimit(2)): address space, processor time, no writes to files, no core dump, no further process.
 * System calls (seccomp(2)): it opens files read-only; it starts no program, process or thread, opens no
 * socket, neither signals nor inspects other processes, and changes no file's name or rights. Refused calls
 * fail with EPERM. Reading files stays allowed: it is the decoder's job, formats such as MIRAX consist of
 * many files, and it can talk to nobody but the rank. */
#define _GNU_SOURCE
#include "exec/data/image/decoder_wire.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- limits --- */

static void limit(__rlimit_resource_t what, rlim_t value) {
    const struct rlimit l = {value, value};
    setrlimit(what, &l);
}

static int64_t mapped_bytes(void) {
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f) return 0;
    if (fscanf(f, "%lld", &pages) != 1) pages = 0;
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

void hp_confine_time(double seconds) {
    struct timespec used;
    struct rlimit l;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    getrlimit(RLIMIT_CPU, &l);
    l.rlim_cur = (rlim_t)((double)used.tv_sec + 1 + ceil(seconds));
    if (l.rlim_cur > l.rlim_max) l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_CPU, &l);
}

/* --- system calls --- */

static const int REFUSED[] = {
    SYS_execve,
    SYS_execveat,
    SYS_clone3,
    SYS_clone,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_openat2,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_utimensat,
    SYS_setxattr,
    SYS_fsetxattr,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_keyctl,
    SYS_add_key,
    SYS_shmget,
    SYS_memfd_create,
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_fork /* absent on newer architectures */
    SYS_fork,
    SYS_vfork,
    SYS_creat,
    SYS_unlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
#endif
};
enum { N_REFUSED = sizeof REFUSED / sizeof *REFUSED };

/* Calls whose argument `arg` tells whether the file is opened for writing. */
static const struct {
    int call, arg;
} OPENS[] = {
    {SYS_openat, 2},
#ifdef SYS_open
    {SYS_open, 1},
#endif
};
enum { N_OPENS = sizeof OPENS / sizeof *OPENS };

#if defined __x86_64__
static const uint32_t ARCHITECTURE = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
static const uint32_t ARCHITECTURE = AUDIT_ARCH_AARCH64;
#else
static const uint32_t ARCHITECTURE = 0; /* no filter */
#endif

/* Numbers from here on belong to x86-64's second interface (x32), which nothing here uses. */
static const uint32_t OTHER_INTERFACE = 0x40000000;

typedef struct filter {
    struct sock_filter op[12 + N_REFUSED * 2 + N_OPENS * 4];
    unsigned short n;
} filter;

static void add(filter *f, struct sock_filter op) {
    f->op[f->n++] = op;
}

static void load(filter *f, size_t offset) {
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(filter *f, uint32_t with) {
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, with));
}

/* Skips the next `n` instructions unless the comparison holds. */
static void unless(filter *f, uint16_t comparison, uint32_t value, uint8_t n) {
    add(f, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | comparison | BPF_K), value, 0, n));
}

static const uint32_t NO = SECCOMP_RET_ERRNO | 1 /* EPERM */;

static void refuse_calls(void) {
    filter f = {.n = 0};
    load(&f, offsetof(struct seccomp_data, arch));
    add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    answer(&f, SECCOMP_RET_KILL_PROCESS);
    load(&f, offsetof(struct seccomp_data, nr));
    unless(&f, BPF_JGE, OTHER_INTERFACE, 1);
    answer(&f, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < N_REFUSED; i++) {
        unless(&f, BPF_JEQ, (uint32_t)REFUSED[i], 1);
        answer(&f, NO);
    }
    for (int i = 0; i < N_OPENS; i++) {
        unless(&f, BPF_JEQ, (uint32_t)OPENS[i].call, 4);
        load(&f, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (size_t)OPENS[i].arg);
        unless(&f, BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 1);
        answer(&f, NO);
        answer(&f, SECCOMP_RET_ALLOW);
    }
    answer(&f, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = f.n, .filter = f.op};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program); /* kernels without seccomp: only the limits apply */
}

void hp_confine(const hp_decoder_limits *l) {
    limit(RLIMIT_AS, (rlim_t)(mapped_bytes() + l->memory_bytes));
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (ARCHITECTURE) refuse_calls();
}
