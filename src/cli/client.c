/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command line as an HTTP client. The one thing that it adds to http/client.h is people: a
 * refused connection becomes a sentence that says how to start a server, a missing key one that
 * says where it was looked for.
 */

#include "cli/client.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "base/limits.h"
#include "cli/local_server.h"
#include "http/client.h"
#include "http/tls.h"
#include "http/websocket.h"

enum { ANSWER_MAX = 128 << 20, HEADERS_MAX = 8 };

struct client {
    struct loop *loop;
    const struct settings *settings;
    struct http_client *http;
    struct tls_context *tls;
    struct arena *arena;
    char authorization[KEY_MAX + 16];
    bool spoke; /* an answer has come: whatever fails now, there is a server */
};

/* The authority in the data folder is believed as well: a server of this machine made it. */
static int use_tls(struct client *client, struct error *err)
{
    const struct settings *settings = client->settings;
    _cleanup_free_ char *ca = malloc(TLS_PEM_MAX);
    bool found =
        ca != NULL && settings_read(settings->data, LAYOUT_TLS_CA, ca, TLS_PEM_MAX, NULL) == 0;
    if (tls_context_client(found ? ca : NULL, &client->tls, err) < 0)
        return -1;
    return http_client_set_tls(client->http, client->tls, settings->tls_name, err);
}

int client_new(struct loop *loop, const struct settings *settings, struct client **ret_client,
               struct error *err)
{
    struct client *client = calloc(1, sizeof(*client));
    if (client == NULL)
        return error_set(err, ERROR_INTERNAL, "out of memory");
    client->loop = loop;
    client->settings = settings;
    client->arena = arena_new();
    client->http = http_client_new(loop, settings->address, settings->host, err);
    if (client->http == NULL || (settings->tls && use_tls(client, err) < 0)) {
        client_free(client);
        return -1;
    }
    client_set_key(client, settings->key);
    *ret_client = client;
    return 0;
}

void client_set_key(struct client *client, const char *key)
{
    client->authorization[0] = '\0';
    if (key[0] != '\0')
        snprintf(client->authorization, sizeof(client->authorization), "Bearer %s", key);
}

void client_free(struct client *client)
{
    if (client == NULL)
        return;
    if (client->http != NULL)
        http_client_free(client->http);
    tls_context_free(client->tls);
    arena_free(client->arena);
    free(client);
}

struct loop *client_loop(const struct client *client)
{
    return client->loop;
}

struct arena *client_arena(const struct client *client)
{
    return client->arena;
}

const struct settings *client_settings(const struct client *client)
{
    return client->settings;
}

/* --- targets --- */

void target_add(struct buf *target, const char *text, bool keep_slashes)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum(c) || strchr("-._~", c) != NULL || (keep_slashes && c == '/'))
            buf_addc(target, (char)c);
        else
            buf_addf(target, "%%%02X", c);
    }
}

void target_add_options(struct buf *target, const struct args *args, const char *const *names,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = args_option(args, names[i], NULL);
        if (value == NULL)
            continue;
        buf_addf(target, "&%s=", names[i]);
        target_add(target, value, false);
    }
}

void target_sandbox(const struct client *client, struct buf *target, const char *name,
                    const char *below)
{
    buf_adds(target, "/v0/sandbox/");
    target_add(target, name, false);
    buf_adds(target, below);
}

/* --- requests --- */

static int explain_failure(const struct client *client, struct error *err)
{
    if (client->spoke || err == NULL || err->code != ERROR_UNAVAILABLE)
        return error_prefix(err, "%s", client->settings->url);
    if (client->settings->local && err->sys != EACCES)
        return local_server_missing(client->settings->data, err);
    char why[ERROR_MESSAGE_MAX];
    snprintf(why, sizeof(why), "%s", err->message);
    return error_set(err, ERROR_UNAVAILABLE,
                     "no Cella server answers at %s: start one with `cella server` (%.200s)",
                     client->settings->url, why);
}

