/* SPDX-License-Identifier: Apache-2.0 */

/* No queue: whoever wants a number asks again with its next sample, and the first to ask while
 * nothing is being measured is next. */

#include "warden/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/warden.h"

enum { AGAIN_MS = 60 * 1000 };

static void result_ready(struct source *source, uint32_t events)
{
    struct meter *meter = container_of(source, struct meter, channel);
    struct warden *warden = container_of(meter, struct warden, meter);
    uint64_t bytes;
    bool came = read(source->fd, &bytes, sizeof(bytes)) == sizeof(bytes);
    source_close(source);
    struct sandbox *sandbox = sandbox_find(warden, meter->id);
    if (sandbox == NULL || !came)
        return;
    sandbox->disk_bytes = bytes;
    sandbox->disk_measured = true;
    sandbox->disk_measure_at_ms = warden_now_ms() + AGAIN_MS;
}

static _Noreturn void measure(struct warden *warden, int to, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpriority(PRIO_PROCESS, 0, 19);
    uint64_t bytes = storage_measure(&warden->storage, warden->meter.id);
    _exit(write(to, &bytes, sizeof(bytes)) == sizeof(bytes) ? 0 : 1);
}

static int start(struct warden *warden, const struct sandbox *sandbox, struct error *err)
{
    struct meter *meter = &warden->meter;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_sys(err, "making a pipe");
    snprintf(meter->id, sizeof(meter->id), "%s", sandbox->id);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        measure(warden, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_sys(err, "starting a measurement");
    }
    meter->pid = pid;
    return source_watch(warden->epoll_fd, &meter->channel, ends[0], EPOLLIN, result_ready, err);
}

void meter_want(struct warden *warden, struct sandbox *sandbox)
{
    struct error err;
    uint64_t now = warden_now_ms();
    if (now < sandbox->disk_measure_at_ms || warden->meter.pid != 0 ||
        warden->meter.channel.fd >= 0 || warden->stopping)
        return;
    sandbox->disk_measure_at_ms = now + AGAIN_MS; /* also when it fails */
    if (start(warden, sandbox, &err) < 0)
        log_warn("measuring %s: %s", sandbox->id, err.message);
}

void meter_reap(struct meter *meter)
{
    if (meter->pid != 0 && waitpid(meter->pid, NULL, WNOHANG) == meter->pid)
        meter->pid = 0;
}

void meter_stop(struct meter *meter)
{
    source_close(&meter->channel);
    if (meter->pid == 0)
        return;
    kill(meter->pid, SIGKILL);
    while (waitpid(meter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    meter->pid = 0;
}
