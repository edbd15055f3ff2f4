/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sockets for coroutines. All descriptors are non-blocking and close-on-exec; time-outs are in ms
 * without progress (-1: none). Failures are UNAVAILABLE (refused, reset, closed) or TIMEOUT.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "loop/loop.h"

/* "HOST:PORT" or "[v6]:PORT" (numeric addresses and localhost) or "unix:/path". On a unix socket
 * that nobody listens on any more, the old file is replaced. Port 0 picks one: ret_port (may be
 * NULL) says which. */
int net_listen(const char *address, int backlog, int *ret_fd, uint16_t *ret_port,
               struct error *err);
int net_connect(struct loop *loop, const char *address, int64_t timeout_ms, int *ret_fd,
                struct error *err);
/* A unix socket `name` inside the directory dir_fd, however long its path is. */
int net_connect_at(struct loop *loop, int dir_fd, const char *name, int64_t timeout_ms, int *ret_fd,
                   struct error *err);

/* The same, where a stranger listens: descriptors that he sends with his bytes are refused. */
int net_connect_to_stranger(struct loop *loop, int dir_fd, const char *name, int64_t timeout_ms,
                            int *ret_fd, struct error *err);

/*
 * Whether descriptors are taken from the other end of a unix socket; so it is for a new one. Who
 * reads bytes that have some with them, and wants none, is the one to close them, and a close can
 * take as long as their sender likes (a TCP connection that lingers). Refused, the sender is told
 * EPERM. Linux 6.16 and later; without effect before.
 */
void net_take_descriptors(int fd, bool take);
/* Closes what a stranger has sent, at once. */
void net_close_foreign(int fd);

/* The next connection of a listening socket. */
int net_accept(struct loop *loop, int listen_fd, int *ret_fd, struct error *err);

/* Reads all of len bytes. A descriptor that comes with them replaces *fd, which is closed then.
 * UNAVAILABLE when the other end closes before. */
int net_read_with_fd(struct loop *loop, int from, void *to, size_t len, int64_t timeout_ms, int *fd,
                     struct error *err);

/* As read(2) and write(2), but waiting: net_read() gives 0 at the end, net_write() writes all. */
ssize_t net_read(struct loop *loop, int fd, void *to, size_t len, int64_t timeout_ms,
                 struct error *err);
int net_read_whole(struct loop *loop, int fd, void *to, size_t len, int64_t timeout_ms,
                   struct error *err);
int net_write(struct loop *loop, int fd, const void *from, size_t len, int64_t timeout_ms,
              struct error *err);

/* Moves exactly len bytes from one socket to the other without copying them through here
 * (splice(2) and a pipe from a small pool). */
int net_pump(struct loop *loop, int from, int to, uint64_t len, int64_t timeout_ms,
             struct error *err);

/* Joins two sockets: what comes out of one goes into the other, both ways, until both have ended.
 * The end of one direction is passed on while the other one goes on. Fails when a side breaks, and
 * with TIMEOUT when nothing has moved either way for idle_ms. Both stay the caller's, to close. */
int net_relay(struct loop *loop, int a, int b, int64_t idle_ms, struct error *err);

/* The same, counted while it goes on: what went from a to b, and back. */
struct net_relayed {
    uint64_t there, back;
};
int net_relay_counted(struct loop *loop, int a, int b, int64_t idle_ms, struct net_relayed *relayed,
                      struct error *err);

/* After each piece of something long that may never have to wait for a peer: gives everybody else
 * their turn once in a while. *burst (0 at first) is what was moved since. */
int net_turn(struct loop *loop, uint64_t *burst, size_t moved, struct error *err);

/* One direction of it: until `from` ends, which is passed on. *moved_at (loop_now() of the last
 * move, shared with whoever else works for the same two) is what idle_ms is counted from. */
int net_flow(struct loop *loop, int from, int to, int64_t idle_ms, int64_t *moved_at,
             uint64_t *moved, struct error *err);

/* How a pump waits for a descriptor: as co_wait_fd(), for those who watch one of the two already.
 */
typedef int net_wait(void *ctx, int fd, uint32_t events, int64_t timeout_ms, struct error *err);
int net_pump_with(struct loop *loop, int from, int to, uint64_t len, int64_t timeout_ms,
                  net_wait *wait, void *ctx, struct error *err);