/* A call with the fields that every request has; `headers` holds HEADERS_MAX of them. */
static int fill_call(const struct client *client, const char *method, const struct buf *target,
                     const char *type, const char *accept, const struct http_call *rest,
                     struct http_header *headers, struct http_call *ret_call, struct error *err)
{
    struct http_call call = *rest;
    if (client->settings->no_server.code != ERROR_NONE) {
        if (err != NULL)
            *err = client->settings->no_server;
        return -1;
    }
    if (buf_check(target, "the request's target", err) < 0)
        return -1;
    call.method = method;
    call.target = target->data;
    call.headers = headers;
    for (size_t i = 0; i < rest->header_count; i++)
        headers[i] = rest->headers[i];
    headers[call.header_count++] = (struct http_header){"Accept", accept};
    if (type != NULL)
        headers[call.header_count++] = (struct http_header){"Content-Type", type};
    if (client->authorization[0] != '\0')
        headers[call.header_count++] = (struct http_header){"Authorization", client->authorization};
    if (client->settings->workspace != NULL)
        headers[call.header_count++] =
            (struct http_header){"X-Cella-Workspace", client->settings->workspace};
    *ret_call = call;
    return 0;
}

static int send_call(struct client *client, const char *method, const struct buf *target,
                     const char *type, const char *accept, const struct http_call *rest,
                     struct error *err)
{
    struct http_header headers[HEADERS_MAX];
    struct http_call call;
    if (fill_call(client, method, target, type, accept, rest, headers, &call, err) < 0)
        return -1;
    if (http_client_send(client->http, &call, err) < 0)
        return explain_failure(client, err);
    return 0;
}

/* Requests for tokens are refused in the words of RFC 6749. */
static int take_oauth_error(int status, struct slice code, struct slice description,
                            struct error *err)
{
    static const struct {
        int status;
        enum error_code code;
    } rows[] = {{401, ERROR_UNAUTHORIZED}, {429, ERROR_TOO_MANY_ATTEMPTS}};
    enum error_code known = ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            known = rows[i].code;
    return error_set(err, known, "%.100s: %.200s", code.data, description.data);
}

/* Reads the error envelope; what is none of ours is told by its status. */
static int take_error(struct client *client, int status, struct error *err)
{
    _cleanup_free_ char *body = NULL;
    size_t len = 0;
    if (http_client_read_all(client->http, ANSWER_MAX, &body, &len, err) < 0)
        return explain_failure(client, err);
    yyjson_val *root = NULL;
    struct slice code = {0}, message = {0};
    if (json_parse(client->arena, (struct slice){body, len}, &root, NULL) == 0) {
        code = client_text(root, "/error/code");
        message = client_text(root, "/error/message");
        if (client_text(root, "/error_description").len > 0)
            return take_oauth_error(status, client_text(root, "/error"),
                                    client_text(root, "/error_description"), err);
    }
    if (code.len == 0)
        return error_set(err, ERROR_INTERNAL,
                         "%s answers with status %d, but not as a Cella server does",
                         client->settings->url, status);
    enum error_code known = error_from_name(code.data);
    error_set(err, known == ERROR_NONE ? ERROR_INTERNAL : known, "%s",
              message.len > 0 ? message.data : code.data);
    if (err != NULL && err->code == ERROR_UNAUTHORIZED && client->authorization[0] == '\0')
        error_set(err, ERROR_UNAUTHORIZED,
                  "%s: set CELLA_API_KEY, give --api-key or --data, or use `cella login`",
                  client->settings->key_problem);
    return -1;
}

static int take_head(struct client *client, struct http_answer *answer, struct error *err)
{
    if (http_client_answer(client->http, answer, err) < 0)
        return explain_failure(client, err);
    client->spoke = true;
    return answer->status >= 300 ? take_error(client, answer->status, err) : 0;
}

