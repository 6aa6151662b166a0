/* memory.cc - a GPU's memory (space.h): new memory is filled with NaN. */
#include "tests/standin/space.h"
#include "tests/standin/kernel.h"

#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr size_t LINE = 256; /* cudaMalloc aligns to lines */

const char TOUCHED[] =
    "stand-in: somebody used an address of device memory that a GPU alone can follow, or a "
    "kernel one that was no argument of its own\n";

/* Reports the address: a test's own handler does not know streams' threads and would end
 * the process silently. */
void say_where(const unsigned char *at) {
    char line[128];
    const space &s = memory();
    const bool real = at >= s.real && at < s.real + space::RANGE;
    int n = snprintf(line, sizeof line, "stand-in: error: fault at %p", at);
    if (real) n += snprintf(line + n, sizeof line - n, ", byte %zx of device memory", (size_t)(at - s.real));
    line[n++] = '\n';
    void *frame[16];
    if (write(2, line, (size_t)n) < 0) abort();
    backtrace_symbols_fd(frame, backtrace(frame, 16), 2);
}

void on_fault(int signal, siginfo_t *info, void *) {
    const unsigned char *at = (const unsigned char *)info->si_addr;
    const space &s = memory();
    if (at >= s.fake && at < s.fake + space::RANGE && write(2, TOUCHED, sizeof TOUCHED - 1) < 0) abort();
    say_where(at);
    sigaction(signal, &s.before, nullptr); /* the instruction is retried */
}

unsigned char *reserve(int file) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *at = mmap(nullptr, space::RANGE, PROT_NONE, flags | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) abort();
    return (unsigned char *)at;
}

int new_file() {
    const int file = memfd_create("stand-in GPU", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)space::RANGE) != 0) abort();
    return file;
}

} // namespace

space::space() : file(new_file()), fake(reserve(-1)), real(reserve(file)) {
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs now, which a handler may not do */
    publish();
}

void standin_catch_faults() {
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    struct sigaction now, ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_sigaction == on_fault) return;
    s.before = now;
    sigaction(SIGSEGV, &ours, nullptr);
}

/* For gpu_mpi.c, which has no other access to the stand-in. */
void space::publish() const {
    char text[64];
    snprintf(text, sizeof text, "%llx %llx %llx", (unsigned long long)(uintptr_t)fake,
             (unsigned long long)(uintptr_t)real, (unsigned long long)RANGE);
    setenv("HPLAN_STANDIN_MEMORY", text, 1);
}

space &memory() {
    static space *const s = new space;
    return *s;
}

size_t whole(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

size_t space::take(size_t pages, size_t begin) {
    const size_t at = next;
    if (next + pages + PAGE > RANGE) return 0;
    next += pages + PAGE;
    return at + begin;
}

void space::give_back(size_t first, size_t pages) {
    if (mmap(real + first, pages, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, (off_t)first) ==
            MAP_FAILED ||
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first, (off_t)pages) != 0)
        abort();
}

bool standin_is_device(const void *p) {
    const space &s = memory();
    return (const unsigned char *)p >= s.fake && (const unsigned char *)p < s.fake + space::RANGE;
}

void *standin_real(const void *p) {
    const space &s = memory();
    return standin_is_device(p) ? s.real + ((const unsigned char *)p - s.fake) : (void *)p;
}

bool standin_in_memory(const void *p, size_t bytes) {
    space &s = memory();
    const size_t at = (size_t)((const unsigned char *)p - s.fake);
    const std::lock_guard<std::mutex> hold(s.lock);
    auto next = s.device.upper_bound(at);
    if (next == s.device.begin()) return false;
    --next;
    return at + bytes <= next->first + next->second;
}

bool standin_is_pinned(const void *p) {
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    auto next = s.pinned.upper_bound(p);
    if (next == s.pinned.begin()) return false;
    --next;
    return (const unsigned char *)p < (const unsigned char *)next->first + next->second;
}

void standin_translate(void *argument, size_t bytes) {
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += alignof(void *)) {
        void *word;
        memcpy(&word, (unsigned char *)argument + at, sizeof word);
        /* padding may hold half of an old address: ignore what is not in an allocation */
        if (!standin_is_device(word) || !standin_in_memory(word, 0)) continue;
        word = standin_real(word);
        memcpy((unsigned char *)argument + at, &word, sizeof word);
    }
}

void standin_check_pointer(const void *p) {
    if (!p || standin_is_pinned(p)) return;
    if (standin_is_device(p) && standin_in_memory(p, 0)) return;
    fprintf(stderr, "stand-in: a kernel's argument %p is neither device memory in use nor page-locked\n", p);
    abort();
}

/* --- allocation --- */

/* As close to the end of its pages as alignment to lines allows. */
cudaError_t cudaMalloc(void **at, size_t bytes) {
    STANDIN_ENTER(true);
    standin_catch_faults();
    const size_t limit = standin_bytes(), lines = whole(bytes, LINE), pages = whole(bytes, space::PAGE);
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    if (bytes == 0) return *at = nullptr, cudaSuccess;
    if (pages > limit - s.used) return cudaErrorMemoryAllocation;
    const size_t offset = s.take(pages, pages - lines), first = offset / space::PAGE * space::PAGE;
    if (!offset || mprotect(s.real + first, pages, PROT_READ | PROT_WRITE) != 0)
        return cudaErrorMemoryAllocation;
    memset(s.real + first, 0xff, pages);
    s.device[offset] = bytes;
    s.used += pages;
    *at = s.fake + offset;
    return cudaSuccess;
}

