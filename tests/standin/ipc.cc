/* ipc.cc - memory shared between processes, as in CUDA: a handle names an allocation, and any other process
 * of the node, but not its own, can open it at an address of its own. An injected fault, `mapping`, opens
 * successfully but reads other bytes, as on machines with broken address translation. */
#include "tests/standin/space.h"

#include <atomic>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct named { /* contents of a handle */
    int pid, file;
    size_t offset, bytes;
};

static_assert(sizeof(named) <= sizeof(cudaIpcMemHandle_t), "a handle has room");

using count = std::atomic<int>; /* times that an allocation is open, stored in the file's page before it */

size_t first_page(size_t offset) {
    return offset / space::PAGE * space::PAGE;
}

count *map_count(int file, size_t offset) {
    void *at = mmap(nullptr, space::PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                    (off_t)(first_page(offset) - space::PAGE));
    return at == MAP_FAILED ? nullptr : (count *)at;
}

/* Maps the same pages at an address of this process. */
cudaError_t map_theirs(space &s, const named &n, int file, size_t *offset) {
    const size_t pages = whole(n.bytes, space::PAGE);
    *offset = s.take(pages, n.offset % space::PAGE);
    if (!*offset) return cudaErrorMapBufferObjectFailed;
    void *const place = s.real + first_page(*offset);
    const int may = PROT_READ | PROT_WRITE, where = MAP_SHARED | MAP_FIXED;
    void *at = standin_fails("mapping") ? mmap(place, pages, may, where | MAP_ANONYMOUS, -1, 0)
                                        : mmap(place, pages, may, where, file, (off_t)first_page(n.offset));
    count *c = at == MAP_FAILED ? nullptr : map_count(file, n.offset);
    if (!c) return cudaErrorMapBufferObjectFailed;
    ++*c;
    s.device[*offset] = n.bytes;
    s.opened[*offset] = opened{n.pid, n.offset, 1, c};
    return cudaSuccess;
}

cudaError_t open_theirs(space &s, const named &n, size_t *offset) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", n.pid, n.file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorMapBufferObjectFailed;
    const cudaError_t code = map_theirs(s, n, file, offset);
    close(file);
    return code;
}

} // namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at) {
    STANDIN_ENTER(true);
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    const size_t offset = (size_t)((unsigned char *)at - s.fake);
    const auto found = s.device.find(offset);
    if (found == s.device.end() || s.opened.count(offset)) return cudaErrorInvalidValue;
    const named n = {getpid(), s.file, offset, found->second};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &n, sizeof n);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags) {
    STANDIN_ENTER(true);
    named n;
    size_t offset = 0;
    memcpy(&n, &handle, sizeof n);
    if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    if (n.pid == getpid()) return cudaErrorDeviceUninitialized;
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    for (auto &o : s.opened)
        if (o.second.pid == n.pid && o.second.theirs == n.offset) {
            o.second.times++;
            return *at = s.fake + o.first, cudaSuccess;
        }
    const cudaError_t code = open_theirs(s, n, &offset);
    if (code == cudaSuccess) *at = s.fake + offset;
    return code;
}

/* Waits for running copies from there. */
cudaError_t cudaIpcCloseMemHandle(void *at) {
    STANDIN_ENTER(true);
    const cudaError_t code = standin_drain(nullptr);
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    const auto found = s.opened.find((size_t)((unsigned char *)at - s.fake));
    if (found == s.opened.end()) return cudaErrorInvalidValue;
    if (--found->second.times > 0) return code;
    const size_t offset = found->first;
    count *c = (count *)found->second.count;
    s.give_back(first_page(offset), whole(s.device[offset], space::PAGE));
    s.device.erase(offset);
    s.opened.erase(found);
    --*c;
    munmap(c, space::PAGE);
    return code;
}

void standin_check_unopened(size_t offset) {
    count *c = map_count(memory().file, offset);
    const int n = c ? c->load() : 0;
    if (c) munmap(c, space::PAGE);
    if (n == 0) return;
    fprintf(stderr, "stand-in: memory is freed that other processes have open %d times\n", n);
    abort();
}

bool standin_is_opened(const void *p) {
    space &s = memory();
    const size_t at = (size_t)((const unsigned char *)p - s.fake);
    const std::lock_guard<std::mutex> hold(s.lock);
    auto next = s.opened.upper_bound(at);
    if (!standin_is_device(p) || next == s.opened.begin()) return false;
    --next;
    return at < next->first + s.device[next->first];
}
