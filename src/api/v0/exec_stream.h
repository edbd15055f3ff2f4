/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One command of a WebSocket: started by it, or joined. Its output, its input and its end each wait
 * for themselves, so that a command that neither reads nor stops keeps no message for another one
 * from being read. On coroutines.
 *
 * Nothing is dropped silently. A client that reads slowly holds its streams back; a process that it
 * has started, or follows with "hold", waits then, and of another one it is told how many bytes are
 * gone. Input that does not fit is refused, all of it.
 */

#include "api/v0/exec_message.h"
#include "http/websocket.h"
#include "sandbox/sandbox.h"

/* Where its commands run, and who runs them; borrowed. */
struct exec_scene {
    struct loop *loop;
    struct websocket *ws;
    struct memory_account *memory; /* that what streams hold counts in */
    struct sandboxes *sandboxes;
    const char *workspace;
    const char *sandbox;
    const char *actor;
    const char *user; /* as whom commands run; NULL: root */
};

struct exec_stream;

/* Begins to start or to attach to a process, as the message says; what becomes of it is told to the
 * client. The arena, which holds the message, is the stream's from here on, failure or not. */
int exec_stream_new(const struct exec_scene *scene, const struct exec_ask_message *message,
                    struct arena *arena, struct exec_stream **ret_stream, struct error *err);

const char *exec_stream_id(const struct exec_stream *s);
/* Its last message is under way or gone: it only has to be freed. */
bool exec_stream_ended(const struct exec_stream *s);

/* Stdin, signals and the end of the process. CONFLICT while it has not started yet (but for stdin,
 * which waits); LIMIT_EXCEEDED for input that the process is too slow for: none of it was taken. */
int exec_stream_input(struct exec_stream *s, struct slice data, bool end, struct error *err);
int exec_stream_signal(struct exec_stream *s, int signal, struct error *err);
int exec_stream_cancel(struct exec_stream *s, uint64_t grace_ms, struct error *err);

/* Tells the client nothing more of it, but for where it was: the last message. The process goes on.
 * To be freed next. */
int exec_stream_detach(struct exec_stream *s, struct error *err);

/* The process goes on. `gently`: what is being sent is sent whole, so that the connection can be
 * used on. NULL is fine. */
void exec_stream_free(struct exec_stream *s, bool gently);
