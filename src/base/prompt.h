/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asks the scheduler for short turns: a process that runs for microseconds at a time then gets its
 * turn soon on a busy machine, instead of after everybody else's three milliseconds. It gets no
 * more of the cpu by it, needs no privilege, and is not passed on to children. Where the kernel
 * does not know of it (before 6.12), nothing changes.
 */
void prompt_turns(void);
