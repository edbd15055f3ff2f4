/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Taking a head apart. llhttp splits it into fields; what it leaves open is decided here, always
 * the strict way, because wherever two parties can read a request differently, one request can
 * be smuggled inside another. What llhttp 8 lets through and this file does not: several spaces
 * in the request line, requests without Host or with two, Transfer-Encoding other than chunked
 * or in HTTP/1.0, targets of the wrong form, and methods that name no HTTP method.
 */

#include "http/parse.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/limits.h"

/* What the callbacks of llhttp fill in. */
struct split {
    char *url;
    size_t url_len;
    struct {
        char *name;
        char *value;
        size_t name_len;
        size_t value_len;
    } fields[HTTP_HEADER_COUNT_MAX];
    size_t count;
    bool complete;
    bool overflow;
};

static bool is_token_char(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static int invalid(struct error *err, const char *message)
{
    return error_set(err, ERROR_INVALID_HTTP, "%s", message);
}

bool http_list_has(const char *list, const char *item)
{
    size_t len = strlen(item);
    while (*list != '\0') {
        list += strspn(list, " \t,");
        size_t n = strcspn(list, ",");
        size_t trimmed = n;
        while (trimmed > 0 && (list[trimmed - 1] == ' ' || list[trimmed - 1] == '\t'))
            trimmed--;
        if (trimmed == len && strncasecmp(list, item, len) == 0)
            return true;
        list += n;
    }
    return false;
}

/* --- splitting, by llhttp --- */

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct split *split = parser->data;
    if (split->url == NULL)
        split->url = (char *)at;
    split->url_len += len;
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t len)
{
    struct split *split = parser->data;
    if (split->count == HTTP_HEADER_COUNT_MAX) {
        split->overflow = true;
        return -1;
    }
    split->fields[split->count].name = (char *)at;
    split->fields[split->count].name_len = len;
    split->fields[split->count].value = NULL;
    split->fields[split->count++].value_len = 0;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct split *split = parser->data;
    if (split->count == 0)
        return -1;
    if (split->fields[split->count - 1].value == NULL)
        split->fields[split->count - 1].value = (char *)at;
    split->fields[split->count - 1].value_len += len;
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    struct split *split = parser->data;
    split->complete = true;
    return HPE_PAUSED;
}

/* text is a copy in the arena that this writes NULs into. */
static int split_head(llhttp_t *parser, llhttp_type_t type, struct split *split, char *text,
                      size_t len, struct error *err)
{
    split->url = NULL;
    split->url_len = split->count = 0; /* the fields are many, and filled before they are read */
    split->complete = split->overflow = false;
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_field;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_complete;
    llhttp_init(parser, type, &settings);
    parser->data = split;

    llhttp_errno_t rc = llhttp_execute(parser, text, len);
    if (rc == HPE_PAUSED && split->complete) {
        /* Both must agree where the head ends, or one could hide bytes from the other. */
        if (llhttp_get_error_pos(parser) != text + len)
            return invalid(err, "the header ends too early");
        return 0;
    }
    if (split->overflow)
        return error_set(err, ERROR_HEADERS_TOO_LARGE, "too many header fields");
    const char *reason = llhttp_get_error_reason(parser);
    return invalid(err, reason == NULL || *reason == '\0' ? "malformed header" : reason);
}

/* "Name:" at the start of each line after the first. The lines' ends were checked by the scan. */
static int check_field_names(const char *text, size_t len, struct error *err)
{
    const char *end = text + len - 2; /* the empty line */
    const char *line = memchr(text, '\n', len);
    for (line++; line < end; line = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
        const char *at = line;
        while (is_token_char(*at))
            at++;
        if (at == line || *at != ':')
            return invalid(err, "a header field's name is not a token followed by a colon");
    }
    return 0;
}

/* --- the request line --- */

static int check_version(const char *version, size_t len, struct error *err)
{
    if (len != 8 || memcmp(version, "HTTP/", 5) != 0 || version[6] != '.' || version[5] < '0' ||
        version[5] > '9' || version[7] < '0' || version[7] > '9')
        return invalid(err, "malformed request line");
    if (version[5] != '1' || version[7] > '1')
        return error_set(err, ERROR_HTTP_VERSION, "HTTP/1.1 is spoken here, not %.8s", version);
    return 0;
}

