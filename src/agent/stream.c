/* SPDX-License-Identifier: Apache-2.0 */

/* Reading pipes. One read per event bounds the work of a turn; who follows is told after each. */

#include "agent/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/follow.h"
#include "agent/journal.h"
#include "agent/process.h"
#include "base/cleanup.h"

enum {
    FOLLOWED_PIPE = 1 << 20, /* of a process whose output is waited for; the kernel may say less */
    FOLLOWED_READS = 3,      /* more of them at once */
};

static struct process *process_of(struct stream *stream)
{
    return container_of(stream - stream->number, struct process, streams);
}

bool streams_open(const struct process *process)
{
    return process->streams[0].watch.fd >= 0 || process->streams[1].watch.fd >= 0;
}

uint64_t streams_total(const struct process *process)
{
    return process->streams[0].output.total + process->streams[1].output.total;
}

void stream_add(struct agent *agent, struct process *process, unsigned number, const char *text)
{
    journal_stamp(agent, process, number);
    output_add(&process->streams[number].output, text, strlen(text));
    runs_add(&process->runs, number, strlen(text));
}

static void stream_end(struct agent *agent, struct stream *stream)
{
    watch_stop(agent, &stream->watch);
    output_trim(&stream->output);
    if (stream->output.total > 0) /* what has no line end is a line now */
        process_of(stream)->change = ++agent->changes;
    agent->processes_changed = true;
}

/* What it wrote is all there is room for. Its last byte may have been the last one allowed, so only
 * another one is too many; that one is lost, and so is what comes after it. */
static void stream_full(struct agent *agent, struct stream *stream)
{
    struct process *process = process_of(stream);
    char byte;
    ssize_t n = read(stream->watch.fd, &byte, 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        stream_end(agent, stream);
        return;
    }
    process_hit_limit(agent, process, PROCESS_OUTPUT_LIMIT);
    for (int i = 0; i < 2; i++)
        if (process->streams[i].watch.fd >= 0)
            stream_end(agent, &process->streams[i]);
}

bool streams_past_limit(const struct process *process)
{
    uint64_t total = streams_total(process);
    if (process->output_max == 0)
        return false;
    for (int i = 0; i < 2; i++) {
        int there = 0;
        if (process->streams[i].watch.fd >= 0 &&
            ioctl(process->streams[i].watch.fd, FIONREAD, &there) == 0)
            total += (uint64_t)there;
    }
    return total > process->output_max;
}

/* One read of at most `max` bytes. Returns what came, 0 at the end of what is there. */
static size_t stream_read(struct agent *agent, struct stream *stream, size_t max)
{
    const struct process *process = process_of(stream);
    if (stream->watch.fd < 0)
        return 0;
    if (process->output_max != 0) {
        uint64_t total = streams_total(process);
        if (total >= process->output_max) {
            stream_full(agent, stream);
            return 0;
        }
        if (max > process->output_max - total)
            max = (size_t)(process->output_max - total);
    }
    char lost[512];
    struct iovec iov[2];
    int pieces = output_space(&stream->output, iov);
    if (pieces == 0) {
        iov[0] = (struct iovec){lost, sizeof(lost)};
        pieces = -1;
    }
    if (iov[0].iov_len >= max) {
        iov[0].iov_len = max;
        pieces = pieces < 0 ? -1 : 1;
    } else if (pieces == 2 && iov[1].iov_len > max - iov[0].iov_len) {
        iov[1].iov_len = max - iov[0].iov_len;
    }
    ssize_t n = readv(stream->watch.fd, iov, pieces < 0 ? 1 : pieces);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        stream_end(agent, stream);
        return 0;
    }
    journal_stamp(agent, process_of(stream), stream->number);
    if (pieces < 0)
        output_skip(&stream->output, (size_t)n);
    else
        output_commit(&stream->output, (size_t)n);
    runs_add(&process_of(stream)->runs, stream->number, (size_t)n);
    return (size_t)n;
}

void stream_ready(struct agent *agent, struct watch *watch, uint32_t events)
{
    struct stream *stream = container_of(watch, struct stream, watch);
    struct process *process = process_of(stream);
    if (events & EPOLLIN)
        stream_read(agent, stream, SIZE_MAX);
    else /* the last writer has closed it, and nothing is left in it */
        stream_end(agent, stream);
    if (process->followers == NULL)
        return;
    /* A pipe that was made larger for them is emptied as far as it goes: they are woken less. */
    for (int more = 0; more < FOLLOWED_READS && events & EPOLLIN && !followers_hold(process);
         more++)
        if (stream_read(agent, stream, SIZE_MAX) == 0)
            break;
    followers_go_on(agent, process);
}

void streams_widen(struct process *process)
{
    for (int i = 0; i < 2; i++)
        (void)!fcntl(process->streams[i].watch.fd, F_SETPIPE_SZ, FOLLOWED_PIPE);
}

void streams_drain(struct agent *agent, struct process *process)
{
    for (int i = 0; i < 2 && !followers_hold(process); i++) {
        struct stream *stream = &process->streams[i];
        int there = 0;
        if (stream->watch.fd < 0 || ioctl(stream->watch.fd, FIONREAD, &there) < 0)
            continue;
        size_t left = (size_t)there, n;
        while (left > 0 && !followers_hold(process) && (n = stream_read(agent, stream, left)) > 0)
            left -= n;
    }
}

void streams_catch_up(struct agent *agent, struct process *process)
{
    streams_drain(agent, process);
    for (int i = 0; process->ended && i < 2 && !followers_hold(process); i++)
        stream_read(agent, &process->streams[i], SIZE_MAX);
}

void streams_pause(struct agent *agent, struct process *process)
{
    for (int i = 0; i < 2; i++)
        watch_pause(agent, &process->streams[i].watch);
}

void streams_resume(struct agent *agent, struct process *process)
{
    for (int i = 0; i < 2; i++)
        watch_resume(agent, &process->streams[i].watch);
}

void streams_close(struct agent *agent, struct process *process)
{
    for (int i = 0; i < 2; i++)
        if (process->streams[i].watch.fd >= 0)
            watch_stop(agent, &process->streams[i].watch);
}
