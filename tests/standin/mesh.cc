/* mesh.cc - sockets between all pairs of processes: the higher rank connects, the lower rank listens. */
#include "tests/standin/mesh.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

mesh::~mesh() {
    for (const int f : fd)
        if (f >= 0) close(f);
}

/* --- meeting --- */

/* An abstract name, outside the file system. */
static socklen_t address(sockaddr_un *a, const std::string &name, int rank) {
    const std::string path = name + "-" + std::to_string(rank);
    *a = {};
    a->sun_family = AF_UNIX;
    const size_t n = path.size() < sizeof a->sun_path - 1 ? path.size() : sizeof a->sun_path - 1;
    memcpy(a->sun_path + 1, path.data(), n);
    return (socklen_t)(offsetof(sockaddr_un, sun_path) + 1 + n);
}

static int listen_at(const std::string &name, int rank, int size) {
    sockaddr_un a;
    const socklen_t n = address(&a, name, rank);
    const int f = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f >= 0 && bind(f, (const sockaddr *)&a, n) == 0 && listen(f, size) == 0) return f;
    if (f >= 0) close(f);
    return -1;
}

/* Retries until the other process listens. */
static int call(mesh &m, const std::string &name, int peer) {
    sockaddr_un a;
    const socklen_t n = address(&a, name, peer);
    while (!*m.quit) {
        const int f = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(f, (const sockaddr *)&a, n) == 0 &&
            send(f, &m.rank, sizeof m.rank, MSG_NOSIGNAL) == sizeof m.rank)
            return f;
        close(f);
        usleep(1000);
    }
    return -1;
}

static void answer(mesh &m, int listener) {
    pollfd p = {listener, POLLIN, 0};
    int peer = -1;
    while (!*m.quit && poll(&p, 1, 5) == 0) {
    }
    if (*m.quit) return;
    const int f = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (f < 0) return;
    if (recv(f, &peer, sizeof peer, MSG_WAITALL) == sizeof peer && peer > m.rank && peer < m.size)
        m.fd[(size_t)peer] = f;
    else
        close(f);
}

static bool connected(const mesh &m, int from, int to) {
    for (int r = from; r < to; r++)
        if (m.fd[(size_t)r] < 0) return false;
    return true;
}

bool mesh_open(mesh &m, const std::string &name) {
    m.fd.assign((size_t)m.size, -1);
    const int listener = listen_at(name, m.rank, m.size);
    if (listener < 0) return false;
    for (int r = 0; r < m.rank; r++) m.fd[(size_t)r] = call(m, name, r);
    while (!*m.quit && !connected(m, m.rank + 1, m.size)) answer(m, listener);
    close(listener);
    return !*m.quit && connected(m, 0, m.rank);
}

/* --- moving --- */

static uint64_t whole(const mesh_message &m) {
    return sizeof m.length + m.bytes;
}

/* The next part to transfer: of the header, then of the data. */
static void *next_part(mesh_message &m, size_t *bytes) {
    if (m.moved < sizeof m.length) {
        *bytes = sizeof m.length - m.moved;
        return (unsigned char *)&m.length + m.moved;
    }
    const uint64_t at = m.moved - sizeof m.length;
    *bytes = m.bytes - at;
    return m.data + at;
}

/* Transfers as much as possible without waiting. */
static mesh_end push(int fd, std::deque<mesh_message> &q) {
    while (!q.empty()) {
        mesh_message &m = q.front();
        size_t bytes;
        if (m.moved == 0) m.length = m.bytes;
        void *part = next_part(m, &bytes);
        const ssize_t n = send(fd, part, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN || errno == EINTR ? mesh_end::WHOLE : mesh_end::PEER_GONE;
        m.moved += (uint64_t)n;
        if (m.moved == whole(m)) q.pop_front();
    }
    return mesh_end::WHOLE;
}

static mesh_end pull(int fd, std::deque<mesh_message> &q) {
    while (!q.empty()) {
        mesh_message &m = q.front();
        size_t bytes;
        void *part = next_part(m, &bytes);
        const ssize_t n = bytes ? recv(fd, part, bytes, MSG_DONTWAIT) : 0;
        if (n < 0) return errno == EAGAIN || errno == EINTR ? mesh_end::WHOLE : mesh_end::PEER_GONE;
        if (n == 0 && bytes) return mesh_end::PEER_GONE;
        m.moved += (uint64_t)n;
        if (m.moved >= sizeof m.length && m.length != m.bytes) return mesh_end::MISMATCH;
        if (m.moved == whole(m)) q.pop_front();
    }
    return mesh_end::WHOLE;
}

/* Delivers messages to oneself, in the same order. */
static mesh_end hand_over(std::deque<mesh_message> &send, std::deque<mesh_message> &recv) {
    while (!send.empty() && !recv.empty()) {
        if (send.front().bytes != recv.front().bytes) return mesh_end::MISMATCH;
        if (send.front().bytes) memmove(recv.front().data, send.front().data, send.front().bytes);
        send.pop_front();
        recv.pop_front();
    }
    return send.empty() && recv.empty() ? mesh_end::WHOLE : mesh_end::MISMATCH;
}

static mesh_end move_with(mesh &m, mesh_traffic &t, int peer) {
    std::deque<mesh_message> &out = t.send[(size_t)peer], &in = t.recv[(size_t)peer];
    if (peer == m.rank) return hand_over(out, in);
    const mesh_end sent = push(m.fd[(size_t)peer], out);
    return sent == mesh_end::WHOLE ? pull(m.fd[(size_t)peer], in) : sent;
}

/* Waits briefly for any socket with remaining traffic; false: none remains. */
static bool wait_for_some(const mesh &m, const mesh_traffic &t) {
    std::vector<pollfd> all;
    for (size_t r = 0; r < t.send.size(); r++) {
        const short events = (short)((t.send[r].empty() ? 0 : POLLOUT) | (t.recv[r].empty() ? 0 : POLLIN));
        if (events) all.push_back({m.fd[r], events, 0});
    }
    if (!all.empty()) poll(all.data(), (nfds_t)all.size(), 5);
    return !all.empty();
}

mesh_end mesh_move(mesh &m, mesh_traffic &t, int *who) {
    do {
        for (*who = 0; *who < m.size; ++*who) {
            const mesh_end end = move_with(m, t, *who);
            if (end != mesh_end::WHOLE) return end;
        }
        if (*m.quit) return mesh_end::QUIT;
    } while (wait_for_some(m, t));
    return mesh_end::WHOLE;
}
