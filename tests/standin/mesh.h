/* mesh.h - processes of one machine, each connected to each by a socket of its own: what a communicator of
 * the stand-in for NCCL is made of. No MPI: its calls belong to the executor's thread, these to the streams'.
 */
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

/* Meets those who use the same name. Collective: over all of them. False: told to quit. */
bool mesh_open(mesh &m, const std::string &name);

struct mesh_message { /* its length is sent before it, and must be what the other side expects */
    unsigned char *data;
    uint64_t bytes;
    uint64_t length = 0, moved = 0; /* bytes of the header, too */
};

struct mesh_traffic { /* per rank, in the order in which they are sent and received */
    std::vector<std::deque<mesh_message>> send, recv;
    explicit mesh_traffic(int size) : send((size_t)size), recv((size_t)size) {}
};

/* Moves everything at once; *who: the peer that ended it otherwise. */
mesh_end mesh_move(mesh &m, mesh_traffic &t, int *who);

#endif
