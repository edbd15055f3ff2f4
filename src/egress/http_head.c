/* SPDX-License-Identifier: Apache-2.0 */

/* Reading requests the strict way, and writing them anew. */

#include "egress/http_head.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* Fields that end here (RFC 9110, 7.6.1), and those that would make a server believe that a proxy
 * of its own has spoken to it. */
static const char *const dropped[] = {
    "connection", "keep-alive",     "proxy-connection", "proxy-authorization", "te", "upgrade",
    "host",       "http2-settings", "trailer",
};

static bool is_token(unsigned char c)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr(others, c) != NULL);
}

static bool all_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_token((unsigned char)text.data[i]))
            return false;
    return text.len > 0;
}

static bool equals(struct slice text, const char *lower)
{
    return text.len == strlen(lower) && strncasecmp(text.data, lower, text.len) == 0;
}

/* Takes the next item of a list that is separated by commas. */
static bool next_item(struct slice *list, struct slice *ret_item)
{
    while (list->len > 0) {
        const char *comma = memchr(list->data, ',', list->len);
        size_t len = comma == NULL ? list->len : (size_t)(comma - list->data);
        *ret_item = slice_trim((struct slice){list->data, len});
        len += comma != NULL;
        *list = (struct slice){list->data + len, list->len - len};
        if (ret_item->len > 0)
            return true;
    }
    return false;
}

static bool list_has(struct slice list, const char *what)
{
    struct slice item;
    while (next_item(&list, &item))
        if (equals(item, what))
            return true;
    return false;
}

const struct http_head_field *http_head_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++)
        if (equals(head->fields[i].name, name))
            return &head->fields[i];
    return NULL;
}

/* --- the request line --- */

static int bad(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID_HTTP, "%s", what);
}

/* "http://host/path" is taken apart: the path becomes the target, and the host has to be Host's. */
static int read_absolute(struct http_head *head, struct slice *ret_authority, struct error *err)
{
    static const char scheme[] = "http://";
    size_t skip = sizeof(scheme) - 1;
    if (head->target.len <= skip || strncasecmp(head->target.data, scheme, skip) != 0)
        return bad(err, "the target of the request is neither a path nor an http:// address");
    struct slice rest = {head->target.data + skip, head->target.len - skip};
    size_t len = 0;
    while (len < rest.len && rest.data[len] != '/' && rest.data[len] != '?' &&
           rest.data[len] != '#')
        len++;
    *ret_authority = (struct slice){rest.data, len};
    head->target = (struct slice){rest.data + len, rest.len - len};
    if (head->target.len == 0)
        head->target = slice_of("/");
    if (head->target.data[0] != '/')
        return bad(err, "the target of the request has no path");
    return 0;
}

static int read_target(struct http_head *head, struct slice *ret_authority, struct error *err)
{
    for (size_t i = 0; i < head->target.len; i++) {
        unsigned char c = (unsigned char)head->target.data[i];
        if (c <= ' ' || c == 0x7f)
            return bad(err, "the target of the request holds a control character");
    }
    if (head->target.len == 0)
        return bad(err, "the request has no target");
    if (head->target.data[0] == '/' ||
        (equals(head->target, "*") && equals(head->method, "options")))
        return 0;
    return read_absolute(head, ret_authority, err);
}

static int read_request_line(struct http_head *head, struct slice line, struct slice *ret_authority,
                             struct error *err)
{
    const char *end = line.data + line.len;
    const char *first = memchr(line.data, ' ', line.len);
    const char *last = memrchr(line.data, ' ', line.len);
    if (first == NULL || first == last)
        return bad(err, "this is no HTTP request");
    head->method = (struct slice){line.data, (size_t)(first - line.data)};
    head->target = (struct slice){first + 1, (size_t)(last - first - 1)};
    const struct slice version = {last + 1, (size_t)(end - last - 1)};
    if (!all_token(head->method))
        return bad(err, "this is no HTTP request");
    if (version.len != 8 || memcmp(version.data, "HTTP/", 5) != 0)
        return bad(err, "this is no HTTP request");
    if (memcmp(version.data, "HTTP/1.", 7) != 0 ||
        (version.data[7] != '0' && version.data[7] != '1'))
        return error_set(err, ERROR_HTTP_VERSION, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    head->minor = (unsigned)(version.data[7] - '0');
    if (equals(head->method, "connect"))
        return error_set(err, ERROR_METHOD_NOT_ALLOWED,
                         "CONNECT is not allowed: this is no tunnel");
    return read_target(head, ret_authority, err);
}

/* --- fields --- */

static int read_field(struct http_head *head, struct slice line, struct error *err)
{
    const char *colon = memchr(line.data, ':', line.len);
    if (head->count == HTTP_HEAD_FIELDS_MAX)
        return error_set(err, ERROR_HEADERS_TOO_LARGE, "the request has more than %d fields",
                         HTTP_HEAD_FIELDS_MAX);
    if (colon == NULL)
        return bad(err, "a field of the request has no colon");
    const struct slice name = {line.data, (size_t)(colon - line.data)};
    const struct slice value = {colon + 1, line.len - name.len - 1};
    if (!all_token(name)) /* a folded line begins with a blank */
        return bad(err, "the name of a field of the request makes no sense");
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return bad(err, "a field of the request holds a control character");
    }
    head->fields[head->count++] = (struct http_head_field){name, slice_trim(value)};
    return 0;
}