static int take_answer(struct client *client, int64_t *ret_length, struct error *err)
{
    struct http_answer answer;
    if (take_head(client, &answer, err) < 0)
        return -1;
    if (ret_length != NULL)
        *ret_length = answer.content_length;
    return 0;
}

static int take_json(struct client *client, yyjson_val **ret_root, struct error *err)
{
    if (take_answer(client, NULL, err) < 0)
        return -1;
    _cleanup_free_ char *body = NULL;
    size_t len = 0;
    if (http_client_read_all(client->http, ANSWER_MAX, &body, &len, err) < 0)
        return explain_failure(client, err);
    /* The document points into the text, so both have to live as long. */
    char *text = arena_dup(client->arena, body, len);
    if (json_parse(client->arena, (struct slice){text, len}, ret_root, err) < 0) {
        error_prefix(err, "%s does not answer as a Cella server does", client->settings->url);
        if (err != NULL)
            err->code = ERROR_INTERNAL;
        return -1;
    }
    return 0;
}

/* Sends a request with a JSON body (NULL: none). */
static int send_json(struct client *client, const char *method, const struct buf *target,
                     yyjson_mut_doc *body, const char *accept, int64_t timeout_ms,
                     struct error *err)
{
    struct http_call call = {.timeout_ms = timeout_ms};
    _cleanup_free_ char *text = NULL;
    if (body != NULL) {
        /* Not json_write(), which mends what is no UTF-8: a command must not be changed quietly. */
        text = yyjson_mut_write(body, YYJSON_WRITE_NOFLAG, &call.body.len);
        if (text == NULL)
            return error_set(err, ERROR_INVALID_ARGUMENT, "the values given are not UTF-8");
        call.body.data = text;
        call.content_length = (int64_t)call.body.len;
    }
    return send_call(client, method, target, body == NULL ? NULL : "application/json", accept,
                     &call, err);
}

int client_json(struct client *client, const char *method, const struct buf *target,
                yyjson_mut_doc *body, int64_t timeout_ms, yyjson_val **ret_root, struct error *err)
{
    if (send_json(client, method, target, body, "application/json", timeout_ms, err) < 0)
        return -1;
    return take_json(client, ret_root, err);
}

int client_stream(struct client *client, const char *method, const struct buf *target,
                  yyjson_mut_doc *body, const char *accept, struct http_answer *ret_answer,
                  struct error *err)
{
    if (send_json(client, method, target, body, accept, 0, err) < 0)
        return -1;
    return take_head(client, ret_answer, err);
}

int client_post_bytes(struct client *client, const struct buf *target, struct slice bytes,
                      struct error *err)
{
    struct http_call call = {.body = bytes, .content_length = (int64_t)bytes.len, .timeout_ms = -1};
    yyjson_val *root;
    if (send_call(client, "POST", target, "application/octet-stream", "application/json", &call,
                  err) < 0)
        return -1;
    return take_json(client, &root, err);
}

int client_get_bytes(struct client *client, const struct buf *target, int64_t *ret_length,
                     struct error *err)
{
    struct http_call call = {0};
    if (send_call(client, "GET", target, NULL, "application/octet-stream", &call, err) < 0)
        return -1;
    return take_answer(client, ret_length, err);
}

ssize_t client_read(struct client *client, void *to, size_t len, struct error *err)
{
    ssize_t n = http_client_read(client->http, to, len, err);
    if (n < 0)
        return explain_failure(client, err);
    return n;
}

int client_put_bytes(struct client *client, const struct buf *target, int64_t length,
                     struct error *err)
{
    struct http_call call = {.content_length = length};
    return send_call(client, "PUT", target, "application/octet-stream", "application/json", &call,
                     err);
}

