/* SPDX-License-Identifier: Apache-2.0 */

/* /filesystem/tree/{path}: many files at once. Paths of trees are always absolute. */

#include "api/blaxel/box.h"
#include "api/blaxel/file_json.h"
#include "api/blaxel/handlers.h"
#include "api/v0/file_stream.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"

static int reply(struct http_exchange *x, const struct file_place *place,
                 const struct file_tree *tree, struct error *err)
{
    return file_stream_tree(x, place->path, tree, &box_file_shape, NULL, err);
}

int box_tree_get(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    struct file_place place;
    struct file_tree tree;
    if (box_place(x, params, ctx, BOX_PATH_ABSOLUTE, &place, err) < 0 ||
        file_tree_of(x, &place, TREE_DEPTH_MAX, &tree, err) < 0)
        return -1;
    return reply(x, &place, &tree, err);
}

int box_tree_put(struct http_exchange *x, const struct route_params *params, void *ctx,
                 struct error *err)
{
    struct file_place place;
    struct file_tree_put *items;
    struct file_tree tree;
    size_t count;
    if (box_place(x, params, ctx, BOX_PATH_ABSOLUTE, &place, err) < 0 ||
        tree_put_read(x, &place, &items, &count, err) < 0 ||
        sandbox_tree_put(place.sandboxes, place.workspace, place.sandbox, place.path, items, count,
                         1, http_arena(x), &tree, err) < 0)
        return -1;
    return reply(x, &place, &tree, err);
}
