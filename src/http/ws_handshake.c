/* SPDX-License-Identifier: Apache-2.0 */

/* The handshakes (RFC 6455, 4): from an HTTP exchange, or a client's call, to a websocket. */

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/parse.h"
#include "http/upgrade.h"
#include "http/websocket.h"
#include "http/ws_key.h"
#include "http/ws_state.h"

/* --- server --- */

/* A field that may be there once. */
static int single(const struct http_exchange *x, const char *name, const char **ret_value,
                  struct error *err)
{
    const struct http_request *request = http_request(x);
    *ret_value = NULL;
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) != 0)
            continue;
        if (*ret_value != NULL)
            return error_set(err, ERROR_INVALID_HTTP, "two %s fields", name);
        *ret_value = request->headers[i].value;
    }
    return 0;
}

static int check_request(struct http_exchange *x, const char **ret_key, struct error *err)
{
    const char *version, *key;
    if (single(x, "Sec-WebSocket-Version", &version, err) != 0 ||
        single(x, "Sec-WebSocket-Key", &key, err) != 0)
        return -1;
    if (strcmp(http_request(x)->method, "GET") != 0 || !http_wants_upgrade(x, "websocket")) {
        http_set_header(x, "Upgrade", "websocket");
        http_set_header(x, "Connection", "Upgrade");
        return error_set(err, ERROR_UPGRADE_REQUIRED,
                         "this path speaks WebSocket: send Connection: Upgrade and Upgrade: "
                         "websocket with a GET");
    }
    if (version == NULL || strcmp(version, "13") != 0) {
        http_set_header(x, "Sec-WebSocket-Version", "13");
        return error_set(err, ERROR_UPGRADE_REQUIRED, "version 13 of WebSocket is spoken here");
    }
    if (key == NULL || !ws_key_valid(key))
        return error_set(err, ERROR_INVALID_HTTP, "Sec-WebSocket-Key has to be 16 bytes in base64");
    *ret_key = key;
    return 0;
}

/* The first of ours that the client offers too. */
static const char *choose_protocol(const struct http_exchange *x,
                                   const struct websocket_options *options)
{
    const struct http_request *request = http_request(x);
    if (options == NULL || options->protocols == NULL)
        return NULL;
    for (const char *const *ours = options->protocols; *ours != NULL; ours++)
        for (size_t i = 0; i < request->header_count; i++)
            if (strcasecmp(request->headers[i].name, "Sec-WebSocket-Protocol") == 0 &&
                http_list_has(request->headers[i].value, *ours))
                return *ours;
    return NULL;
}

int websocket_accept(struct http_exchange *x, const struct websocket_options *options,
                     struct websocket **ret_ws, struct error *err)
{
    const char *key = NULL;
    if (check_request(x, &key, err) != 0)
        return -1;
    char accept[WS_ACCEPT_SIZE];
    ws_key_accept(key, accept);
    http_set_header(x, "Sec-WebSocket-Accept", "%s", accept);
    const char *protocol = choose_protocol(x, options);
    if (protocol != NULL)
        http_set_header(x, "Sec-WebSocket-Protocol", "%s", protocol);
    int fd;
    struct slice early;
    if (http_upgrade(x, "websocket", &fd, &early, err) != 0)
        return -1;
    struct websocket *ws = websocket_new(http_loop(x), fd, false, early, options, err);
    if (ws != NULL)
        ws->message.account = http_memory(x);
    if (ws == NULL)
        return -1;
    if (protocol != NULL)
        snprintf(ws->protocol, sizeof(ws->protocol), "%s", protocol);
    *ret_ws = ws;
    return 0;
}

/* --- client --- */

static bool offered(const struct websocket_options *options, const char *protocol)
{
    if (options == NULL || options->protocols == NULL)
        return false;
    for (const char *const *ours = options->protocols; *ours != NULL; ours++)
        if (strcmp(*ours, protocol) == 0)
            return true;
    return false;
}

static int send_handshake(struct http_client *client, const struct http_call *call,
                          const struct websocket_options *options, const char *key,
                          struct error *err)
{
    enum { OWN = 5 };
    _cleanup_free_ struct http_header *headers = calloc(call->header_count + OWN, sizeof(*headers));
    if (headers == NULL)
        return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a request");
    _cleanup_buf_ struct buf protocols = BUF_INIT(1024);
    if (options != NULL && options->protocols != NULL)
        for (const char *const *p = options->protocols; *p != NULL; p++)
            buf_addf(&protocols, "%s%s", protocols.len > 0 ? ", " : "", *p);
    if (buf_check(&protocols, "the list of protocols", err) != 0)
        return -1;
    if (call->header_count > 0)
        memcpy(headers, call->headers, call->header_count * sizeof(*headers));
    size_t n = call->header_count;
    headers[n++] = (struct http_header){"Connection", "Upgrade"};
    headers[n++] = (struct http_header){"Upgrade", "websocket"};
    headers[n++] = (struct http_header){"Sec-WebSocket-Version", "13"};
    headers[n++] = (struct http_header){"Sec-WebSocket-Key", key};
    if (protocols.len > 0)
        headers[n++] = (struct http_header){"Sec-WebSocket-Protocol", protocols.data};
    struct http_call handshake = *call;
    handshake.method = "GET";
    handshake.headers = headers;
    handshake.header_count = n;
    handshake.upgrade = true;
    return http_client_send(client, &handshake, err);
}

static int check_answer(const struct http_answer *answer, const struct websocket_options *options,
                        const char *key, struct error *err)
{
    char accept[WS_ACCEPT_SIZE];
    ws_key_accept(key, accept);
    const char *upgrade = http_answer_header(answer, "Upgrade");
    const char *connection = http_answer_header(answer, "Connection");
    const char *got = http_answer_header(answer, "Sec-WebSocket-Accept");
    const char *protocol = http_answer_header(answer, "Sec-WebSocket-Protocol");
    if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0 || connection == NULL ||
        !http_list_has(connection, "upgrade") || got == NULL || strcmp(got, accept) != 0 ||
        http_answer_header(answer, "Sec-WebSocket-Extensions") != NULL ||
        (protocol != NULL && !offered(options, protocol)))
        return error_set(err, ERROR_INVALID_HTTP, "the server's WebSocket handshake is wrong");
    return 0;
}

int websocket_connect(struct http_client *client, const struct http_call *call,
                      const struct websocket_options *options, struct websocket **ret_ws,
                      struct http_answer *ret_answer, struct error *err)
{
    unsigned char random[16];
    char key[WS_KEY_SIZE];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return error_sys(err, "a WebSocket key");
    ws_key_make(random, key);
    if (send_handshake(client, call, options, key, err) != 0 ||
        http_client_answer(client, ret_answer, err) != 0)
        return -1;
    *ret_ws = NULL;
    if (ret_answer->status != 101)
        return 0;
    if (check_answer(ret_answer, options, key, err) != 0)
        return -1;
    struct slice early;
    _cleanup_fd_ int fd = http_client_detach(client, &early);
    struct websocket *ws = websocket_new(http_client_loop(client), fd, true, early, options, err);
    if (ws == NULL)
        return -1;
    steal_fd(&fd);
    const char *protocol = http_answer_header(ret_answer, "Sec-WebSocket-Protocol");
    if (protocol != NULL)
        snprintf(ws->protocol, sizeof(ws->protocol), "%s", protocol);
    *ret_ws = ws;
    return 0;
}