static int read_length(struct http_head *head, struct slice text, struct error *err)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || i >= 18)
            return bad(err, "the Content-Length of the request makes no sense");
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (text.len == 0)
        return bad(err, "the Content-Length of the request makes no sense");
    head->body = HTTP_BODY_LENGTH;
    head->length = value;
    return 0;
}

static int read_transfer_encoding(struct http_head *head, struct slice value, struct error *err)
{
    if (!equals(value, "chunked") || head->minor == 0)
        return bad(err, "the only Transfer-Encoding of requests here is HTTP/1.1's chunked");
    head->body = HTTP_BODY_CHUNKED;
    return 0;
}

static int read_framing(struct http_head *head, struct error *err)
{
    unsigned framings = 0;
    for (size_t i = 0; i < head->count; i++) {
        const struct http_head_field *f = &head->fields[i];
        bool length = equals(f->name, "content-length");
        if (!length && !equals(f->name, "transfer-encoding"))
            continue;
        if (++framings > 1)
            return bad(err, "the request says twice where its body ends");
        if ((length ? read_length(head, f->value, err)
                    : read_transfer_encoding(head, f->value, err)) != 0)
            return -1;
    }
    return 0;
}

static int read_host(struct http_head *head, struct slice authority, struct error *err)
{
    unsigned hosts = 0;
    for (size_t i = 0; i < head->count; i++)
        if (equals(head->fields[i].name, "host")) {
            head->host = head->fields[i].value;
            hosts++;
        }
    if (hosts != 1 || head->host.len == 0)
        return bad(err,
                   hosts > 1 ? "the request has more than one Host" : "the request has no Host");
    if (authority.data != NULL &&
        (authority.len != head->host.len ||
         strncasecmp(authority.data, head->host.data, authority.len) != 0))
        return bad(err, "the target of the request names another host than Host does");
    return 0;
}

static void read_connection(struct http_head *head)
{
    bool upgrade = false;
    head->close = head->minor == 0;
    for (size_t i = 0; i < head->count; i++) {
        const struct http_head_field *f = &head->fields[i];
        if (!equals(f->name, "connection"))
            continue;
        head->close = head->close || list_has(f->value, "close");
        upgrade = upgrade || list_has(f->value, "upgrade");
    }
    const struct http_head_field *to = http_head_field(head, "upgrade");
    head->websocket = upgrade && to != NULL && equals(to->value, "websocket") &&
                      equals(head->method, "get") && head->minor == 1 &&
                      head->body == HTTP_BODY_NONE;
}

/* --- the whole --- */

/* The end of the head, behind its empty line; 0: not there yet. */
static size_t find_end(struct slice bytes, size_t looked)
{
    size_t from = looked > 3 ? looked - 3 : 0;
    const char *end = memmem(bytes.data + from, bytes.len - from, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - bytes.data) + 4;
}

/* A line without its CR LF. CR and LF stand nowhere else. */
static int next_line(struct slice *rest, struct slice *ret_line, struct error *err)
{
    const char *end = memmem(rest->data, rest->len, "\r\n", 2);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    *ret_line = (struct slice){rest->data, len};
    *rest = (struct slice){rest->data + len + 2, rest->len - len - 2};
    if (memchr(ret_line->data, '\n', len) != NULL || memchr(ret_line->data, '\r', len) != NULL)
        return bad(err, "a line of the request ends in something else than CR LF");
    return 0;
}

