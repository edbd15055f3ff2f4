/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Idmapped overlays. Three things that are easy to get wrong:
 *
 *   - The layers are clones of mounts (open_tree), idmapped with the sandbox's user namespace
 *     before they are used; the overlay itself cannot be idmapped.
 *   - The overlay has to be mounted with file-system ids inside the sandbox's range, or it comes up
 *     read-only without an error: its mounter cannot write to the upper layer then.
 *   - /usr needs an overlay of its own, because a mount inside a lower layer is invisible.
 */

#include "warden/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "warden/creds.h"

enum tree { TREE_ROOT, TREE_USR, TREE_MASK, TREE_VOLUME, TREES };

_Static_assert((int)TREES <= (int)STAGE_SLOTS, "each tree needs a slot to be attached to");

struct trees {
    int fds[TREES];
};

static void trees_release(struct trees *trees)
{
    for (int i = 0; i < TREES; i++)
        cleanup_fd(&trees->fds[i]);
}

static int clone_tree(int dirfd, const char *path, int *ret_fd, struct error *err)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
    if (path[0] == '\0')
        flags |= AT_EMPTY_PATH;
    int fd = open_tree(dirfd, path, flags);
    if (fd < 0)
        return error_sys(err, "cloning the mount of %s", path[0] == '\0' ? "a layer" : path);
    *ret_fd = fd;
    return 0;
}

static int map_tree(int fd, int userns, uint64_t attributes, struct error *err)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_IDMAP | attributes,
        .propagation = MS_PRIVATE,
        .userns_fd = (uint64_t)userns,
    };
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return error_sys(err, "mapping the ids of a mount");
    return 0;
}

static int make_trees(const struct layers_request *request, struct trees *trees, struct error *err)
{
    const struct {
        int dirfd;
        const char *path;
        uint64_t attributes;
    } rows[TREES] = {
        [TREE_ROOT] = {request->image->root, "", MOUNT_ATTR_RDONLY},
        [TREE_USR] = {request->image->usr, "", MOUNT_ATTR_RDONLY},
        [TREE_MASK] = {request->image->mask, "", MOUNT_ATTR_RDONLY},
        [TREE_VOLUME] = {request->volume, request->id, 0},
    };
    for (int i = 0; i < TREES; i++)
        if (clone_tree(rows[i].dirfd, rows[i].path, &trees->fds[i], err) < 0 ||
            map_tree(trees->fds[i], request->userns, rows[i].attributes, err) < 0)
            return -1;
    return 0;
}

/* tmpfs can be idmapped since Linux 6.3. Before, the nodes of /dev show no owner; they are for
 * everybody anyway. */
