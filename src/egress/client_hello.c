/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the first message of a TLS connection: records into a message, a message into fields. */

#include "egress/client_hello.h"

#include <stdint.h>
#include <string.h>

enum {
    RECORD_HANDSHAKE = 22,
    RECORD_BODY_MAX = 1 << 14,
    MESSAGE_HEADER = 4,
    MESSAGE_CLIENT_HELLO = 1,
    RANDOM_SIZE = 32,
    SESSION_ID_MAX = 32,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ENCRYPTED_HELLO = 0xfe0d,
    EXTENSION_ENCRYPTED_NAME = 0xffce, /* its ancestor */
    NAME_TYPE_HOST = 0,
    EXTENSIONS_MAX = 64,
};

/* A part of the message: taking from it fails once, and then always. */
struct part {
    const unsigned char *data;
    size_t len;
    bool failed;
};

static struct part take(struct part *from, size_t n)
{
    if (from->failed || from->len < n) {
        from->failed = true;
        return (struct part){.failed = true};
    }
    struct part taken = {.data = from->data, .len = n};
    from->data += n;
    from->len -= n;
    return taken;
}

static unsigned take_number(struct part *from, size_t bytes)
{
    struct part taken = take(from, bytes);
    unsigned value = 0;
    for (size_t i = 0; i < taken.len; i++)
        value = value << 8 | taken.data[i];
    return value;
}

/* A length of so many bytes, and what it measures. */
static struct part take_vector(struct part *from, size_t length_bytes)
{
    size_t len = take_number(from, length_bytes);
    return take(from, len);
}

void client_hello_init(struct client_hello *hello)
{
    *hello = (struct client_hello){.state = CLIENT_HELLO_MORE};
    buf_init(&hello->message, CLIENT_HELLO_MAX);
}

void client_hello_release(struct client_hello *hello)
{
    buf_release(&hello->message);
}

static enum client_hello_state refuse(struct client_hello *hello, const char *why)
{
    hello->why = why;
    return hello->state = CLIENT_HELLO_REFUSED;
}

/* --- the message --- */

static bool read_name(struct client_hello *hello, struct part extension)
{
    struct part list = take_vector(&extension, 2);
    unsigned type = take_number(&list, 1);
    struct part name = take_vector(&list, 2);
    if (name.failed || list.len != 0 || extension.len != 0 || type != NAME_TYPE_HOST ||
        name.len == 0 || name.len >= sizeof(hello->name) ||
        memchr(name.data, '\0', name.len) != NULL)
        return false;
    memcpy(hello->name, name.data, name.len);
    hello->name[name.len] = '\0';
    return true;
}

static const char *read_extensions(struct client_hello *hello, struct part extensions)
{
    uint16_t seen[EXTENSIONS_MAX];
    size_t count = 0;
    while (extensions.len > 0) {
        unsigned type = take_number(&extensions, 2);
        struct part body = take_vector(&extensions, 2);
        if (extensions.failed)
            return "its extensions are cut off";
        if (count == EXTENSIONS_MAX)
            return "it has too many extensions";
        for (size_t i = 0; i < count; i++)
            if (seen[i] == type)
                return "it has an extension twice";
        seen[count++] = (uint16_t)type;
        if (type == EXTENSION_ENCRYPTED_HELLO || type == EXTENSION_ENCRYPTED_NAME)
            hello->encrypted = true;
        if (type == EXTENSION_SERVER_NAME && !read_name(hello, body))
            return "its server name makes no sense";
    }
    return NULL;
}

static enum client_hello_state read_message(struct client_hello *hello)
{
    struct part body = {.data = (const unsigned char *)hello->message.data + MESSAGE_HEADER,
                        .len = hello->message.len - MESSAGE_HEADER};
    unsigned version = take_number(&body, 2);
    take(&body, RANDOM_SIZE);
    struct part session = take_vector(&body, 1);
    struct part ciphers = take_vector(&body, 2);
    struct part compression = take_vector(&body, 1);
    if (body.failed || version >> 8 != 3 || session.len > SESSION_ID_MAX || ciphers.len < 2 ||
        ciphers.len % 2 != 0 || compression.len < 1)
        return refuse(hello, "its fields make no sense");
    if (body.len > 0) { /* a client of before 2003 has no extensions */
        struct part extensions = take_vector(&body, 2);
        if (body.failed || body.len != 0)
            return refuse(hello, "its extensions are cut off");
        const char *why = read_extensions(hello, extensions);
        if (why != NULL)
            return refuse(hello, why);
    }
    return hello->state = CLIENT_HELLO_DONE;
}

/* Whether the message is whole, or known to be wrong. */
static enum client_hello_state look_at_message(struct client_hello *hello)
{
    const unsigned char *data = (const unsigned char *)hello->message.data;
    if (hello->message.len > 0 && data[0] != MESSAGE_CLIENT_HELLO)
        return refuse(hello, "it begins with another message than a ClientHello");
    if (hello->message.len < MESSAGE_HEADER)
        return CLIENT_HELLO_MORE;
    size_t len = MESSAGE_HEADER + ((size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3]);
    if (len > CLIENT_HELLO_MAX)
        return refuse(hello, "its ClientHello is too long");
    /* What stands behind it in its record belongs to no message that may come now. */
    if (hello->message.len + hello->record_left > len &&
        (hello->message.len >= len || hello->record_left > len - hello->message.len))
        return refuse(hello, "there is more than a ClientHello in its record");
    return hello->message.len < len ? CLIENT_HELLO_MORE : read_message(hello);
}

/* --- records --- */

static enum client_hello_state open_record(struct client_hello *hello)
{
    const unsigned char *r = hello->record;
    size_t len = (size_t)r[3] << 8 | r[4];
    if (r[0] != RECORD_HANDSHAKE || r[1] != 3)
        return refuse(hello, "it does not speak TLS");
    if (len == 0 || len > RECORD_BODY_MAX)
        return refuse(hello, "the length of its record makes no sense");
    hello->record_left = len;
    return CLIENT_HELLO_MORE;
}

enum client_hello_state client_hello_feed(struct client_hello *hello, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0 && hello->state == CLIENT_HELLO_MORE) {
        if (hello->record_left == 0) {
            hello->record[hello->record_have++] = (unsigned char)*at++;
            len--;
            /* The first byte alone tells what will never be TLS. */
            if (hello->record_have == 1 && hello->record[0] != RECORD_HANDSHAKE)
                refuse(hello, "it does not speak TLS");
            else if (hello->record_have == sizeof(hello->record)) {
                hello->record_have = 0;
                open_record(hello);
            }
            continue;
        }
        size_t n = len < hello->record_left ? len : hello->record_left;
        buf_add(&hello->message, at, n);
        if (hello->message.failed)
            return refuse(hello, "its ClientHello is too long");
        hello->record_left -= n;
        at += n;
        len -= n;
        look_at_message(hello);
    }
    return hello->state;
}

void tls_alert_write(unsigned char out[TLS_ALERT_SIZE], unsigned char description)
{
    const unsigned char alert[TLS_ALERT_SIZE] = {21, 3, 1, 0, 2, 2, description};
    memcpy(out, alert, sizeof(alert));
}
