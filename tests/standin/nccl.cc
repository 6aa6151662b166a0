/* nccl.cc - NCCL's calls: communicators are made in the background, operations are work of streams,
 * members of a group progress together. A failed group leaves its stream waiting until it is aborted, as
 * NCCL's kernels do. */
#include "tests/standin/nccl.h"
#include "tests/standin/mesh.h"
#include "tests/standin/runtime.h"
#include "tests/standin/sums.h"

#include <algorithm>
#include <string.h>
#include <sys/random.h>
#include <thread>
#include <unistd.h>

namespace {

enum { COY = 2 /* number of times that a finished call still answers `in progress` */ };

struct communicator {
    std::mutex lock;
    std::string name, text; /* the last error's */
    mesh net;
    std::atomic<bool> quit{false};
    bool at_work = true; /* a call is under way */
    int coy = COY;
    ncclResult_t state = ncclSuccess;
    std::function<ncclResult_t()> rest; /* rest of the pending call */
    int splits = 0;
};

using shared = std::shared_ptr<communicator>;

enum class act { SEND, RECV, SUM, SUM_AT, SUM_PARTS, GIVE, GATHER };

struct operation {
    act what;
    unsigned char *from, *to;
    size_t count; /* elements of one message */
    ncclDataType_t type;
    int peer; /* or root */
    ncclRedOp_t op;
    size_t reads = 0, writes = 0; /* bytes of its memory */
};

struct launch { /* a group's operations on one communicator */
    shared comm;
    cudaStream_t stream;
    std::vector<operation> op;
};

thread_local int depth;
thread_local std::vector<launch> group;

ncclResult_t fail(communicator &c, ncclResult_t code, const std::string &text) {
    const std::lock_guard<std::mutex> hold(c.lock);
    c.text = text;
    return c.state = code;
}

void settle(communicator &c) {
    const std::lock_guard<std::mutex> hold(c.lock);
    c.at_work = false;
}

} // namespace

struct ncclComm {
    shared of;
};

/* --- communicators --- */

static uint64_t gpu_identity() {
    char text[320] = "";
    int device = 0;
    cudaGetDevice(&device);
    gethostname(text, 256);
    cudaDeviceGetPCIBusId(text + strlen(text), 32, device);
    return std::hash<std::string>()(text);
}

/* Shares every member's value. False: told to quit, or a member is gone. */
static bool share(mesh &m, uint64_t mine, std::vector<uint64_t> &all) {
    mesh_traffic t(m.size);
    int who;
    all.assign((size_t)m.size, mine);
    for (int r = 0; r < m.size; r++) {
        if (r == m.rank) continue;
        t.send[(size_t)r].push_back({(unsigned char *)&mine, sizeof mine});
        t.recv[(size_t)r].push_back({(unsigned char *)&all[(size_t)r], sizeof mine});
    }
    return mesh_move(m, t, &who) == mesh_end::WHOLE;
}

static void check_gpus(communicator &c) {
    std::vector<uint64_t> all;
    if (!share(c.net, gpu_identity(), all)) {
        fail(c, ncclRemoteError, "a rank left during initialisation");
        return;
    }
    for (int a = 0; a < c.net.size; a++)
        for (int b = 0; b < a; b++)
            if (all[(size_t)a] == all[(size_t)b])
                fail(c, ncclInvalidUsage,
                     "Duplicate GPU detected : rank " + std::to_string(b) + " and rank " + std::to_string(a));
}

static void make(const shared &c, int rank, int size, const std::string &name) {
    c->name = name;
    c->net.rank = rank;
    c->net.size = size;
    c->net.quit = &c->quit;
    usleep((useconds_t)(standin_draw() % 2000));
    if (!mesh_open(c->net, name))
        fail(*c, ncclSystemError, "no connection to the other ranks");
    else
        check_gpus(*c);
    settle(*c);
}

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    if (standin_fails(__func__)) return ncclSystemError;
    memset(id, 0, sizeof *id);
    return getrandom(id->internal, 12, 0) == 12 ? ncclSuccess : ncclSystemError;
}

static std::string name_of(const ncclUniqueId &id) {
    static const char DIGIT[] = "0123456789abcdef";
    std::string name = "standin-";
    for (int i = 0; i < 12; i++) {
        const unsigned char byte = (unsigned char)id.internal[i];
        name += {DIGIT[byte >> 4], DIGIT[byte & 15]};
    }
    return name;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (rank < 0 || rank >= size || !config || config->blocking != 0) return ncclInvalidArgument;
    const shared c = std::make_shared<communicator>();
    *comm = new ncclComm{c};
    std::thread([=] { make(c, rank, size, name_of(id)); }).detach();
    return ncclInProgress;
}

