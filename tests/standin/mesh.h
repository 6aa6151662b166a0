/* mesh.h - processes of one machine, every pair connected by a socket: the transport of the stand-in for
 * NCCL. Not MPI, whose calls belong to the executor's thread, while these belong to the streams'. */
#ifndef HP_TESTS_MESH_H
#define HP_TESTS_MESH_H

#include <atomic>
#include <deque>
#include <stdint.h>
#include <string>
#include <vector>

struct mesh {
    int rank = 0, size = 0;
    std::vector<int> fd; /* per rank */
    std::atomic<bool> *quit = nullptr;
    ~mesh();
};

enum class mesh_end { WHOLE, QUIT, PEER_GONE, MISMATCH };

/* Connects all processes that use the same name. Collective: over all of them. False: told to quit. */
bool mesh_open(mesh &m, const std::string &name);

struct mesh_message { /* its length is sent first, and must be what the receiver expects */
    unsigned char *data;
    uint64_t bytes;
    uint64_t length = 0, moved = 0; /* includes the bytes of the header */
};

struct mesh_traffic { /* messages per rank, in the order in which they are sent and received */
    std::vector<std::deque<mesh_message>> send, recv;
    explicit mesh_traffic(int size) : send((size_t)size), recv((size_t)size) {}
};

/* Moves all messages concurrently; *who: the peer that caused another end. */
mesh_end mesh_move(mesh &m, mesh_traffic &t, int *who);

#endif
