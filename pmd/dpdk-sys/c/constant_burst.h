/* What turns a loop with a burst of a constant size into a function that takes the size. */
#ifndef POLLUX_CONSTANT_BURST_H
#define POLLUX_CONSTANT_BURST_H

/* Calls `loop(..., burst)` so that the compiler sees the burst as a constant and inlines it. */
#define WITH_CONSTANT_BURST(burst, loop, ...)                  \
	do {                                                   \
		switch (burst) {                               \
		case 1: return loop(__VA_ARGS__, 1);           \
		case 8: return loop(__VA_ARGS__, 8);           \
		case 32: return loop(__VA_ARGS__, 32);         \
		case 128: return loop(__VA_ARGS__, 128);       \
		default: return 0;                             \
		}                                              \
	} while (0)

#define MAX_BURST 128

/* The compiler may not keep what is at `p` in registers across this, nor leave it out. */
#define SEEN(p) __asm__ volatile("" : : "r"(p) : "memory")

#endif