int client_write(struct client *client, const void *data, size_t len, struct error *err)
{
    if (http_client_write(client->http, data, len, err) == 0)
        return 0;
    /* A server that had enough answers and closes: its answer says more than the broken pipe. */
    struct error answered;
    if (take_answer(client, NULL, &answered) < 0 && client->spoke) {
        if (err != NULL)
            *err = answered;
        return -1;
    }
    return explain_failure(client, err);
}

int client_put_end(struct client *client, yyjson_val **ret_root, struct error *err)
{
    return take_json(client, ret_root, err);
}

int client_upgrade(struct client *client, const struct buf *target, const char *protocol,
                   int *ret_fd, struct slice *ret_early, struct error *err)
{
    struct http_header asked[] = {{"Connection", "Upgrade"}, {"Upgrade", protocol}};
    struct http_call call = {.headers = asked, .header_count = ARRAY_LEN(asked), .upgrade = true};
    struct http_answer answer;
    if (send_call(client, "GET", target, NULL, "application/json", &call, err) < 0)
        return -1;
    if (http_client_answer(client->http, &answer, err) < 0)
        return explain_failure(client, err);
    client->spoke = true;
    if (answer.status != 101)
        return take_error(client, answer.status, err);
    *ret_fd = http_client_detach(client->http, ret_early);
    return 0;
}

int client_websocket(struct client *client, const struct buf *target, struct websocket **ret_ws,
                     struct error *err)
{
    struct http_header headers[HEADERS_MAX];
    struct http_call call, plain = {0};
    struct http_answer answer;
    struct websocket *ws;
    if (fill_call(client, "GET", target, NULL, "application/json", &plain, headers, &call, err) < 0)
        return -1;
    if (websocket_connect(client->http, &call, NULL, &ws, &answer, err) < 0)
        return explain_failure(client, err);
    client->spoke = true;
    if (ws == NULL)
        return take_error(client, answer.status, err);
    *ret_ws = ws;
    return 0;
}

struct slice client_text(yyjson_val *root, const char *pointer)
{
    yyjson_val *value = yyjson_ptr_get(root, pointer);
    if (!yyjson_is_str(value))
        return (struct slice){"", 0};
    return (struct slice){yyjson_get_str(value), yyjson_get_len(value)};
}

yyjson_mut_doc *client_body(const struct client *client, yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = json_doc(client->arena);
    *ret_root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *ret_root);
    return doc;
}

void client_add_env(const struct client *client, const struct args *args, yyjson_mut_doc *doc,
                    yyjson_mut_val *object, const char *key)
{
    client_add_pairs(args, "env", doc, object, key);
}

void client_add_pairs(const struct args *args, const char *option, yyjson_mut_doc *doc,
                      yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *pairs = NULL;
    for (size_t i = 0; i < args->option_count; i++) {
        if (strcmp(args->options[i].row->name, option) != 0)
            continue;
        if (pairs == NULL)
            pairs = yyjson_mut_obj_add_obj(doc, object, key);
        const char *pair = args->options[i].value, *equals = strchr(pair, '=');
        /* put, not add: of two values for one name the last counts, as in env(1). */
        yyjson_mut_obj_put(pairs, yyjson_mut_strncpy(doc, pair, (size_t)(equals - pair)),
                           yyjson_mut_str(doc, equals + 1));
    }
}

int client_exact(const struct client *client, yyjson_val *object, const char *key,
                 struct slice *ret_bytes, struct error *err)
{
    char base64_key[64];
    snprintf(base64_key, sizeof(base64_key), "%sBase64", key);
    yyjson_val *base64 = yyjson_obj_get(object, base64_key);
    if (base64 == NULL) {
        yyjson_val *plain = yyjson_obj_get(object, key);
        *ret_bytes = yyjson_is_str(plain)
                         ? (struct slice){yyjson_get_str(plain), yyjson_get_len(plain)}
                         : (struct slice){"", 0};
        return 0;
    }
    struct slice text = {yyjson_get_str(base64), yyjson_get_len(base64)};
    return json_base64_decode(client->arena, text, ret_bytes, err);
}
