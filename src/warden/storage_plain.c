/* SPDX-License-Identifier: Apache-2.0 */

/* Plain directories, for those who want no volume: nothing stops a sandbox from filling the disk.
 */

#include "warden/storage.h"

#include <sys/stat.h>

#include "warden/files.h"

static int create(const struct storage *storage, const char *id, bool *ret_fresh, struct error *err)
{
    if (mkdirat(storage->fd, id, 0700) < 0)
        return error_sys(err, "making the directory %s", id);
    *ret_fresh = true;
    return 0;
}

static int limit(const struct storage *storage, const char *id, uint64_t bytes, struct error *err)
{
    return 0;
}

static int destroy(const struct storage *storage, const char *name, struct error *err)
{
    return tree_remove_at(storage->fd, name, err);
}

const struct storage_backend storage_plain = {
    .name = "plain",
    .create = create,
    .limit = limit,
    .destroy = destroy,
    .slow = true,
};