/* Waits for the device, as in CUDA. */
cudaError_t cudaFree(void *at) {
    STANDIN_ENTER(true);
    if (!at) return cudaSuccess;
    const cudaError_t code = standin_drain(nullptr);
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    const size_t offset = (size_t)((unsigned char *)at - s.fake);
    const auto found = s.device.find(offset);
    if (found == s.device.end() || s.opened.count(offset)) return cudaErrorInvalidValue;
    standin_check_unopened(offset);
    const size_t pages = whole(found->second, space::PAGE);
    s.device.erase(found);
    s.used -= pages;
    s.give_back(offset / space::PAGE * space::PAGE, pages);
    return code;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all) {
    STANDIN_ENTER(false);
    *all = standin_bytes();
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    *unused = *all - s.used;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
    STANDIN_ENTER(true);
    (void)flags;
    if (posix_memalign(at, space::PAGE, bytes ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    s.pinned[*at] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at) {
    STANDIN_ENTER(true);
    space &s = memory();
    const std::lock_guard<std::mutex> hold(s.lock);
    if (at && s.pinned.erase(at) == 0) return cudaErrorInvalidValue;
    free(at);
    return cudaSuccess;
}

/* --- copies --- */

static bool fits_kind(const void *to, const void *from, cudaMemcpyKind kind) {
    static const bool TO[] = {false, true, false, true}, FROM[] = {false, false, true, true};
    if (kind == cudaMemcpyDefault) return true;
    return standin_is_device(to) == TO[kind] && standin_is_device(from) == FROM[kind];
}

static bool whole_in_memory(const void *p, size_t bytes) {
    return !standin_is_device(p) || standin_in_memory(p, bytes);
}

static bool legal(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return fits_kind(to, from, kind) && whole_in_memory(to, bytes) && whole_in_memory(from, bytes);
}

static bool pageable(const void *p) {
    return !standin_is_device(p) && !standin_is_pinned(p);
}

static bool captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    return cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

/* Pageable source: read before the call returns. Pageable destination: the call waits.
 * Neither may be captured. */
static cudaError_t copy(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    std::shared_ptr<std::vector<unsigned char>> staged;
    if ((pageable(from) || pageable(to)) && captured(stream))
        return standin_noted(cudaErrorStreamCaptureUnsupported);
    if (pageable(from)) {
        const unsigned char *bytes_of = (const unsigned char *)from;
        staged = std::make_shared<std::vector<unsigned char>>(bytes_of, bytes_of + bytes);
    }
    void *const target = standin_real(to);
    const void *const source = staged ? staged->data() : standin_real(from);
    const bool hangs = standin_is_opened(from) && standin_fails("peer");
    const cudaError_t code = standin_give(stream, [=] {
        (void)staged; /* kept until then */
        while (hangs) usleep(1000);
        memcpy(target, source, bytes);
    });
    return code == cudaSuccess && pageable(to) ? cudaStreamSynchronize(stream) : code;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    STANDIN_ENTER(false);
    if (!legal(to, from, bytes, kind)) return cudaErrorInvalidValue;
    return bytes ? copy(to, from, bytes, stream) : cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    STANDIN_ENTER(true);
    if (!legal(to, from, bytes, kind)) return cudaErrorInvalidValue;
    const cudaError_t code = bytes ? copy(to, from, bytes, nullptr) : cudaSuccess;
    return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
}

static size_t extent(size_t pitch, size_t width, size_t height) {
    return height ? (height - 1) * pitch + width : 0;
}

/* Copies within the device, or between it and page-locked memory. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    STANDIN_ENTER(false);
    if (width > to_pitch || width > from_pitch || pageable(to) || pageable(from))
        return cudaErrorInvalidValue;
    if (!legal(to, from, 0, kind) || !whole_in_memory(to, extent(to_pitch, width, height)) ||
        !whole_in_memory(from, extent(from_pitch, width, height)))
        return cudaErrorInvalidValue;
    unsigned char *const target = (unsigned char *)standin_real(to);
    const unsigned char *const source = (const unsigned char *)standin_real(from);
    return standin_give(stream, [=] {
        for (size_t y = 0; y < height; y++) memcpy(target + y * to_pitch, source + y * from_pitch, width);
    });
}

cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t stream) {
    STANDIN_ENTER(false);
    if (bytes == 0) return cudaSuccess;
    if (!standin_is_device(at) || !standin_in_memory(at, bytes)) return cudaErrorInvalidValue;
    void *const target = standin_real(at);
    return standin_give(stream, [=] { memset(target, byte, bytes); });
}

cudaError_t cudaMemset(void *at, int byte, size_t bytes) {
    const cudaError_t code = cudaMemsetAsync(at, byte, bytes, nullptr);
    return code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
}
