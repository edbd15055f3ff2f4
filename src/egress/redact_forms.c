/* SPDX-License-Identifier: Apache-2.0 */

/* Computes the forms of secrets. */

#include "egress/redact_forms.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"

enum {
    ALIGNMENTS = 3,
    FORMS_PER_TEXT = 2 + ALIGNMENTS,
    TEXTS_PER_SECRET = 3, /* it, and what its base64 holds: "user:password", and the password */
    ESCAPE_LEN = 6,       /* \u0041 */
    WINDOW_MORE = 16,
};

static const char digits[] = "0123456789abcdef";
static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t fold_byte(enum redact_fold fold, uint8_t c)
{
    if (fold == FOLD_HEX)
        return c >= 'A' && c <= 'F' ? c | 0x20 : c;
    if (fold == FOLD_BASE64)
        return c == '-' ? '+' : c == '_' ? '/' : c;
    return c == '+' ? ' ' : c; /* in forms of web pages, '+' is a space */
}

static int value_of(uint8_t c)
{
    const char *at = c == '\0' ? NULL : strchr(base64, fold_byte(FOLD_BASE64, c));
    return at == NULL ? -1 : (int)(at - base64);
}

bool redact_is_base64(uint8_t c)
{
    return c == '=' || value_of(c) >= 0;
}

/* --- one form --- */

static int add_form(struct redact_set *set, enum redact_fold fold, uint8_t *bytes, size_t len,
                    struct error *err)
{
    struct redact_form *form = &set->forms[set->count];
    if (bytes == NULL)
        return error_sys(err, "keeping the forms of a secret");
    *form = (struct redact_form){.bytes = bytes, .len = len, .fold = fold, .drop = 1};
    for (size_t i = 0; i < len; i++) {
        bytes[i] = set->fold[fold][bytes[i]];
        form->hash = form->hash * set->base + bytes[i] + 1U;
        form->drop *= set->base;
    }
    set->count++;
    if (len > set->longest)
        set->longest = len;
    return 0;
}

static int add_text(struct redact_set *set, struct slice text, struct error *err)
{
    uint8_t *copy = malloc(text.len);
    if (copy != NULL)
        memcpy(copy, text.data, text.len);
    return add_form(set, FOLD_TEXT, copy, text.len, err);
}

static int add_hex(struct redact_set *set, struct slice text, struct error *err)
{
    uint8_t *hex = malloc(2 * text.len);
    for (size_t i = 0; hex != NULL && i < text.len; i++) {
        hex[2 * i] = (uint8_t)digits[(uint8_t)text.data[i] >> 4];
        hex[2 * i + 1] = (uint8_t)digits[(uint8_t)text.data[i] & 15];
    }
    return add_form(set, FOLD_HEX, hex, 2 * text.len, err);
}

/* Six bits of the text, of which `before` unknown bytes stand in front. */
static unsigned bits_at(struct slice text, size_t before, size_t bit)
{
    unsigned value = 0;
    for (size_t i = bit; i < bit + 6; i++) {
        uint8_t c = (uint8_t)text.data[i / 8 - before];
        value = value << 1 | (c >> (7 - i % 8) & 1);
    }
    return value;
}

/* The characters that the text alone decides. What stands beside it decides those at either end
 * with it, when these are not whole. */
static int add_base64(struct redact_set *set, struct slice text, size_t before, struct error *err)
{
    size_t from = (8 * before + 5) / 6, to = 8 * (before + text.len) / 6;
    uint8_t *form = malloc(to - from);
    for (size_t i = from; form != NULL && i < to; i++)
        form[i - from] = (uint8_t)base64[bits_at(text, before, 6 * i)];
    if (add_form(set, FOLD_BASE64, form, to - from, err) < 0)
        return -1;
    set->forms[set->count - 1].head = 6 * from != 8 * before;
    set->forms[set->count - 1].tail = 6 * to != 8 * (before + text.len);
    return 0;
}

static int add_forms(struct redact_set *set, struct slice text, struct error *err)
{
    if (text.len < REDACT_MIN)
        return 0;
    if (ESCAPE_LEN * text.len + WINDOW_MORE > set->window)
        set->window = ESCAPE_LEN * text.len + WINDOW_MORE;
    if (add_text(set, text, err) < 0 || add_hex(set, text, err) < 0)
        return -1;
    for (size_t before = 0; before < ALIGNMENTS; before++)
        if (add_base64(set, text, before, err) < 0)
            return -1;
    return 0;
}

/* --- secrets that are base64 themselves --- */

/* The printable text that it encodes, as "user:password" of Basic authentication; 0: none. */
static size_t decode(struct slice secret, char *out)
{
    size_t len = 0;
    unsigned bits = 0, have = 0;
    while (secret.len > 0 && secret.data[secret.len - 1] == '=')
        secret.len--;
    for (size_t i = 0; i < secret.len; i++) {
        int value = value_of((uint8_t)secret.data[i]);
        if (value < 0)
            return 0;
        bits = bits << 6 | (unsigned)value;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        out[len] = (char)(bits >> have & 0xff);
        if (out[len] < 0x20 || out[len] > 0x7e)
            return 0;
        len++;
    }
    return len;
}

static int add_secret(struct redact_set *set, struct slice secret, struct error *err)
{
    char *text = malloc(secret.len + 1);
    if (text == NULL)
        return error_sys(err, "keeping the forms of a secret");
    size_t len = decode(secret, text);
    const char *colon = memchr(text, ':', len);
    struct slice password = {"", 0};
    if (colon != NULL)
        password = (struct slice){colon + 1, len - (size_t)(colon + 1 - text)};
    int r = add_forms(set, secret, err);
    if (r == 0 && secret.len >= REDACT_MIN)
        r = add_forms(set, (struct slice){text, len}, err);
    if (r == 0)
        r = add_forms(set, password, err);
    explicit_bzero(text, secret.len + 1);
    free(text);
    return r;
}

/* Several headers often hold the same secret. */
static bool is_repeated(const struct slice *secrets, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (secrets[i].len == secrets[index].len &&
            memcmp(secrets[i].data, secrets[index].data, secrets[i].len) == 0)
            return true;
    return false;
}

int redact_set_new(const struct slice *secrets, size_t count, struct redact_set **ret_set,
                   struct error *err)
{
    struct redact_set *set = calloc(1, sizeof(*set));
    if (set != NULL)
        set->forms = calloc(count * TEXTS_PER_SECRET * FORMS_PER_TEXT + 1, sizeof(*set->forms));
    if (set == NULL || set->forms == NULL ||
        getrandom(&set->base, sizeof(set->base), 0) != sizeof(set->base)) {
        redact_set_free(set);
        return error_sys(err, "keeping the forms of a secret");
    }
    set->base |= 1;
    for (size_t i = 0; i < FOLD_COUNT * 256; i++)
        set->fold[i / 256][i % 256] = fold_byte((enum redact_fold)(i / 256), (uint8_t)i);
    for (size_t i = 0; i < count; i++)
        if (!is_repeated(secrets, i) && add_secret(set, secrets[i], err) < 0) {
            redact_set_free(set);
            return -1;
        }
    *ret_set = set;
    return 0;
}

void redact_set_free(struct redact_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        explicit_bzero(set->forms[i].bytes, set->forms[i].len);
        free(set->forms[i].bytes);
    }
    free(set->forms);
    free(set);
}
