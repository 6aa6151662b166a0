/* shared.c - memory that other processes of the node can map, by memfd_create(2) and /proc/PID/fd
 * (proc(5)). Processes of one user pass its check, PTRACE_MODE_READ (ptrace(2)), even where Yama or a
 * container forbids attaching. */
#define _GNU_SOURCE /* memfd_create */
#include "exec/base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

/* Precedes the memory, in a page private to this process. */
typedef struct shared_head {
    void *map;
    size_t room;
    int64_t bytes;
    int fd; /* -1: memory of another process */
} shared_head;

/* Process ids and descriptors may mean something else in another namespace; device and inode verify them. */
typedef struct shared_name {
    int32_t pid, fd;
    uint64_t device, inode;
    int64_t bytes;
} shared_name;
_Static_assert(sizeof(shared_name) <= sizeof(hp_memory_name), "a name has room");

static shared_head *head_of(const void *at) {
    return (shared_head *)(uintptr_t)at - 1;
}

static hp_status map(int fd, int64_t bytes, int access, void **at, hp_error *err) {
    const size_t room = (size_t)bytes + 2 * HUGE_PAGE;
    unsigned char *whole =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return hp_fail(err, HP_EPLAN, "%s", strerror(errno));
    unsigned char *begin = whole + 2 * HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE;
    if (mmap(begin, (size_t)bytes, access, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        const int why = errno;
        munmap(whole, room);
        return hp_fail(err, HP_EPLAN, "%s", strerror(why));
    }
    *head_of(begin) = (shared_head){.map = whole, .room = room, .bytes = bytes, .fd = -1};
    madvise(begin, (size_t)bytes, MADV_HUGEPAGE); /* only a hint: the system may refuse */
    *at = begin;
    return HP_OK;
}

hp_status hp_shared_new(int64_t bytes, void **at, hp_error *err) {
    if (bytes < 1) bytes = 1;
    const int fd = memfd_create("hplan", MFD_CLOEXEC);
    if (fd < 0) return hp_fail(err, HP_EPLAN, "no shared memory: %s", strerror(errno));
    hp_status s = HP_OK;
    if (ftruncate(fd, bytes) != 0)
        s = hp_fail(err, HP_EPLAN, "%lld bytes of shared memory: %s", (long long)bytes, strerror(errno));
    if (s == HP_OK) s = map(fd, bytes, PROT_READ | PROT_WRITE, at, err);
    if (s == HP_OK)
        head_of(*at)->fd = fd;
    else
        close(fd);
    return s;
}

hp_status hp_shared_reserve(void *at, hp_error *err) {
    const shared_head *h = head_of(at);
    int code = EINTR;
    while (code == EINTR) code = posix_fallocate(h->fd, 0, h->bytes);
    if (code == 0) return HP_OK;
    return hp_fail(err, HP_EPLAN, "%lld bytes of shared memory: %s", (long long)h->bytes, strerror(code));
}

hp_status hp_shared_name(const void *at, hp_memory_name *name, hp_error *err) {
    const shared_head *h = head_of(at);
    struct stat file;
    if (h->fd < 0 || fstat(h->fd, &file) != 0)
        return hp_fail(err, HP_EUNAVAIL, "memory that is not shared by this process");
    const shared_name n = {.pid = (int32_t)getpid(),
                           .fd = h->fd,
                           .device = file.st_dev,
                           .inode = file.st_ino,
                           .bytes = h->bytes};
    *name = (hp_memory_name){{0}};
    memcpy(name->bytes, &n, sizeof n);
    return HP_OK;
}

static bool is_same(int fd, const shared_name *n) {
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_dev == n->device && file.st_ino == n->inode &&
           file.st_size == n->bytes;
}

hp_status hp_shared_open(const hp_memory_name *name, bool writable, void **at, hp_error *err) {
    char path[64];
    shared_name n;
    memcpy(&n, name->bytes, sizeof n);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", n.pid, n.fd);
    const int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) return hp_fail(err, HP_EUNAVAIL, "%s: %s", path, strerror(errno));
    hp_status s = HP_OK;
    if (!is_same(fd, &n))
        s = hp_fail(err, HP_EUNAVAIL, "%s: belongs to another process", path);
    else if (map(fd, n.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, at, err) != HP_OK)
        s = err ? (err->code = HP_EUNAVAIL) : HP_EUNAVAIL;
    close(fd);
    return s;
}

void hp_shared_free(void *at) {
    if (!at) return;
    const shared_head h = *head_of(at);
    munmap(h.map, h.room);
    if (h.fd >= 0) close(h.fd);
}
