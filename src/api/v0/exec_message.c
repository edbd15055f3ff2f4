/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The messages of …/exec/ws. A row of `asks` says what a type is called and how it is read; a
 * start is read by the table that POST /process has, so that a command is the same everywhere.
 */

#include "api/v0/exec_message.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "api/v0/process_json.h"
#include "base/cleanup.h"
#include "sandbox/terminals.h"

enum { GRACE_MAX_S = 3600 };

static const char *const stream_names[] = {"stdout", "stderr"};

/* --- where a stream is --- */

void exec_place_text(const struct exec_place *place, char out[EXEC_PLACE_TEXT])
{
    int used = snprintf(out, EXEC_PLACE_TEXT, "%" PRIu64, place->offset);
    if (place->held_len[0] == 0 && place->held_len[1] == 0)
        return;
    for (unsigned stream = 0; stream < 2; stream++) {
        used += snprintf(out + used, EXEC_PLACE_TEXT - (size_t)used, ":");
        for (unsigned i = 0; i < place->held_len[stream]; i++)
            used += snprintf(out + used, EXEC_PLACE_TEXT - (size_t)used, "%02x",
                             (unsigned char)place->held[stream][i]);
    }
}

/* The digits of what is held, up to `end`. False: they are none. */
static bool parse_held(const char **at, char end, char held[3], unsigned char *ret_len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned len = 0;
    while (**at != end) {
        const char *high = **at == '\0' ? NULL : strchr(digits, (*at)[0]);
        const char *low = high == NULL || (*at)[1] == '\0' ? NULL : strchr(digits, (*at)[1]);
        if (low == NULL || len == 3)
            return false;
        held[len++] = (char)((high - digits) << 4 | (low - digits));
        *at += 2;
    }
    *ret_len = (unsigned char)len;
    return true;
}

static bool parse_place(const char *text, struct exec_place *place)
{
    char number[21] = "";
    size_t len = strcspn(text, ":");
    if (len >= sizeof(number))
        return false;
    memcpy(number, text, len);
    if (!api_parse_uint(number, 0, INT64_MAX, &place->offset))
        return false;
    if (text[len] == '\0')
        return true;
    const char *at = text + len + 1;
    if (!parse_held(&at, ':', place->held[0], &place->held_len[0]))
        return false;
    at++;
    return parse_held(&at, '\0', place->held[1], &place->held_len[1]);
}

int exec_place_parse(const char *text, struct exec_place *ret_place, struct error *err)
{
    struct exec_place place = {0};
    if (!parse_place(text, &place))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "resume: \"%.40s\" is not as a message of this stream said it", text);
    *ret_place = place;
    return 0;
}

/* --- from a client --- */

struct request {
    const char *type;
    const char *id;
    const char *process;
    int64_t offset;
    const char *resume;
    bool hold;
    const char *encoding;
    struct slice data;
    const char *base64;
    bool end;
    const char *signal;
    int64_t grace_s;
};

static const struct json_field request_fields[] = {
    {"type", JSON_STRING, true, offsetof(struct request, type)},
    {"id", JSON_STRING, .offset = offsetof(struct request, id)},
    {"process", JSON_SCALAR_TEXT, .offset = offsetof(struct request, process)},
    {"offset", JSON_INT, .offset = offsetof(struct request, offset), .max = INT64_MAX},
    {"resume", JSON_STRING, .offset = offsetof(struct request, resume)},
    {"hold", JSON_BOOL, .offset = offsetof(struct request, hold)},
    {"encoding", JSON_STRING, .offset = offsetof(struct request, encoding)},
    {"data", JSON_BYTES, .offset = offsetof(struct request, data)},
    {"dataBase64", JSON_STRING, .offset = offsetof(struct request, base64)},
    {"end", JSON_BOOL, .offset = offsetof(struct request, end)},
    {"signal", JSON_SCALAR_TEXT, .offset = offsetof(struct request, signal)},
    {"grace", JSON_INT, .offset = offsetof(struct request, grace_s), .max = GRACE_MAX_S},
    {"cols", JSON_IGNORED},
    {"rows", JSON_IGNORED},
};

