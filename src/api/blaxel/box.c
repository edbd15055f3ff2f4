/* SPDX-License-Identifier: Apache-2.0 */

/* How a path in a URL becomes a file of the sandbox. */

#include "api/blaxel/box.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"

#define WORKING_DIR "/workspace"
#define HOME_DIR    "/root"

static bool has_encoded_slash(struct slice raw)
{
    for (size_t i = 0; i + 2 < raw.len; i++)
        if (raw.data[i] == '%' && raw.data[i + 1] == '2' && (raw.data[i + 2] | 0x20) == 'f')
            return true;
    return false;
}

/* What the path is appended to. Skips the ~ that HOME_DIR stands for. */
static const char *base_of(struct slice raw, struct slice *path, enum box_path_kind kind)
{
    bool home = path->len > 0 && path->data[0] == '~' && (path->len == 1 || path->data[1] == '/');
    if (home) {
        path->data++;
        path->len--;
        return HOME_DIR;
    }
    bool relative =
        kind == BOX_PATH_ANY && path->len > 0 && path->data[0] != '/' && !has_encoded_slash(raw);
    return relative ? WORKING_DIR : "";
}

int box_path(struct slice raw, struct slice path, enum box_path_kind kind, char *out,
             struct error *err)
{
    _cleanup_buf_ struct buf whole = BUF_INIT(PATH_BYTES_MAX + sizeof(WORKING_DIR) + 1);
    buf_adds(&whole, base_of(raw, &path, kind));
    buf_addc(&whole, '/');
    buf_add(&whole, path.data, path.len);
    if (whole.failed)
        return error_set(err, ERROR_INVALID_PATH, "the path is longer than %d bytes",
                         PATH_BYTES_MAX);
    return path_normalize(whole.data, whole.len, out, err);
}

int box_place(struct http_exchange *x, const struct route_params *params,
              const struct api_call *call, enum box_path_kind kind, struct file_place *ret_place,
              struct error *err)
{
    char *path = arena_alloc(http_arena(x), PATH_BYTES_MAX + 1);
    if (box_path(route_param_raw(params, "path"), slice_of(route_param(params, "path")), kind, path,
                 err) < 0)
        return -1;
    *ret_place = (struct file_place){
        .sandboxes = call->api->sandboxes,
        .workspace = call->workspace,
        .sandbox = route_param(params, "name"),
        .path = path,
    };
    return 0;
}
