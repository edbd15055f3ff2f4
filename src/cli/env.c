/* SPDX-License-Identifier: Apache-2.0 */

/* What other makers' clients have to be told to use this server: lines for a shell. */

#include "cli/env.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/args.h"
#include "cli/settings.h"
#include "cli/verbs.h"

enum { VALUE_MAX = 2 * KEY_MAX + SETTINGS_PATH_MAX };

enum value { VALUE_FIXED, VALUE_URL, VALUE_KEY, VALUE_E2B_KEY, VALUE_WORKSPACE, VALUE_CA };

static const struct env_row {
    const char *client, *name;
    enum value value;
    const char *text; /* a fixed value, or what comes after the URL */
} rows[] = {
    {"e2b", "E2B_API_URL", VALUE_URL, ""},
    {"e2b", "E2B_SANDBOX_URL", VALUE_URL, ""},
    {"e2b", "E2B_API_KEY", VALUE_E2B_KEY, ""},
    {"scalebox", "SCALEBOX_API_URL", VALUE_URL, ""},
    {"scalebox", "SCALEBOX_API_KEY", VALUE_KEY, ""},
    {"scalebox", "NODE_EXTRA_CA_CERTS", VALUE_CA, ""}, /* some of its calls are https always */
    {"blaxel", "BL_API_URL", VALUE_URL, "/v0"},
    {"blaxel", "BL_RUN_URL", VALUE_URL, ""},
    {"blaxel", "BL_API_KEY", VALUE_KEY, ""},
    {"blaxel", "BL_WORKSPACE", VALUE_WORKSPACE, "default"},
    {"blaxel", "BL_DISABLE_H2", VALUE_FIXED, "1"},
    {"blaxel", "DO_NOT_TRACK", VALUE_FIXED, "1"},
};

void key_for_e2b(struct slice key, struct buf *out)
{
    static const char prefix[] = "e2b_";
    size_t len = sizeof(prefix) - 1;
    if (key.len >= len && memcmp(key.data, prefix, len) == 0) {
        buf_add(out, key.data, key.len);
        return;
    }
    buf_adds(out, prefix);
    for (size_t i = 0; i < key.len; i++)
        buf_addf(out, "%02x", (unsigned char)key.data[i]);
}

/* As one word of a shell, whatever is in it. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    putchar('\'');
}

/* Leaves out empty when there is nothing to tell. */
static void find_value(const struct env_row *row, const struct settings *s, struct buf *out)
{
    switch (row->value) {
    case VALUE_FIXED:
        buf_adds(out, row->text);
        break;
    case VALUE_URL:
        buf_adds(out, s->url);
        buf_adds(out, row->text);
        break;
    case VALUE_KEY:
        buf_adds(out, s->key);
        break;
    case VALUE_E2B_KEY:
        key_for_e2b(slice_of(s->key), out);
        break;
    case VALUE_WORKSPACE:
        buf_adds(out, s->workspace == NULL ? row->text : s->workspace);
        break;
    case VALUE_CA:
        buf_addf(out, "%s/%s", s->data, LAYOUT_TLS_CA);
        if (access(out->data, R_OK) < 0)
            buf_clear(out);
        break;
    }
}

int verb_env(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *client = args_word(inv->args, "CLIENT");
    struct settings settings;
    bool known = false;
    if (settings_find(inv->args, &settings, err) < 0)
        return -1;
    if (settings.no_server.code != ERROR_NONE) {
        *err = settings.no_server;
        return -1;
    }
    if (settings.key[0] == '\0')
        return error_set(err, ERROR_UNAUTHORIZED, "%s", settings.key_problem);
    if (strncmp(settings.url, "unix:", 5) == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "these clients cannot use %s: give --url http://HOST:PORT", settings.url);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_buf_ struct buf value = BUF_INIT(VALUE_MAX);
        if (strcmp(rows[i].client, client) != 0)
            continue;
        known = true;
        find_value(&rows[i], &settings, &value);
        if (buf_check(&value, rows[i].name, err) < 0)
            return -1;
        if (value.len == 0)
            continue;
        printf("export %s=", rows[i].name);
        print_quoted(value.data);
        putchar('\n');
    }
    if (!known)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%s\" is no client that this is known of: e2b, scalebox, blaxel",
                         client);
    *ret_status = 0;
    return 0;
}