static int read_encoding(const char *given, bool *ret_base64, struct error *err)
{
    bool base64 = given != NULL && strcmp(given, "base64") == 0;
    if (given != NULL && !base64 && strcmp(given, "utf8") != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "encoding: \"%.40s\" is neither utf8 nor base64", given);
    *ret_base64 = base64;
    return 0;
}

static int read_attach(struct arena *arena, const struct request *request,
                       struct exec_ask_message *m, struct error *err)
{
    if (request->process == NULL || request->process[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "attach: process is required, a pid or a name");
    m->process = request->process;
    m->hold = request->hold;
    m->from.offset = (uint64_t)request->offset;
    if (request->resume != NULL && exec_place_parse(request->resume, &m->from, err) < 0)
        return -1;
    return read_encoding(request->encoding, &m->base64, err);
}

static int read_stdin(struct arena *arena, const struct request *request,
                      struct exec_ask_message *m, struct error *err)
{
    bool plain = request->data.data != NULL, base64 = request->base64 != NULL;
    if ((plain && base64) || (!plain && !base64 && !request->end))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "stdin takes one of data and dataBase64, or \"end\": true, or both");
    m->data = request->data;
    m->end = request->end;
    if (base64 && json_base64_decode(arena, slice_of(request->base64), &m->data, err) < 0)
        return error_prefix(err, "dataBase64");
    if (m->data.len > EXEC_INPUT_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "stdin takes at most %d bytes at a time",
                         EXEC_INPUT_MAX);
    return 0;
}

static int read_signal(struct arena *arena, const struct request *request,
                       struct exec_ask_message *m, struct error *err)
{
    static const struct {
        const char *name;
        int signal;
    } rows[] = {{"SIGHUP", SIGHUP},     {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},
                {"SIGKILL", SIGKILL},   {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2},
                {"SIGALRM", SIGALRM},   {"SIGTERM", SIGTERM}, {"SIGCONT", SIGCONT},
                {"SIGWINCH", SIGWINCH}, {"SIGTSTP", SIGTSTP}};
    const char *given = request->signal == NULL ? "" : request->signal;
    uint64_t number = 0;
    bool numeric = api_parse_uint(given, 1, 64, &number);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcasecmp(given, rows[i].name) == 0 || strcasecmp(given, rows[i].name + 3) == 0 ||
            (numeric && (int)number == rows[i].signal)) {
            m->signal = rows[i].signal;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "signal: \"%.40s\" is none of SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, "
                     "SIGUSR2, SIGALRM, SIGTERM, SIGCONT, SIGWINCH and SIGTSTP",
                     given);
}

static int read_resize(struct arena *arena, const struct request *request,
                       struct exec_ask_message *m, struct error *err)
{
    return error_set(
        err, ERROR_INVALID_ARGUMENT,
        "resize: commands of this connection have no terminal; \xe2\x80\xa6/terminal/ws "
        "gives them one");
}

static int read_cancel(struct arena *arena, const struct request *request,
                       struct exec_ask_message *m, struct error *err)
{
    m->grace_ms = (uint64_t)request->grace_s * 1000;
    return 0;
}

static const struct {
    const char *type;
    enum exec_ask ask;
    int (*read)(struct arena *arena, const struct request *request, struct exec_ask_message *m,
                struct error *err); /* NULL: there is nothing more in it */
} asks[] = {
    {"start", EXEC_ASK_START, NULL},          {"attach", EXEC_ASK_ATTACH, read_attach},
    {"stdin", EXEC_ASK_STDIN, read_stdin},    {"signal", EXEC_ASK_SIGNAL, read_signal},
    {"resize", EXEC_ASK_RESIZE, read_resize}, {"cancel", EXEC_ASK_CANCEL, read_cancel},
    {"detach", EXEC_ASK_DETACH, NULL},        {"ping", EXEC_ASK_PING, NULL},
};