/* The parent's call ends when the new communicator is made; only then does the caller get it. */
static void split(const shared &parent, int colour, int key, int number, ncclComm_t *part) {
    std::vector<uint64_t> all, members;
    const uint64_t none = ~(uint64_t)0,
                   mine = (uint64_t)colour << 40 | (uint64_t)key << 20 | (uint64_t)parent->net.rank;
    const bool in = colour != NCCL_SPLIT_NOCOLOR;
    if (!share(parent->net, in ? mine : none, all)) {
        fail(*parent, ncclRemoteError, "a rank left during a split");
    } else if (in) {
        for (const uint64_t other : all)
            if (other != none && other >> 40 == (uint64_t)colour) members.push_back(other);
        std::sort(members.begin(), members.end());
        const auto me = std::find(members.begin(), members.end(), mine) - members.begin();
        const shared c = std::make_shared<communicator>();
        make(c, (int)me, (int)members.size(),
             parent->name + "." + std::to_string(number) + "." + std::to_string(colour));
        *part = new ncclComm{c};
    }
    settle(*parent);
}

/* Begins a call unless another one is pending. */
static ncclResult_t begin(communicator &c) {
    const std::lock_guard<std::mutex> hold(c.lock);
    if (c.state != ncclSuccess) return c.state;
    if (c.at_work || c.coy > 0) {
        c.text = "Attempt to use communicator before the previous operation returned ncclSuccess";
        return ncclInvalidArgument;
    }
    c.at_work = true;
    c.coy = COY;
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *part, ncclConfig_t *config) {
    if (standin_fails(__func__)) return ncclSystemError;
    *part = nullptr;
    if (!comm || !config || config->blocking != 0) return ncclInvalidArgument;
    if ((colour != NCCL_SPLIT_NOCOLOR && (colour < 0 || colour >> 20)) || key < 0 || key >> 20)
        return ncclInvalidArgument;
    const shared parent = comm->of;
    const ncclResult_t code = begin(*parent);
    if (code != ncclSuccess) return code;
    const int number = parent->splits++;
    std::thread([=] { split(parent, colour, key, number, part); }).detach();
    return ncclInProgress;
}

/* Advances a submitted group: its launches happen after the caller has polled often enough. */
static ncclResult_t go_on(communicator &c) {
    std::function<ncclResult_t()> rest;
    {
        const std::lock_guard<std::mutex> hold(c.lock);
        if (c.state != ncclSuccess) return c.state;
        if (c.coy > 0) return c.coy--, ncclInProgress;
        rest.swap(c.rest);
        if (c.at_work && !rest) return ncclInProgress;
    }
    if (!rest) return ncclSuccess;
    const ncclResult_t code = rest();
    settle(c);
    return code == ncclSuccess ? code : fail(c, code, "the launch failed");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (!comm) return ncclInvalidArgument;
    *state = go_on(*comm->of);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (!comm) return ncclInvalidArgument;
    const ncclResult_t code = begin(*comm->of);
    if (code != ncclSuccess) return code;
    comm->of->rest = [] { return ncclSuccess; };
    return ncclInProgress;
}

/* Pending groups keep what they need. */
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    comm->of->quit = true;
    return ncclCommDestroy(comm);
}

/* --- operations --- */

/* Does rank `r` add up others' contributions? */
static bool adds(const operation &o, int r) {
    return o.what == act::SUM || o.what == act::SUM_PARTS || (o.what == act::SUM_AT && r == o.peer);
}

/* A collective's messages to and from another member. */
static void address_member(const operation &o, const mesh &m, int r, std::vector<unsigned char> &theirs,
                           mesh_traffic &t) {
    const size_t bytes = o.count * bytes_of(o.type), skip = o.what == act::SUM_PARTS ? (size_t)r * bytes : 0;
    const bool gives = o.what == act::GATHER || (o.what == act::GIVE && m.rank == o.peer) || adds(o, r);
    if (gives) t.send[(size_t)r].push_back({o.from + skip, bytes});
    if (adds(o, m.rank)) t.recv[(size_t)r].push_back({theirs.data() + (size_t)r * bytes, bytes});
    if (o.what == act::GATHER) t.recv[(size_t)r].push_back({o.to + (size_t)r * bytes, bytes});
    if (o.what == act::GIVE && r == o.peer) t.recv[(size_t)r].push_back({o.to, bytes});
}

