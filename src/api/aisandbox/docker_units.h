/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Amounts as `docker run` takes them, which is not as Kubernetes does (base/quantity.h): "512m" is
 * half a gibibyte here and half a byte there.
 *
 * Memory (--memory): a number, with a fraction if it has a unit, and b, k, m, g, t or p in either
 * case, which may be followed by "b" or "ib"; all of them are powers of 1024, and no unit is bytes.
 * Fractions of a byte round up. Cpu (--cpus): a decimal number of cores; fractions of a thousandth
 * round up.
 *
 * INVALID_QUANTITY names the text and shows a right one: for what is empty, negative or over 63
 * bits, too.
 */

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

int docker_memory(const char *text, uint64_t *ret_bytes, struct error *err);
int docker_cpus(const char *text, uint64_t *ret_millis, struct error *err);

/* The other way: "128m", "1.5g", "96k", "17b", which docker_memory() reads as no less than they
 * were and at most a hundredth more; "0.25", "2" of cores, to the hundredth. */
const char *docker_memory_text(uint64_t bytes, struct arena *arena);
const char *docker_cpus_text(double cores, struct arena *arena);