/* llhttp knows RTSP's methods too. CONNECT is for proxies. */
static bool is_served_method(struct slice method)
{
#define XX(number, name, string) #string,
    static const char *const names[] = {HTTP_METHOD_MAP(XX)};
#undef XX
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq(method, slice_of(names[i])))
            return strcmp(names[i], "CONNECT") != 0;
    return false;
}

/* method SP target SP version, one space each; the target in visible ASCII, without a fragment. */
static int check_request_line(const char *text, size_t len, size_t *ret_method_len,
                              struct error *err)
{
    const char *end = (const char *)memchr(text, '\r', len);
    const char *at = text;
    while (is_token_char(*at))
        at++;
    if (at == text || *at != ' ')
        return invalid(err, "malformed request line");
    size_t method_len = (size_t)(at - text);
    const char *target = ++at;
    while (*at > 0x20 && *at < 0x7f && *at != '#')
        at++;
    if (at == target || *at != ' ')
        return invalid(err, "malformed request target");
    at++;
    if (check_version(at, (size_t)(end - at), err) != 0)
        return -1;
    if (!is_served_method((struct slice){text, method_len}))
        return error_set(err, ERROR_NOT_IMPLEMENTED, "unknown method");
    *ret_method_len = method_len;
    return 0;
}

/* --- the target --- */

static bool is_authority(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c != '\0' && strchr("-._~%!$&'()*+,;=:[]", c) != NULL);
        if (!fine)
            return false;
    }
    return true;
}

/* "http://host/path": the host in it counts, not the Host field (RFC 9112, 3.2.2). */
static int absolute_form(struct arena *arena, struct request_head *head, const char *rest,
                         struct error *err)
{
    size_t len = strcspn(rest, "/?");
    if (len == 0 || !is_authority(rest, len))
        return invalid(err, "malformed request target");
    head->request.host = arena_dup(arena, rest, len);
    rest += len;
    head->request.path = *rest == '/' ? rest : arena_printf(arena, "/%s", rest);
    return 0;
}

static int take_target(struct arena *arena, struct request_head *head, struct error *err)
{
    struct http_request *request = &head->request;
    const char *target = request->target;
    bool options = strcmp(request->method, "OPTIONS") == 0;
    if (target[0] == '/')
        request->path = target;
    else if (strncasecmp(target, "http://", 7) == 0) {
        if (absolute_form(arena, head, target + 7, err) != 0)
            return -1;
    } else if (strncasecmp(target, "https://", 8) == 0) {
        if (absolute_form(arena, head, target + 8, err) != 0)
            return -1;
    } else if (strcmp(target, "*") == 0 && options)
        request->path = target;
    else
        return invalid(err, "malformed request target");

    const char *mark = strchr(request->path, '?');
    request->query = mark == NULL ? "" : mark + 1;
    if (mark != NULL)
        request->path = arena_dup(arena, request->path, (size_t)(mark - request->path));
    return 0;
}

/* --- the fields that say how to read the message --- */

struct framing {
    bool has_length;
    bool chunked;
    int64_t length;
    bool close;
};

static int take_length(struct framing *framing, const char *value, struct error *err)
{
    if (framing->has_length)
        return invalid(err, "two Content-Length fields");
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || value[digits] != '\0' || digits > 18)
        return invalid(err, "malformed Content-Length");
    framing->has_length = true;
    for (const char *c = value; *c != '\0'; c++)
        framing->length = framing->length * 10 + (*c - '0');
    return 0;
}

static int take_encoding(struct framing *framing, const char *value, struct error *err)
{
    if (framing->chunked)
        return invalid(err, "two Transfer-Encoding fields");
    if (*value == '\0')
        return invalid(err, "malformed Transfer-Encoding");
    if (strcasecmp(value, "chunked") != 0)
        return error_set(err, ERROR_NOT_IMPLEMENTED,
                         "no Transfer-Encoding but chunked is implemented");
    framing->chunked = true;
    return 0;
}

static int take_framing(struct framing *framing, const struct http_header *headers, size_t count,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = headers[i].name, *value = headers[i].value;
        int rc = 0;
        if (strcasecmp(name, "Content-Length") == 0)
            rc = take_length(framing, value, err);
        else if (strcasecmp(name, "Transfer-Encoding") == 0)
            rc = take_encoding(framing, value, err);
        else if (strcasecmp(name, "Connection") == 0)
            framing->close |= http_list_has(value, "close");
        if (rc != 0)
            return -1;
    }
    if (framing->chunked && framing->has_length)
        return invalid(err, "both Content-Length and Transfer-Encoding");
    return 0;
}