static void address(const operation &o, const mesh &m, std::vector<unsigned char> &theirs, mesh_traffic &t) {
    const size_t bytes = o.count * bytes_of(o.type);
    const bool message = o.what == act::SEND || o.what == act::RECV;
    if (message && o.peer == m.rank) return; /* copy_own */
    if (o.what == act::SEND) t.send[(size_t)o.peer].push_back({o.from, bytes});
    if (o.what == act::RECV) t.recv[(size_t)o.peer].push_back({o.to, bytes});
    if (message) return;
    if (adds(o, m.rank)) theirs.resize(bytes * (size_t)m.size);
    for (int r = 0; r < m.size; r++)
        if (r != m.rank) address_member(o, m, r, theirs, t);
}

/* Copies a member's messages to itself, in order. */
static bool copy_own(const launch &l) {
    std::vector<const operation *> sent, got;
    for (const operation &o : l.op) {
        if (o.peer != l.comm->net.rank) continue;
        if (o.what == act::SEND) sent.push_back(&o);
        if (o.what == act::RECV) got.push_back(&o);
    }
    if (sent.size() != got.size()) return false;
    for (size_t i = 0; i < sent.size(); i++) {
        if (sent[i]->count != got[i]->count || sent[i]->type != got[i]->type) return false;
        memmove(got[i]->to, sent[i]->from, sent[i]->count * bytes_of(sent[i]->type));
    }
    return true;
}

static void finish(const operation &o, const mesh &m, const std::vector<unsigned char> &theirs) {
    const size_t bytes = o.count * bytes_of(o.type), mine = (size_t)m.rank * bytes;
    if (adds(o, m.rank))
        standin_add_up({o.type, o.op, o.count, m.size, m.rank}, o.to,
                       o.from + (o.what == act::SUM_PARTS ? mine : 0), theirs.data());
    if (o.what == act::GATHER) memmove(o.to + mine, o.from, bytes);
    if (o.what == act::GIVE && m.rank == o.peer) memmove(o.to, o.from, bytes);
}

static mesh_end move(const launch &l, int *who) {
    mesh &m = l.comm->net;
    mesh_traffic t(m.size);
    std::vector<std::vector<unsigned char>> theirs(l.op.size());
    for (size_t i = 0; i < l.op.size(); i++) address(l.op[i], m, theirs[i], t);
    const mesh_end end = copy_own(l) ? mesh_move(m, t, who) : mesh_end::MISMATCH;
    for (size_t i = 0; i < l.op.size() && end == mesh_end::WHOLE; i++) finish(l.op[i], m, theirs[i]);
    return end;
}

/* On the stream. */
static void run(const launch &l, bool hangs, bool dies) {
    communicator &c = *l.comm;
    int who = 0;
    const mesh_end end = hangs || dies ? mesh_end::PEER_GONE : move(l, &who);
    const std::string peer = "rank " + std::to_string(who) + " of the communicator ";
    if (dies) fail(c, ncclRemoteError, "as it was asked for");
    if (end == mesh_end::PEER_GONE && !dies && !hangs) fail(c, ncclRemoteError, peer + "is gone");
    if (end == mesh_end::MISMATCH) fail(c, ncclInvalidUsage, peer + "has another length for the message");
    while (end != mesh_end::WHOLE && !c.quit) usleep(100);
}

static ncclResult_t launch_all(const std::vector<launch> &all) {
    for (const launch &l : all) {
        const bool hangs = standin_fails("hang"), dies = standin_fails("nccl");
        if (standin_give(l.stream, [=] { run(l, hangs, dies); }) != cudaSuccess)
            return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    if (standin_fails(__func__)) return ncclSystemError;
    depth++;
    return ncclSuccess;
}

/* A submitted group: each communicator reports its own status; the first that is polled often enough
 * launches the group. */
struct under_way {
    std::vector<launch> all;
    std::once_flag once;
    ncclResult_t code = ncclSuccess;
};

static ncclResult_t carry(under_way &w) {
    std::call_once(w.once, [&] { w.code = launch_all(w.all); });
    return w.code;
}

ncclResult_t ncclGroupEnd(void) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (depth == 0) return ncclInvalidUsage;
    if (--depth > 0 || group.empty()) return ncclSuccess;
    const auto w = std::make_shared<under_way>();
    w->all.swap(group);
    for (const launch &l : w->all) {
        const ncclResult_t code = begin(*l.comm);
        if (code != ncclSuccess) return code;
    }
    for (const launch &l : w->all) l.comm->rest = [w] { return carry(*w); };
    return ncclInProgress;
}