static int make_dev(const struct stage *stage, int userns, int *ret_fd, struct error *err)
{
    const uint64_t attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    _cleanup_fd_ int fd = -1;
    if (clone_tree(stage->fd, "dev", &fd, err) < 0)
        return -1;
    if (map_tree(fd, userns, attributes, err) < 0) {
        struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
        if (err->sys != EINVAL ||
            mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
            return -1;
    }
    *ret_fd = steal_fd(&fd);
    return 0;
}

static int make_sys(const struct stage *stage, int *ret_fd, struct error *err)
{
    struct mount_attr attr = {.propagation = MS_PRIVATE};
    if (clone_tree(stage->fd, "sys", ret_fd, err) < 0)
        return -1;
    if (mount_setattr(*ret_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(err, "keeping the mount of /sys to itself");
    return 0;
}

struct overlay {
    const char *name;
    int lowers[2]; /* top first; -1: none */
    int upper, work;
    bool read_only;
};

/* Layers go in by the names that /proc gives to fds: understood by every kernel, and nothing of
 * the machine's paths shows in the sandbox's mount table. */
static int set_layer(int context, const char *key, const int *fds, size_t count, struct error *err)
{
    char value[96];
    size_t len = 0;
    for (size_t i = 0; i < count && fds[i] >= 0; i++)
        len += (size_t)snprintf(value + len, sizeof(value) - len, "%s/proc/self/fd/%d",
                                i == 0 ? "" : ":", fds[i]);
    if (fsconfig(context, FSCONFIG_SET_STRING, key, value, 0) < 0)
        return error_sys(err, "setting an overlay's %s", key);
    return 0;
}

static int mount_overlay(const struct overlay *overlay, int *ret_fd, struct error *err)
{
    _cleanup_fd_ int context = fsopen("overlay", FSOPEN_CLOEXEC);
    if (context < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "opening overlayfs");
    if (fsconfig(context, FSCONFIG_SET_STRING, "source", overlay->name, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "redirect_dir", "on", 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "metacopy", "on", 0) < 0)
        return error_sys(err, "setting an overlay up");
    if (set_layer(context, "lowerdir", overlay->lowers, 2, err) < 0 ||
        set_layer(context, "upperdir", &overlay->upper, 1, err) < 0 ||
        set_layer(context, "workdir", &overlay->work, 1, err) < 0)
        return -1;
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return error_sys(err, "making the overlay %s", overlay->name);
    unsigned attributes = MOUNT_ATTR_NODEV | (overlay->read_only ? MOUNT_ATTR_RDONLY : 0);
    int fd = fsmount(context, FSMOUNT_CLOEXEC, attributes);
    if (fd < 0)
        return error_sys(err, "mounting the overlay %s", overlay->name);
    *ret_fd = fd;
    return 0;
}

static int open_in(int tree, const char *path, int *ret_fd, struct error *err)
{
    int fd = openat(tree, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "opening %s", path);
    *ret_fd = fd;
    return 0;
}

static int make_overlays(const struct trees *trees, bool read_only, struct layers *layers,
                         struct error *err)
{
    const struct {
        const char *name, *upper, *work;
        int lowers[2];
        int *ret_fd;
    } rows[] = {
        {"root", "root/upper", "root/work", {trees->fds[TREE_ROOT], -1}, &layers->root},
        {"usr",
         "usr/upper",
         "usr/work",
         {trees->fds[TREE_MASK], trees->fds[TREE_USR]},
         &layers->usr},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_fd_ int upper = -1, work = -1;
        if (open_in(trees->fds[TREE_VOLUME], rows[i].upper, &upper, err) < 0 ||
            open_in(trees->fds[TREE_VOLUME], rows[i].work, &work, err) < 0)
            return -1;
        struct overlay overlay = {.name = rows[i].name,
                                  .lowers = {rows[i].lowers[0], rows[i].lowers[1]},
                                  .upper = upper,
                                  .work = work,
                                  .read_only = read_only};
        if (mount_overlay(&overlay, rows[i].ret_fd, err) < 0)
            return -1;
    }
    return 0;
}

static int overlays_as(uid_t base, const struct trees *trees, bool read_only, struct layers *layers,
                       struct error *err)
{
    struct creds creds;
    if (creds_enter_fs(&creds, base, err) < 0)
        return -1;
    int r = make_overlays(trees, read_only, layers, err);
    creds_leave_fs(&creds);
    return r;
}

static int overlays_attached(const struct stage *stage, uid_t base, const struct trees *trees,
                             bool read_only, struct layers *layers, struct error *err)
{
    int attached = 0, r = 0;
    while (r == 0 && attached < TREES) {
        r = stage_attach(stage, attached, trees->fds[attached], err);
        attached += r == 0;
    }
    if (r == 0)
        r = overlays_as(base, trees, read_only, layers, err);
    while (attached > 0)
        stage_detach(stage, --attached);
    return r;
}

int layers_make(struct stage *stage, const struct layers_request *request,
                struct layers *ret_layers, struct error *err)
{
    _cleanup_(trees_release) struct trees trees = {{-1, -1, -1, -1}};
    _cleanup_(layers_release) struct layers layers = LAYERS_INIT;
    if (make_trees(request, &trees, err) < 0 ||
        make_dev(stage, request->userns, &layers.dev, err) < 0 ||
        make_sys(stage, &layers.sys, err) < 0)
        return -1;
    int r = -1;
    if (!stage->attach_layers) {
        r = overlays_as(request->base, &trees, request->read_only, &layers, err);
        stage->attach_layers = r < 0 && err->sys == EINVAL;
    }
    if (stage->attach_layers)
        r = overlays_attached(stage, request->base, &trees, request->read_only, &layers, err);
    if (r < 0)
        return -1;
    *ret_layers = layers;
    layers = (struct layers)LAYERS_INIT;
    return 0;
}

void layers_release(struct layers *layers)
{
    cleanup_fd(&layers->root);
    cleanup_fd(&layers->usr);
    cleanup_fd(&layers->dev);
    cleanup_fd(&layers->sys);
    *layers = (struct layers)LAYERS_INIT;
}