static int check_id(yyjson_val *root, enum exec_ask ask, const char **ret_id, struct error *err)
{
    yyjson_val *given = yyjson_obj_get(root, "id");
    const char *id = yyjson_get_str(given);
    if (ask == EXEC_ASK_PING)
        return 0;
    if (id == NULL || strlen(id) != yyjson_get_len(given) || terminal_session_check(id, NULL) < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "id: 1 to %d letters, digits, '.', '_' and '-', which name the stream",
                         TERMINAL_SESSION_MAX);
    *ret_id = id;
    return 0;
}

static int read_start(struct arena *arena, yyjson_val *root, struct exec_ask_message *m,
                      struct error *err)
{
    struct process_request request;
    yyjson_val *encoding = yyjson_obj_get(root, "encoding"), *tty = yyjson_obj_get(root, "tty");
    if (encoding != NULL && !yyjson_is_null(encoding) && !yyjson_is_str(encoding))
        return error_set(err, ERROR_INVALID_ARGUMENT, "encoding: must be a string");
    if (tty != NULL && !yyjson_is_null(tty) && !yyjson_is_false(tty))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "tty: can only be false here; \xe2\x80\xa6/terminal/ws gives a command a "
                         "terminal");
    if (read_encoding(yyjson_get_str(encoding), &m->base64, err) < 0 ||
        process_exec_from_message(arena, root, &request, err) < 0)
        return -1;
    if (request.port_count > 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "waitForPorts: here nothing waits; the output says when it is there");
    m->exec = request.exec;
    m->exec.flags &= ~(uint64_t)EXEC_WAIT;
    if (m->exec.stdin_data.len > 0)
        m->exec.flags |= EXEC_STDIN_ONCE;
    return 0;
}

static int read_other(struct arena *arena, yyjson_val *root, size_t row, struct exec_ask_message *m,
                      struct error *err)
{
    struct request request = {0};
    if (json_read(arena, root, "", request_fields, ARRAY_LEN(request_fields), &request, err) < 0)
        return -1;
    return asks[row].read == NULL ? 0 : asks[row].read(arena, &request, m, err);
}

static int find_type(yyjson_val *root, size_t *ret_row, struct error *err)
{
    const char *type = yyjson_get_str(yyjson_obj_get(root, "type"));
    for (size_t i = 0; type != NULL && i < ARRAY_LEN(asks); i++)
        if (strcmp(type, asks[i].type) == 0) {
            *ret_row = i;
            return 0;
        }
    return error_set(err, ERROR_INVALID_ARGUMENT,
                     "type: \"%.40s\" is none of start, attach, stdin, signal, resize, cancel, "
                     "detach and ping",
                     type == NULL ? "" : type);
}

int exec_message_read(struct arena *arena, struct slice text, struct exec_ask_message *ret_message,
                      const char **ret_id, struct error *err)
{
    struct exec_ask_message m = {0};
    yyjson_val *root;
    size_t row = 0;
    *ret_id = NULL;
    if (json_parse(arena, text, &root, err) < 0)
        return -1;
    if (!yyjson_is_obj(root))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a message must be a JSON object");
    if (find_type(root, &row, err) < 0 || check_id(root, asks[row].ask, &m.id, err) < 0)
        return -1;
    m.ask = asks[row].ask;
    *ret_id = m.id;
    int rc = m.ask == EXEC_ASK_START ? read_start(arena, root, &m, err)
                                     : read_other(arena, root, row, &m, err);
    if (rc == 0)
        *ret_message = m;
    return rc;
}

/* --- to a client --- */

static yyjson_mut_doc *message_new(struct arena *arena, const char *type, const char *id,
                                   yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = api_json_new(arena, ret_root);
    yyjson_mut_obj_add_str(doc, *ret_root, "type", type);
    if (id != NULL)
        yyjson_mut_obj_add_str(doc, *ret_root, "id", id);
    return doc;
}

