/* fiber.h - runs a kernel's threads on one thread of the processor. */
#ifndef HP_TESTS_FIBER_H
#define HP_TESTS_FIBER_H

#include "tests/standin/kernel_types.h"

#include <functional>
#include <stdint.h>

/* Runs `thread` for every thread of every block. `draw` selects the order of blocks and threads, forward or
 * reverse, also among threads that are released together. So a kernel that lacks a barrier reads unwritten
 * data in one of the two orders. Ends the process if threads wait for each other in vain. */
void standin_run_grid(dim3 grid, dim3 block, const std::function<void()> &thread, uint64_t draw);

#endif