static int take_host(struct request_head *head, struct error *err)
{
    const char *host = NULL;
    for (size_t i = 0; i < head->request.header_count; i++) {
        if (strcasecmp(head->request.headers[i].name, "Host") != 0)
            continue;
        if (host != NULL)
            return invalid(err, "two Host fields");
        host = head->request.headers[i].value;
        if (!is_authority(host, strlen(host)))
            return invalid(err, "malformed Host");
    }
    if (host == NULL && !head->http10)
        return invalid(err, "no Host field");
    head->request.host = host == NULL ? "" : host;
    return 0;
}

static int take_expectation(struct request_head *head, struct error *err)
{
    for (size_t i = 0; i < head->request.header_count; i++) {
        if (strcasecmp(head->request.headers[i].name, "Expect") != 0 || head->http10)
            continue;
        if (strcasecmp(head->request.headers[i].value, "100-continue") != 0)
            return error_set(err, ERROR_EXPECTATION_FAILED,
                             "no expectation but 100-continue can be met");
        head->expects_continue = true;
    }
    return 0;
}

/* Ends the strings in place, now that llhttp has run over them: names at their colon, values
 * before the white space behind them. */
static struct http_header *keep_headers(struct arena *arena, const struct split *split)
{
    struct http_header *headers = arena_alloc(arena, split->count * sizeof(*headers));
    for (size_t i = 0; i < split->count; i++) {
        char *name = split->fields[i].name, *value = split->fields[i].value;
        size_t len = split->fields[i].value_len;
        name[split->fields[i].name_len] = '\0';
        while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
            len--;
        if (len > 0)
            value[len] = '\0';
        headers[i] = (struct http_header){.name = name, .value = len > 0 ? value : ""};
    }
    return headers;
}

int request_parse(struct arena *arena, const char *data, size_t len, struct request_head *ret_head,
                  struct error *err)
{
    char *text = arena_dup(arena, data, len);
    size_t method_len = 0;
    if (check_request_line(text, len, &method_len, err) != 0 ||
        check_field_names(text, len, err) != 0)
        return -1;
    struct split split;
    llhttp_t parser;
    if (split_head(&parser, HTTP_REQUEST, &split, text, len, err) != 0)
        return -1;

    text[method_len] = '\0';
    split.url[split.url_len] = '\0';
    struct request_head head = {
        .request = {.method = text,
                    .target = split.url,
                    .headers = keep_headers(arena, &split),
                    .header_count = split.count},
        .http10 = parser.http_minor == 0,
        .is_head = parser.method == HTTP_HEAD,
    };
    struct framing framing = {0};
    if (take_host(&head, err) != 0 || take_target(arena, &head, err) != 0 ||
        take_framing(&framing, head.request.headers, head.request.header_count, err) != 0 ||
        take_expectation(&head, err) != 0)
        return -1;
    if (framing.chunked && head.http10)
        return invalid(err, "Transfer-Encoding in HTTP/1.0");
    head.chunked = framing.chunked;
    head.request.content_length = framing.chunked ? -1 : framing.length;
    head.close = framing.close || head.http10;
    *ret_head = head;
    return 0;
}

int answer_parse(struct arena *arena, const char *data, size_t len, struct answer_head *ret_head,
                 struct error *err)
{
    char *text = arena_dup(arena, data, len);
    if (check_field_names(text, len, err) != 0)
        return -1;
    struct split split;
    llhttp_t parser;
    if (split_head(&parser, HTTP_RESPONSE, &split, text, len, err) != 0)
        return -1;
    struct answer_head head = {
        .status = parser.status_code,
        .headers = keep_headers(arena, &split),
        .header_count = split.count,
    };
    struct framing framing = {.close = parser.http_minor == 0};
    if (take_framing(&framing, head.headers, head.header_count, err) != 0)
        return -1;
    head.chunked = framing.chunked;
    head.content_length = framing.has_length ? framing.length : -1;
    head.close = framing.close;
    *ret_head = head;
    return 0;
}
