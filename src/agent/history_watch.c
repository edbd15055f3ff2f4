/* SPDX-License-Identifier: Apache-2.0 */

/* One inotify instance that the agent asks and its workers arm. */

#include "agent/history_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    /* Closing for writing is in it for the sake of mappings, whose writes nobody is told of. */
    MASK = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
           IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_ONESHOT,
    FILE_MASK = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DONT_FOLLOW | IN_ONESHOT,
    PARENT_MASK = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_ONESHOT,
};

void history_watch_prepare(struct history_watch *watch)
{
    if (watch->fd >= 0)
        return;
    void *marks = mmap(NULL, sizeof(*watch->marks), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (marks == MAP_FAILED)
        return;
    watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0) {
        munmap(marks, sizeof(*watch->marks));
        return;
    }
    watch->marks = marks;
}

bool history_watch_is_clean(const struct history_watch *watch)
{
    int queued;
    if (watch->fd < 0 || watch->marks->whole == 0 || watch->marks->whole != watch->marks->begun)
        return false;
    return ioctl(watch->fd, FIONREAD, &queued) == 0 && queued == 0;
}

void history_watch_release(struct history_watch *watch)
{
    if (watch->fd < 0)
        return;
    close(watch->fd);
    munmap(watch->marks, sizeof(*watch->marks));
    *watch = HISTORY_WATCH_NONE;
}

/* --- a worker --- */

void history_arming_begin(struct history_arming *arming, const struct history_watch *watch)
{
    *arming = (struct history_arming){.watch = watch, .failed = watch->fd < 0};
    if (watch->fd < 0)
        return;
    /* The number first: from here on nobody takes the queue, which is emptied, for the truth. */
    arming->number = ++watch->marks->begun;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    while (read(watch->fd, events, sizeof(events)) > 0 || errno == EINTR)
        ;
}

/* "." rather than a path: what was opened is what is watched, and /proc is not needed. */
static void add(struct history_arming *arming, int fd, const char *name, uint32_t mask)
{
    if (arming->failed)
        return;
    arming->failed = fchdir(fd) < 0 || inotify_add_watch(arming->watch->fd, name, mask) < 0;
    (void)!chdir("/"); /* a directory that somebody is in is never quite gone */
}

void history_arming_add(struct history_arming *arming, int fd)
{
    add(arming, fd, ".", MASK);
}

void history_arming_add_file(struct history_arming *arming, int dir_fd, const char *name)
{
    add(arming, dir_fd, name, FILE_MASK);
}

void history_arming_add_parent(struct history_arming *arming, int fd)
{
    add(arming, fd, ".", PARENT_MASK);
}

bool history_arming_end(struct history_arming *arming)
{
    if (arming->failed)
        return false;
    /* Of two listings at a time only the later one knows what the earlier one's watches told. */
    arming->watch->marks->whole = arming->number;
    return true;
}
