/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The JSON of terminals. Frames have a memory of their own each, because a session's request may
 * last for days.
 */

#include "api/v0/terminal_json.h"

#include <string.h>

#include "api/v0/env.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"

/* --- from a client --- */

struct frame {
    const char *type;
    struct slice data;
    const char *base64;
    int64_t cols, rows;
};

static const struct json_field frame_fields[] = {
    {"type", JSON_STRING, true, offsetof(struct frame, type)},
    {"data", JSON_BYTES, .offset = offsetof(struct frame, data)},
    {"dataBase64", JSON_STRING, .offset = offsetof(struct frame, base64)},
    {"cols", JSON_INT, .offset = offsetof(struct frame, cols), .min = 1, .max = TERMINAL_SIZE_MAX},
    {"rows", JSON_INT, .offset = offsetof(struct frame, rows), .min = 1, .max = TERMINAL_SIZE_MAX},
};

static const struct {
    const char *type;
    enum terminal_message_kind kind;
} message_kinds[] = {
    {"input", TERMINAL_IS_INPUT},
    {"resize", TERMINAL_IS_RESIZE},
    {"ping", TERMINAL_IS_PING},
};

static int message_kind(const char *type, enum terminal_message_kind *ret_kind, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(message_kinds); i++)
        if (strcmp(type, message_kinds[i].type) == 0) {
            *ret_kind = message_kinds[i].kind;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "type: \"%.40s\" is none of input, resize and ping", type);
}

int terminal_message_from_json(struct arena *arena, struct slice text,
                               struct terminal_message *ret_message, struct error *err)
{
    struct frame frame = {0};
    struct terminal_message message = {0};
    yyjson_val *root;
    if (json_parse(arena, text, &root, err) < 0)
        return -1;
    if (!yyjson_is_obj(root))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a frame must be a JSON object");
    if (json_read(arena, root, "", frame_fields, ARRAY_LEN(frame_fields), &frame, err) < 0 ||
        message_kind(frame.type, &message.kind, err) < 0)
        return -1;
    if (message.kind == TERMINAL_IS_INPUT && (frame.data.data == NULL) == (frame.base64 == NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "input takes exactly one of data and dataBase64");
    if (message.kind == TERMINAL_IS_RESIZE && frame.cols == 0 && frame.rows == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "resize takes cols and rows");
    message.data = frame.data;
    message.cols = (uint64_t)frame.cols;
    message.rows = (uint64_t)frame.rows;
    if (frame.base64 != NULL &&
        json_base64_decode(arena, slice_of(frame.base64), &message.data, err) < 0)
        return error_prefix(err, "dataBase64");
    *ret_message = message;
    return 0;
}

struct open_request {
    const char *session;
    const char *command;
    const char *shell;
    const char *working_dir;
    yyjson_val *env;
    const char *user;
    int64_t cols, rows;
    int64_t idle_s;
};

static const struct json_field open_fields[] = {
    {"sessionId", JSON_STRING, .offset = offsetof(struct open_request, session)},
    {"command", JSON_STRING, .offset = offsetof(struct open_request, command)},
    {"shell", JSON_STRING, .offset = offsetof(struct open_request, shell)},
    {"workingDir", JSON_STRING, .offset = offsetof(struct open_request, working_dir)},
    {"env", JSON_OBJECT, .offset = offsetof(struct open_request, env)},
    {"user", JSON_STRING, .offset = offsetof(struct open_request, user)},
    {"cols", JSON_INT, .offset = offsetof(struct open_request, cols), .min = 1,
     .max = TERMINAL_SIZE_MAX},
    {"rows", JSON_INT, .offset = offsetof(struct open_request, rows), .min = 1,
     .max = TERMINAL_SIZE_MAX},
    {"idleTimeout", JSON_INT, .offset = offsetof(struct open_request, idle_s), .min = 1,
     .max = TERMINAL_IDLE_MAX_MS / 1000},
};

int terminal_dir(struct arena *arena, const char *given, const char **ret_path, struct error *err)
{
    char *path = NULL;
    if (given != NULL) {
        if (given[0] != '/')
            return error_set(err, ERROR_INVALID_PATH, "workingDir: \"%.80s\" is not absolute",
                             given);
        path = arena_alloc(arena, PATH_BYTES_MAX + 1);
        if (path_normalize(given, strlen(given), path, err) < 0)
            return error_prefix(err, "workingDir");
    }
    *ret_path = path;
    return 0;
}

int terminal_open_from_json(struct arena *arena, yyjson_val *body,
                            struct agent_terminal_open *ret_open, struct error *err)
{
    struct open_request request = {0};
    struct agent_terminal_open open = {0};
    if (body != NULL &&
        json_read(arena, body, "", open_fields, ARRAY_LEN(open_fields), &request, err) < 0)
        return -1;
    if (terminal_dir(arena, request.working_dir, &open.cwd, err) < 0 ||
        env_from_json(arena, request.env, "env", &open.env, err) < 0)
        return -1;
    open.session = request.session;
    open.command = request.command;
    open.shell = request.shell;
    open.user = request.user;
    open.cols = (uint64_t)request.cols;
    open.rows = (uint64_t)request.rows;
    open.idle_ms = (uint64_t)request.idle_s * 1000;
    *ret_open = open;
    return 0;
}

/* --- to a client --- */

static yyjson_mut_doc *frame_new(struct arena *arena, const char *type, yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = api_json_new(arena, ret_root);
    yyjson_mut_obj_add_str(doc, *ret_root, "type", type);
    return doc;
}

struct slice terminal_session_frame(struct arena *arena, const struct agent_terminal *about,
                                    uint64_t offset)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "session", &root);
    terminal_json(arena, doc, root, about);
    yyjson_mut_obj_add_bool(doc, root, "created", about->created != 0);
    yyjson_mut_obj_add_uint(doc, root, "offset", offset);
    yyjson_mut_obj_add_uint(doc, root, "taken", about->taken);
    return json_write(arena, doc, false);
}

