/* SPDX-License-Identifier: Apache-2.0 */

/* The grammar of https://www.w3.org/TR/trace-context/, one function per rule. */

#include "observe/trace_context.h"

#include <string.h>

enum {
    VERSION_AT = 0,
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    KEY_MAX = 256,
    TENANT_MAX = 241,
    SYSTEM_MAX = 14,
    VALUE_MAX = 256,
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; /* lower case only */
}

/* False when they are no digits. */
static bool hex_read(const char *text, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

bool trace_parent_parse(const char *text, struct errand *errand)
{
    uint8_t version, flags, trace_id[TRACE_ID_SIZE], span_id[SPAN_ID_SIZE];
    size_t len = strnlen(text, TRACEPARENT_LEN + 1);
    if (len < TRACEPARENT_LEN || text[2] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-')
        return false;
    if (!hex_read(text + VERSION_AT, &version, 1) || !hex_read(text + FLAGS_AT, &flags, 1) ||
        !hex_read(text + TRACE_AT, trace_id, TRACE_ID_SIZE) ||
        !hex_read(text + SPAN_AT, span_id, SPAN_ID_SIZE))
        return false;
    bool longer = len > TRACEPARENT_LEN;
    if (version == 0xff || (longer && (version == 0 || text[TRACEPARENT_LEN] != '-')) ||
        all_zero(trace_id, TRACE_ID_SIZE) || all_zero(span_id, SPAN_ID_SIZE))
        return false;
    errand->traced = true;
    errand->trace_flags = flags & 1; /* no other bit means anything in version 00 */
    memcpy(errand->trace_id, trace_id, TRACE_ID_SIZE);
    memcpy(errand->span_id, span_id, SPAN_ID_SIZE);
    return true;
}

static char *hex_write(char *out, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

void trace_parent_text(const struct errand *errand, char out[TRACEPARENT_LEN + 1])
{
    char *at = out;
    *at++ = '0';
    *at++ = '0';
    *at++ = '-';
    at = hex_write(at, errand->trace_id, TRACE_ID_SIZE);
    *at++ = '-';
    at = hex_write(at, errand->span_id, SPAN_ID_SIZE);
    *at++ = '-';
    at = hex_write(at, &errand->trace_flags, 1);
    *at = '\0';
}

/* --- tracestate --- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_key_char(char c)
{
    return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '*' || c == '/';
}

static bool key_chars(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_key_char(text[i]))
            return false;
    return len > 0;
}

/* "vendor", or "tenant@system", whose tenant may begin with a digit. */
static bool key_is_right(const char *key, size_t len)
{
    const char *at = memchr(key, '@', len);
    if (at == NULL)
        return len <= KEY_MAX && len > 0 && is_lower(key[0]) && key_chars(key, len);
    size_t tenant = (size_t)(at - key), system = len - tenant - 1;
    return tenant <= TENANT_MAX && system <= SYSTEM_MAX && key_chars(key, tenant) &&
           (is_lower(key[0]) || is_digit(key[0])) && key_chars(at + 1, system) && is_lower(at[1]);
}

static bool value_is_right(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (value[i] < 0x20 || value[i] > 0x7e || value[i] == ',' || value[i] == '=')
            return false;
    return len > 0 && len <= VALUE_MAX && value[len - 1] != ' ';
}

static bool member_is_right(const char *member, size_t len)
{
    const char *equals = memchr(member, '=', len);
    if (equals == NULL)
        return false;
    size_t key = (size_t)(equals - member);
    return key_is_right(member, key) && value_is_right(equals + 1, len - key - 1);
}

static bool has_key(const struct errand *errand, const char *member)
{
    size_t key = strcspn(member, "=") + 1;
    for (const char *at = errand->tracestate; *at != '\0'; at += *at == ',') {
        if (strncmp(at, member, key) == 0)
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static bool add_member(struct errand *errand, const char *member, size_t len)
{
    size_t comma = errand->tracestate_len > 0 ? 1 : 0;
    if (!member_is_right(member, len) || has_key(errand, member) ||
        errand->tracestate_len + comma + len > TRACESTATE_MAX)
        return false;
    char *to = errand->tracestate + errand->tracestate_len;
    if (comma > 0)
        *to++ = ',';
    memcpy(to, member, len);
    to[len] = '\0';
    errand->tracestate_len = (uint16_t)(errand->tracestate_len + comma + len);
    return true;
}

static size_t count_members(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '=';
    return count;
}

bool trace_state_add(const char *text, struct errand *errand)
{
    while (*text != '\0') {
        text += strspn(text, " \t");
        size_t len = strcspn(text, ","), whole = len;
        while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
            len--;
        if (len > 0 && !add_member(errand, text, len))
            goto wrong;
        text += whole + (text[whole] == ',');
    }
    if (count_members(errand->tracestate) <= TRACESTATE_MEMBERS_MAX)
        return true;
wrong:
    errand->tracestate_len = 0;
    errand->tracestate[0] = '\0';
    return false;
}
