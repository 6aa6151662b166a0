/* fiber.h - a kernel's threads on one thread of the processor. */
#ifndef HP_TESTS_FIBER_H
#define HP_TESTS_FIBER_H

#include "tests/standin/kernel_types.h"

#include <functional>
#include <stdint.h>

/* Runs `thread` for every thread of every block. Blocks and threads come in their order or against it, as
 * `draw` has it, and those that are released together again in one of the two: a kernel that lacks a barrier
 * finds what it reads not yet written in one of the two. Ends the process where threads wait for each other
 * in vain. */
void standin_run_grid(dim3 grid, dim3 block, const std::function<void()> &thread, uint64_t draw);

#endif