static launch &launch_of(const shared &c, cudaStream_t stream) {
    for (launch &l : group)
        if (l.comm == c) return l;
    group.push_back({c, stream, {}});
    return group.back();
}

static bool whole(const void *data, size_t count, ncclDataType_t type) {
    return count == 0 || (standin_is_device(data) && standin_in_memory(data, count * bytes_of(type)));
}

static bool meet(const unsigned char *a, size_t n, const unsigned char *b, size_t m) {
    return n > 0 && m > 0 && a < b + m && b < a + n;
}

/* Does the operation read what it writes, except as NCCL's calls define `in place`? */
static bool overlaps_itself(const operation &o, const mesh &m) {
    const size_t mine = (size_t)m.rank * o.count * bytes_of(o.type);
    const bool in_place = o.what == act::SUM_PARTS ? o.to == o.from + mine
                          : o.what == act::GATHER  ? o.from == o.to + mine
                                                   : o.from == o.to;
    return !in_place && meet(o.from, o.reads, o.to, o.writes);
}

/* Operations of a group are concurrent: none may write what another reads. Two may write the same bytes. */
static bool clashes(const operation &a, const operation &b) {
    return meet(a.from, a.reads, b.to, b.writes) || meet(a.to, a.writes, b.from, b.reads);
}

/* Adds an operation; outside a group it forms a group of one. `reads`, `writes`: memory accessed, in
 * messages; 0: none. */
static ncclResult_t add(ncclComm_t comm, cudaStream_t stream, operation o, size_t reads, size_t writes) {
    if (!comm || o.peer < 0 || o.peer >= comm->of->net.size || !whole(o.from, o.count * reads, o.type) ||
        !whole(o.to, o.count * writes, o.type))
        return ncclInvalidArgument;
    ncclGroupStart();
    launch &l = launch_of(comm->of, stream);
    if (l.stream != stream) return depth--, ncclInvalidUsage;
    o.from = (unsigned char *)standin_real(o.from);
    o.to = (unsigned char *)standin_real(o.to);
    o.reads = reads * o.count * bytes_of(o.type);
    o.writes = writes * o.count * bytes_of(o.type);
    const bool apart =
        std::none_of(l.op.begin(), l.op.end(), [&](const operation &p) { return clashes(o, p); });
    if (overlaps_itself(o, comm->of->net) || !apart) return depth--, ncclInvalidUsage;
    l.op.push_back(o);
    return ncclGroupEnd();
}

static size_t size_of(ncclComm_t comm) {
    return comm ? (size_t)comm->of->net.size : 0;
}

static bool is_rank(ncclComm_t comm, int rank) {
    return comm && comm->of->net.rank == rank;
}

static bool known(ncclRedOp_t op) {
    return op == ncclSum || op == ncclMin || op == ncclMax || op == ncclAvg;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
    if (!comm) return ncclInvalidArgument;
    *rank = comm->of->net.rank;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    unsigned char *at = (unsigned char *)data;
    return add(comm, stream, {act::SEND, at, at, count, type, peer, ncclSum}, 1, 0);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    unsigned char *at = (unsigned char *)data;
    return add(comm, stream, {act::RECV, at, at, count, type, peer, ncclSum}, 0, 1);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (!known(op)) return ncclInvalidArgument;
    return add(comm, stream, {act::SUM, (unsigned char *)from, (unsigned char *)to, count, type, 0, op}, 1,
               1);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (!known(op)) return ncclInvalidArgument;
    return add(comm, stream, {act::SUM_AT, (unsigned char *)from, (unsigned char *)to, count, type, root, op},
               1, is_rank(comm, root));
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    if (!known(op)) return ncclInvalidArgument;
    return add(comm, stream, {act::SUM_PARTS, (unsigned char *)from, (unsigned char *)to, count, type, 0, op},
               size_of(comm), 1);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    return add(comm, stream,
               {act::GATHER, (unsigned char *)from, (unsigned char *)to, count, type, 0, ncclSum}, 1,
               size_of(comm));
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    if (standin_fails(__func__)) return ncclSystemError;
    return add(comm, stream,
               {act::GIVE, (unsigned char *)from, (unsigned char *)to, count, type, root, ncclSum},
               is_rank(comm, root), 1);
}

/* --- errors --- */

const char *ncclGetErrorString(ncclResult_t code) {
    static const char *const TEXT[] = {"no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a network error",
                                       "NCCL operation in progress"};
    return TEXT[code];
}

const char *ncclGetLastError(ncclComm_t comm) {
    return comm ? comm->of->text.c_str() : "";
}
