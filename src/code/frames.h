/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is spoken over the connection to a kernel: frames of one byte of type, a length of four
 * bytes (little-endian, as all numbers here) and a payload.
 *
 * From the kernel, which is not trusted:
 *   H  u32 version, u32 number of the run under way (0: none), u32 runs so far
 *   S  u32 number: this run begins. What comes before is of an earlier one
 *   O, E  bytes of stdout, stderr
 *   R  u8 flags (1: the main result), then per representation: u8 length and name, u32 length and
 *      value
 *   X  name, value, traceback: u32 length and text each
 *   G  u64 bytes that were dropped
 *   D  u32 number, u32 runs so far, u32 status: this run has ended
 *
 * To the kernel: one byte when connecting ('A' attaches, 'F' has the last run told again), then
 *   R  u32 number, u32 length and environment ("NAME=value" with NULs), code
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "code/code.h"

enum { CODE_PROTOCOL = 1, CODE_HEADER_SIZE = 5 };

struct code_frame {
    char type;
    struct slice payload;
};

/* The first frame of the bytes, which it points into. 1: there is one, and *ret_size bytes are it;
 * 0: more has to come first; -1: CODE_KERNEL_FAILED, it can not be one. */
int code_frame_next(struct slice bytes, struct code_frame *ret_frame, size_t *ret_size,
                    struct error *err);

/* Numbers of H, S and D; how many is what the type has. */
int code_frame_numbers(const struct code_frame *frame, uint32_t ret_numbers[3], struct error *err);

/* O, E, R, X, G as an event, which points into the frame and (its list of items) the arena. */
int code_frame_event(const struct code_frame *frame, struct arena *arena,
                     struct code_event *ret_event, struct error *err);

void code_frame_run(struct buf *out, uint32_t number, struct slice env, struct slice code);
