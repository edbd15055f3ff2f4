/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The clients have one exception for most things and look for words in its message: "not found" is
 * how files.exists() and commands.kill() find out that there is nothing. So those words are in the
 * messages of what they mean by it, and in no other.
 */

#include "api/scalebox/errors.h"

#include <string.h>

#include "api/call.h"
#include "api/connect/connect.h"
#include "base/cleanup.h"

static const enum error_code missing[] = {
    ERROR_FILE_NOT_FOUND,    ERROR_PROCESS_NOT_FOUND, ERROR_NOT_RUNNING,
    ERROR_WATCHER_NOT_FOUND, ERROR_NOT_A_DIRECTORY,   ERROR_CODE_CONTEXT_NOT_FOUND,
};

static struct error in_their_words(const struct error *why)
{
    struct error told = *why;
    for (size_t i = 0; i < ARRAY_LEN(missing); i++)
        if (missing[i] == why->code && strstr(why->message, "not found") == NULL)
            error_prefix(&told, "not found");
    return told;
}

int scalebox_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = api_json_new(http_arena(x), &root);
    const struct error told = in_their_words(why);
    int status = error_http_status(why->code);
    yyjson_mut_obj_add_bool(doc, root, "success", false);
    yyjson_mut_obj_add_int(doc, root, "code", status);
    yyjson_mut_obj_add_str(doc, root, "error", error_name(why->code));
    json_add_lossy(doc, root, "message", slice_of(told.message));
    return api_reply_json(x, status, doc, err);
}

int scalebox_box_reply_error(struct http_exchange *x, const struct error *why, struct error *err)
{
    static const char service[] = "/sandboxagent.";
    if (strncmp(http_request(x)->path, service, sizeof(service) - 1) != 0)
        return scalebox_reply_error(x, why, err);
    const struct error told = in_their_words(why);
    return connect_reply_error(x, &told, err);
}