static int read_lines(struct http_head *head, struct slice bytes, struct error *err)
{
    struct slice rest = bytes, line, authority = {0};
    if (next_line(&rest, &line, err) != 0 || read_request_line(head, line, &authority, err) != 0)
        return -1;
    for (;;) {
        if (next_line(&rest, &line, err) != 0)
            return -1;
        if (line.len == 0)
            break;
        if (read_field(head, line, err) != 0)
            return -1;
    }
    if (read_framing(head, err) != 0 || read_host(head, authority, err) != 0)
        return -1;
    read_connection(head);
    return 0;
}

/* What can be told from the first bytes: another protocol would wait for an answer for ever. */
static bool looks_like_http(struct slice bytes)
{
    size_t len = bytes.len < 32 ? bytes.len : 32;
    for (size_t i = 0; i < len; i++) {
        if (bytes.data[i] == ' ')
            return i > 0;
        if (!is_token((unsigned char)bytes.data[i]))
            return false;
    }
    return len < 32;
}

enum http_head_state http_head_read(struct slice bytes, size_t looked, struct http_head *ret_head,
                                    struct error *err)
{
    if (!looks_like_http(bytes)) {
        bad(err, "this is no HTTP request");
        return HTTP_HEAD_REFUSED;
    }
    size_t size = find_end(bytes, looked < bytes.len ? looked : 0);
    if (size > HTTP_HEAD_MAX || (size == 0 && bytes.len >= HTTP_HEAD_MAX)) {
        error_set(err, ERROR_HEADERS_TOO_LARGE, "the head of the request is larger than %d bytes",
                  HTTP_HEAD_MAX);
        return HTTP_HEAD_REFUSED;
    }
    if (size == 0)
        return HTTP_HEAD_MORE;
    ret_head->size = size;
    ret_head->count = 0;
    ret_head->host = (struct slice){0};
    ret_head->body = HTTP_BODY_NONE;
    ret_head->length = 0;
    ret_head->close = ret_head->websocket = false;
    return read_lines(ret_head, (struct slice){bytes.data, size}, err) == 0 ? HTTP_HEAD_DONE
                                                                            : HTTP_HEAD_REFUSED;
}

/* --- writing --- */

/* Whether the client's Connection names the field: then it was for us alone. Fields that say where
 * the body ends are for everybody. */
static bool named_by_connection(const struct http_head *head, struct slice name)
{
    if (equals(name, "content-length") || equals(name, "transfer-encoding"))
        return false;
    for (size_t i = 0; i < head->count; i++) {
        struct slice list = head->fields[i].value, item;
        if (!equals(head->fields[i].name, "connection"))
            continue;
        while (next_item(&list, &item))
            if (item.len == name.len && strncasecmp(item.data, name.data, name.len) == 0)
                return true;
    }
    return false;
}

static bool is_dropped(const struct http_head *head, struct slice name,
                       const struct http_head_changes *changes)
{
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        if (equals(name, dropped[i]))
            return true;
    return (changes->set_name != NULL && name.len == strlen(changes->set_name) &&
            strncasecmp(name.data, changes->set_name, name.len) == 0) ||
           named_by_connection(head, name);
}

static void add_field(struct buf *out, struct slice name, struct slice value)
{
    buf_add(out, name.data, name.len);
    buf_adds(out, ": ");
    buf_add(out, value.data, value.len);
    buf_adds(out, "\r\n");
}

void http_head_write(struct buf *out, const struct http_head *head,
                     const struct http_head_changes *changes)
{
    buf_add(out, head->method.data, head->method.len);
    buf_addc(out, ' ');
    buf_add(out, head->target.data, head->target.len);
    buf_addf(out, " HTTP/1.%u\r\n", head->minor);
    add_field(out, slice_of("Host"), slice_of(changes->host));
    for (size_t i = 0; i < head->count; i++)
        if (!is_dropped(head, head->fields[i].name, changes))
            add_field(out, head->fields[i].name, head->fields[i].value);
    if (changes->set_name != NULL)
        add_field(out, slice_of(changes->set_name), slice_of(changes->set_value));
    if (changes->upgrade && head->websocket)
        buf_adds(out, "Upgrade: websocket\r\nConnection: Upgrade\r\n");
    else if (head->close)
        buf_adds(out, "Connection: close\r\n");
    buf_adds(out, "\r\n");
}

unsigned http_answer_status(struct slice bytes)
{
    const char *at = bytes.data;
    if (bytes.len < 13 || memcmp(at, "HTTP/1.", 7) != 0 || at[8] != ' ')
        return 0;
    unsigned status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (at[i] < '0' || at[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(at[i] - '0');
    }
    return at[12] == ' ' || at[12] == '\r' ? status : 0;
}
