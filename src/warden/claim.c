/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A spare sandbox becomes somebody's. It was made like any other, with its id for a name, and
 * nobody has run anything in it: so what a start would do differently now is its name, its limits,
 * the rules of its network and a few times. All of it happens here at once, without a child: there
 * is no memory to be taken back and no tree to be measured yet.
 *
 * The hostname comes last, and says that the rest is done: whoever asks again, because the answer
 * got lost in a crash, finds it and changes nothing under whoever may work in there by now.
 *
 * Names and times are written to the layer, below the sandbox's overlay. A file is written in
 * place: the overlay keeps no content of its own, and what it has looked up stays true.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "warden/names.h"
#include "warden/warden.h"

/* Directories of the layer that a start makes: they are as old as the sandbox. */
static const char *const born_with_it[] = {"root/upper", "root/upper/etc", "usr/upper"};

/* ---- the hostname ---- */

/* Runs on the other side of a namespace switch, where nothing else may happen. */
static int set_hostname(const struct sandbox *sandbox, const char *hostname, bool *ret_had,
                        struct error *err)
{
    struct utsname now;
    _cleanup_fd_ int home = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        return error_sys(err, "opening the warden's uts namespace");
    if (setns(sandbox->pidfd.fd, CLONE_NEWUTS) < 0)
        return error_sys_as(err, errno == ESRCH ? ERROR_NOT_RUNNING : ERROR_INTERNAL,
                            "entering the sandbox's uts namespace");
    int r = uname(&now);
    bool had = r == 0 && strcmp(now.nodename, hostname) == 0;
    if (r == 0 && !had && sandbox->spare)
        r = sethostname(hostname, strlen(hostname));
    int why = errno;
    if (setns(home, CLONE_NEWUTS) < 0) {
        log_error("the way back from a sandbox's uts namespace is gone: %m");
        abort(); /* the next warden adopts everything */
    }
    errno = why;
    if (r < 0)
        return error_sys(err, "setting the hostname");
    *ret_had = had;
    return 0;
}

/* ---- names and times in its layer ---- */

/* Nobody should have been in there, but only cellad says so: no link is followed. */
static int open_in_layer(const struct sandbox *sandbox, const char *path, int flags)
{
    char whole[PLAN_ID_MAX + 64];
    struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    snprintf(whole, sizeof(whole), "%s/%s", sandbox->id, path);
    return (int)syscall(SYS_openat2, sandbox->warden->storage.fd, whole, &how, sizeof(how));
}

static int rewrite(const struct sandbox *sandbox, const char *path, const char *text,
                   struct error *err)
{
    struct stat st;
    size_t len = strlen(text);
    _cleanup_fd_ int fd = open_in_layer(sandbox, path, O_WRONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(err, "opening %s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERROR_NOT_RUNNING, "%s is not what a start has made", path);
    if (pwrite(fd, text, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len) < 0)
        return error_sys(err, "writing %s", path);
    return 0;
}

static int rename_files(const struct sandbox *sandbox, const char *hostname, struct error *err)
{
    char text[NAMES_TEXT_MAX];
    names_hostname(hostname, text);
    if (rewrite(sandbox, "root/upper/etc/hostname", text, err) < 0)
        return -1;
    names_hosts(hostname, text);
    return rewrite(sandbox, "root/upper/etc/hosts", text, err);
}

static int make_young(const struct sandbox *sandbox, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(born_with_it); i++) {
        _cleanup_fd_ int fd = open_in_layer(sandbox, born_with_it[i], O_RDONLY | O_DIRECTORY);
        if (fd < 0 || futimens(fd, NULL) < 0)
            return error_sys(err, "the times of %s", born_with_it[i]);
    }
    return 0;
}

/* ---- all of it ---- */

/* A spare one with a network has the mode that lets nothing through, and an address; its rules come
 * here. Whether it has one at all was decided at its start. */
static int set_network(struct sandbox *sandbox, const struct plan *plan, struct error *err)
{
    const struct net_wish wish = net_wish_of_plan(plan);
    if ((wish.mode != PLAN_NETWORK_NONE) != (sandbox->net.index >= 0))
        return error_set(err, ERROR_NOT_RUNNING, "the spare sandbox %s a network",
                         sandbox->net.index >= 0 ? "has" : "does not have");
    if (wish.mode == PLAN_NETWORK_NONE)
        return 0;
    return net_change(sandbox->warden, sandbox, &wish, err);
}

static int set_limits(const struct sandbox *sandbox, const struct plan *plan, struct error *err)
{
    const struct warden *warden = sandbox->warden;
    const struct cgroup_limits limits = sandbox_limits(plan, ids_base(sandbox->slot));
    if (cgroup_resize(&warden->cgroups, sandbox->id, &limits, err) < 0)
        return -1;
    return storage_limit(&warden->storage, sandbox->id, plan->disk_bytes, err);
}

int sandbox_claim(struct warden *warden, const struct plan *plan, struct error *err)
{
    bool had;
    if (plan_check(plan, err) < 0)
        return -1;
    struct sandbox *sandbox = sandbox_find(warden, plan->id);
    if (sandbox == NULL || sandbox->state != SANDBOX_RUNNING || sandbox->pid == 0)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox does not run");
    if (sandbox->spare &&
        (rename_files(sandbox, plan->hostname, err) < 0 || make_young(sandbox, err) < 0 ||
         (!plan->spare && set_limits(sandbox, plan, err) < 0) ||
         set_network(sandbox, plan, err) < 0))
        return -1;
    if (set_hostname(sandbox, plan->hostname, &had, err) < 0)
        return -1;
    if (!sandbox->spare && !had)
        return error_set(err, ERROR_NOT_RUNNING, "the sandbox is no spare one");
    sandbox->spare = false;
    volume_keeper_wake(warden);
    return 0;
}