static struct slice with_place(struct arena *arena, yyjson_mut_doc *doc, yyjson_mut_val *root,
                               const struct exec_place *place)
{
    char text[EXEC_PLACE_TEXT];
    exec_place_text(place, text);
    yyjson_mut_obj_add_uint(doc, root, "offset", place->offset);
    yyjson_mut_obj_add_str(doc, root, "resume", text);
    return json_write(arena, doc, false);
}

struct slice exec_ready_message(struct arena *arena, const char *sandbox)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "ready", NULL, &root);
    yyjson_mut_obj_add_str(doc, root, "sandbox", sandbox);
    yyjson_mut_obj_add_uint(doc, root, "streamsMax", EXEC_STREAMS_MAX);
    yyjson_mut_obj_add_uint(doc, root, "messageMax", WEBSOCKET_MESSAGE_MAX);
    yyjson_mut_obj_add_uint(doc, root, "stdinMax", EXEC_INPUT_MAX);
    return json_write(arena, doc, false);
}

struct slice exec_started_message(struct arena *arena, const char *id, bool attached,
                                  const struct agent_process *process,
                                  const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, attached ? "attached" : "started", id, &root);
    process_json(arena, doc, root, process);
    return with_place(arena, doc, root, place);
}

struct slice exec_output_message(struct arena *arena, const char *id, unsigned stream, bool base64,
                                 struct slice data, const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, stream_names[stream], id, &root);
    if (base64) {
        struct slice text = json_base64_encode(arena, data);
        yyjson_mut_obj_add_strn(doc, root, "dataBase64", text.data, text.len);
    } else {
        api_add_text(arena, doc, root, "data", "dataBase64", data);
    }
    return with_place(arena, doc, root, place);
}

struct slice exec_gap_message(struct arena *arena, const char *id, uint64_t bytes,
                              const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "gap", id, &root);
    yyjson_mut_obj_add_uint(doc, root, "bytes", bytes);
    return with_place(arena, doc, root, place);
}

struct slice exec_exit_message(struct arena *arena, const char *id,
                               const struct agent_process *process, const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "exit", id, &root);
    process_json(arena, doc, root, process);
    if (process->signal != 0)
        yyjson_mut_obj_add_uint(doc, root, "signal", process->signal & 0xff);
    return with_place(arena, doc, root, place);
}

struct slice exec_stdin_message(struct arena *arena, const char *id, uint64_t taken, bool ended)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "stdin", id, &root);
    yyjson_mut_obj_add_uint(doc, root, "taken", taken);
    yyjson_mut_obj_add_bool(doc, root, "ended", ended);
    return json_write(arena, doc, false);
}

struct slice exec_detached_message(struct arena *arena, const char *id,
                                   const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "detached", id, &root);
    return with_place(arena, doc, root, place);
}

struct slice exec_error_message(struct arena *arena, const char *id, const struct error *why,
                                bool ended, const struct exec_place *place)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = message_new(arena, "error", id, &root);
    yyjson_mut_obj_add_str(doc, root, "code", error_name(why->code));
    json_add_lossy(doc, root, "message", slice_of(why->message));
    yyjson_mut_obj_add_bool(doc, root, "ended", ended);
    return place != NULL ? with_place(arena, doc, root, place) : json_write(arena, doc, false);
}

struct slice exec_pong_message(struct arena *arena)
{
    yyjson_mut_val *root;
    return json_write(arena, message_new(arena, "pong", NULL, &root), false);
}

struct slice exec_text_take(struct arena *arena, struct exec_place *place, unsigned stream,
                            struct slice data, bool flush)
{
    size_t had = place->held_len[stream];
    if (had > 0) {
        char *all = arena_alloc(arena, had + data.len + 1);
        memcpy(all, place->held[stream], had);
        if (data.len > 0)
            memcpy(all + had, data.data, data.len);
        data = (struct slice){all, had + data.len};
    }
    size_t keep = flush ? 0 : json_utf8_tail(data);
    data.len -= keep;
    if (keep > 0)
        memcpy(place->held[stream], data.data + data.len, keep);
    place->held_len[stream] = (unsigned char)keep;
    return data;
}
