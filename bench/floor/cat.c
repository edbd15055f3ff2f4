/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With cat's own buffer of 128 KiB, and the file on the same btrfs volume that sandboxes are on.
 */
#include "floor/cat.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "floor/sandbox.h"

enum { CAT_BUFFER = 128 * 1024 };

/* Copies until the end; out of -1 drops. Returns how much it was, or -1 with errno. */
static off_t copy(int in, int out)
{
    _cleanup_free_ char *buffer = malloc(CAT_BUFFER);
    off_t total = 0;
    ssize_t n;
    while (buffer != NULL && (n = read(in, buffer, CAT_BUFFER)) > 0) {
        for (ssize_t done = 0, w; out >= 0 && done < n; done += w)
            if ((w = write(out, buffer + done, n - done)) < 0)
                return -1;
        total += n;
    }
    return total;
}

static int make_source(struct host *host, off_t size, struct error *err)
{
    struct stat st;
    if (fstatat(host->volume_fd, "source", &st, 0) == 0 && st.st_size == size)
        return 0;
    _cleanup_fd_ int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    _cleanup_fd_ int fd =
        openat(host->volume_fd, "source", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    _cleanup_free_ char *buffer = malloc(CAT_BUFFER);
    if (random < 0 || fd < 0 || buffer == NULL)
        return error_sys(err, "make the file to cat");
    for (off_t left = size; left > 0;) {
        size_t want = left < CAT_BUFFER ? (size_t)left : CAT_BUFFER;
        ssize_t n = read(random, buffer, want);
        if (n <= 0 || write(fd, buffer, n) != n)
            return error_sys(err, "fill the file to cat");
        left -= n;
    }
    return fsync(fd) < 0 ? error_sys(err, "fsync") : 0;
}

static int receive(struct host *host, enum cat_kind kind, int in, off_t size, struct error *err)
{
    _cleanup_fd_ int out = -1;
    if (kind == CAT_STORE) {
        out = openat(host->volume_fd, "stored", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (out < 0)
            return error_sys(err, "make the file to store in");
    }
    off_t n = copy(in, out);
    if (n != size)
        return error_sys(err, "cat gave %lld bytes", (long long)n);
    return 0;
}

int cat_measure(struct host *host, enum cat_kind kind, off_t size, int64_t *ret_ns,
                struct error *err)
{
    int pair[2];
    if (make_source(host, size, err) < 0)
        return -1;
    _cleanup_fd_ int file = openat(host->volume_fd, "source", O_RDONLY | O_CLOEXEC);
    if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "prepare cat");
    _cleanup_fd_ int in = pair[0];
    int64_t start = now_ns();
    pid_t pid = fork();
    if (pid == 0)
        _exit(close(pair[0]) == 0 && copy(file, pair[1]) == size ? 0 : 1);
    close(pair[1]);
    if (pid < 0)
        return error_sys(err, "fork");
    int r = receive(host, kind, in, size, err);
    int64_t end = now_ns();
    close(steal_fd(&in));
    waitpid(pid, NULL, 0);
    unlinkat(host->volume_fd, "stored", 0);
    if (r == 0)
        *ret_ns = end - start;
    return r;
}
