/* SPDX-License-Identifier: Apache-2.0 */

/* Plain directories, for those who want no volume: nothing stops a sandbox from filling the disk.
 */

#include "warden/storage.h"

#include <sys/stat.h>

#include "warden/files.h"
#include "warden/tree_copy.h"

static int create(const struct storage *storage, const char *id, bool *ret_fresh, struct error *err)
{
    if (mkdirat(storage->fd, id, 0700) < 0)
        return error_sys(err, "making the directory %s", id);
    *ret_fresh = true;
    return 0;
}

static int limit(const struct storage *storage, int dirfd, const char *name, uint64_t bytes,
                 struct error *err)
{
    return 0;
}

static int destroy(const struct storage *storage, int dirfd, const char *name, struct error *err)
{
    return tree_remove_at(dirfd, name, err);
}

static int copy(const struct storage *storage, const char *id, int dirfd, const char *name,
                const struct copy_watch *watch, struct error *err)
{
    return tree_copy(storage->fd, id, dirfd, name, watch, err);
}

const struct storage_backend storage_plain = {
    .name = "plain",
    .create = create,
    .limit = limit,
    .destroy = destroy,
    .copy = copy,
    .slow = true,
};
