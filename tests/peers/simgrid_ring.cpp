/* simgrid_ring.cpp - the step of tests/bench/bench_ring.c in SimGrid's S4U: ten gradient buckets over a ring
 * of ranks, two actors a rank (it computes, it communicates), a link for each rank to the next. Flow model
 * CM02 without its TCP corrections, so that a message takes latency + bytes/bandwidth as in hplan.
 *
 * Needs Debian's libsimgrid-dev:
 *
 *   g++ -O2 tests/peers/simgrid_ring.cpp -lsimgrid -o simgrid_ring && ./simgrid_ring [RANKS] */
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static const int BUCKETS = 10;
static const double FORWARD_S = 80e-3, BACKWARD_S = 16e-3, BUCKET_BYTES = 10.24e6;

static double now_s() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct rank_data {
    sg4::Mailbox *inbox;
    sg4::SemaphorePtr ready; /* buckets whose gradients are there */
};

static void compute(rank_data *me) {
    sg4::this_actor::sleep_for(FORWARD_S);
    for (int b = 0; b < BUCKETS; b++) {
        sg4::this_actor::sleep_for(BACKWARD_S);
        me->ready->release();
    }
}

static void communicate(rank_data *me, rank_data *next, int ranks) {
    static char payload;
    void *got;
    for (int b = 0; b < BUCKETS; b++) {
        me->ready->acquire();
        for (int step = 0; step < 2 * (ranks - 1); step++) {
            sg4::CommPtr receive = me->inbox->get_async<void>(&got);
            sg4::CommPtr send = next->inbox->put_async(&payload, static_cast<uint64_t>(BUCKET_BYTES / ranks));
            send->wait();
            receive->wait();
        }
    }
}

int main(int argc, char **argv) {
    sg4::Engine e(&argc, argv);
    sg4::Engine::set_config("network/model:CM02");
    sg4::Engine::set_config("network/TCP-gamma:0");
    sg4::Engine::set_config("network/crosstraffic:0");
    const int ranks = argc > 1 ? std::stoi(argv[1]) : 128;
    sg4::NetZone *zone = sg4::create_full_zone("ring");
    std::vector<sg4::Host *> host;
    std::vector<rank_data> data(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; r++) host.push_back(zone->create_host("host" + std::to_string(r), 1e9)->seal());
    for (int r = 0; r < ranks; r++) {
        sg4::Link *link = zone->create_link("link" + std::to_string(r), 25e9)->set_latency(1e-6)->seal();
        zone->add_route(host[r]->get_netpoint(), host[(r + 1) % ranks]->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(link)}, false);
    }
    zone->seal();
    for (int r = 0; r < ranks; r++)
        data[r] = {sg4::Mailbox::by_name("rank" + std::to_string(r)), sg4::Semaphore::create(0)};
    for (int r = 0; r < ranks; r++) {
        sg4::Actor::create("compute", host[r], compute, &data[r]);
        sg4::Actor::create("communicate", host[r], communicate, &data[r], &data[(r + 1) % ranks], ranks);
    }
    const double t0 = now_s();
    e.run();
    std::printf("%d ranks, every message: step %.6f ms, simulated in %.1f ms\n", ranks,
                1e3 * sg4::Engine::get_clock(), 1e3 * (now_s() - t0));
    return 0;
}
