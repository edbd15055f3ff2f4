/* SPDX-License-Identifier: Apache-2.0 */

/* Watching: one request, then events until somebody hangs up. */

#include "sandbox/file_watch.h"

#include "base/cleanup.h"
#include "sandbox/transfer.h"

int file_watch_begin(struct sandboxes *s, const char *workspace, const char *name, const char *path,
                     bool recursive, struct slice ignore, struct file_transfer **ret_watch,
                     struct error *err)
{
    _cleanup_transfer_ struct file_transfer *t = NULL;
    struct file_watch request = {path, recursive, ignore};
    struct frame_header header;
    struct slice payload;
    if (transfer_open(s, workspace, name, &t, err) < 0 ||
        transfer_send(t, &file_watch_schema, &request, err) < 0 ||
        transfer_next(t, 0, &header, &payload, err) < 0)
        return -1;
    if (header.type != WIRE_OK)
        return transfer_unexpected(header.type, err);
    *ret_watch = steal_ptr(t);
    return 0;
}

int file_watch_next(struct file_transfer *watch, int64_t timeout_ms, struct file_event *ret_event,
                    struct error *err)
{
    struct frame_header header;
    struct slice payload;
    if (transfer_next(watch, timeout_ms, &header, &payload, err) < 0)
        return -1;
    if (header.type != FILE_EVENT)
        return transfer_unexpected(header.type, err);
    return wire_decode(&file_event_schema, payload, ret_event, err);
}

const char *file_op_text(uint64_t op)
{
    static const char *const texts[] = {
        [OP_CREATE] = "CREATE", [OP_WRITE] = "WRITE", [OP_REMOVE] = "REMOVE",
        [OP_RENAME] = "RENAME", [OP_CHMOD] = "CHMOD", [OP_OVERFLOW] = "OVERFLOW",
    };
    return op < ARRAY_LEN(texts) ? texts[op] : "OVERFLOW";
}