struct slice terminal_dropped_frame(struct arena *arena, uint64_t dropped, uint64_t offset)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "dropped", &root);
    yyjson_mut_obj_add_uint(doc, root, "dropped", dropped);
    yyjson_mut_obj_add_uint(doc, root, "offset", offset);
    return json_write(arena, doc, false);
}

struct slice terminal_taken_frame(struct arena *arena, uint64_t taken)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "taken", &root);
    yyjson_mut_obj_add_uint(doc, root, "taken", taken);
    return json_write(arena, doc, false);
}

struct slice terminal_exit_frame(struct arena *arena, const struct agent_terminal_exit *end)
{
    static const char *const reasons[] = {[TERMINAL_EXITED] = "exited",
                                          [TERMINAL_CLOSED] = "closed",
                                          [TERMINAL_IDLE] = "idle",
                                          [TERMINAL_TIMED_OUT] = "timeout"};
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "exit", &root);
    yyjson_mut_obj_add_uint(doc, root, "exitCode", end->exit_code & 0xff);
    if (end->signal != 0)
        yyjson_mut_obj_add_uint(doc, root, "signal", end->signal & 0xff);
    yyjson_mut_obj_add_str(doc, root, "reason",
                           reasons[end->reason < ARRAY_LEN(reasons) ? end->reason : 0]);
    return json_write(arena, doc, false);
}

struct slice terminal_error_frame(struct arena *arena, const struct error *why)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "error", &root);
    yyjson_mut_obj_add_str(doc, root, "code", error_name(why->code));
    json_add_lossy(doc, root, "data", slice_of(why->message));
    return json_write(arena, doc, false);
}

struct slice terminal_pong_frame(struct arena *arena)
{
    yyjson_mut_val *root;
    return json_write(arena, frame_new(arena, "pong", &root), false);
}

struct slice terminal_output_frame(struct arena *arena, struct terminal_text *text, uint64_t offset,
                                   struct slice data, bool flush)
{
    if (text->held_len == 0)
        text->offset = offset;
    size_t len = text->held_len + data.len;
    if (len == 0)
        return (struct slice){NULL, 0};
    char *all = arena_alloc(arena, len);
    memcpy(all, text->held, text->held_len);
    if (data.len > 0)
        memcpy(all + text->held_len, data.data, data.len);
    size_t keep = flush ? 0 : json_utf8_tail((struct slice){all, len});
    memcpy(text->held, all + len - keep, keep);
    text->held_len = keep;
    uint64_t begins = text->offset;
    text->offset += len - keep;
    if (len == keep)
        return (struct slice){NULL, 0};
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = frame_new(arena, "output", &root);
    api_add_text(arena, doc, root, "data", "dataBase64", (struct slice){all, len - keep});
    yyjson_mut_obj_add_uint(doc, root, "offset", begins);
    return json_write(arena, doc, false);
}

/* --- sessions --- */

void terminal_json(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *object,
                   const struct agent_terminal *terminal)
{
    json_add_lossy(doc, object, "sessionId", slice_of(terminal->session));
    yyjson_mut_obj_add_uint(doc, object, "pid", terminal->pid);
    api_add_text(arena, doc, object, "command", "commandBase64", slice_of(terminal->command));
    api_add_text(arena, doc, object, "workingDir", "workingDirBase64", slice_of(terminal->cwd));
    json_add_lossy(doc, object, "user", slice_of(terminal->user));
    yyjson_mut_obj_add_uint(doc, object, "cols", terminal->cols);
    yyjson_mut_obj_add_uint(doc, object, "rows", terminal->rows);
    api_add_http_time(doc, object, "startedAt", terminal->started_ms);
    yyjson_mut_obj_add_uint(doc, object, "attached", terminal->attached);
}
