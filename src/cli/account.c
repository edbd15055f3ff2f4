/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who somebody is to a server: `cella login`, `logout`, `whoami` and `token`.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/config.h"
#include "cli/output.h"
#include "cli/table.h"

static int get(struct invocation *inv, const char *path, yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, path);
    return client_json(inv->client, "GET", &target, NULL, 0, ret_root, err);
}

/* --- whoami --- */

static void add_scopes(struct buf *out, yyjson_val *scopes)
{
    yyjson_val *scope;
    size_t i, count;
    buf_addf(out, "%-10s", "Scopes");
    yyjson_arr_foreach(scopes, i, count, scope)
    {
        buf_addc(out, ' ');
        text_add_plain(out, client_text(scope, ""));
    }
    buf_addc(out, '\n');
}

int verb_whoami(struct invocation *inv, int *ret_status, struct error *err)
{
    static const struct {
        const char *label, *pointer;
    } lines[] = {{"Name", "/name"},
                 {"Key", "/keyId"},
                 {"Shown", "/credential"},
                 {"Workspace", "/workspace"},
                 {"Expires", "/expiresAt"}};
    yyjson_val *root;
    if (get(inv, "/v0/whoami", &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    buf_addf(&out, "%-10s %s\n", "Server", client_settings(inv->client)->url);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct slice value = client_text(root, lines[i].pointer);
        if (value.len == 0)
            continue;
        buf_addf(&out, "%-10s ", lines[i].label);
        text_add_plain(&out, value);
        buf_addc(&out, '\n');
    }
    add_scopes(&out, yyjson_obj_get(root, "scopes"));
    return output_buf(&out, err);
}

/* --- login --- */

/* A line from the terminal, without showing it, or from whatever else stdin is. */
static int ask_key(const char *url, char out[KEY_MAX], struct error *err)
{
    struct termios before, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (terminal) { /* whoever sees the question can answer it unseen */
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
        fprintf(stderr, "API key for %s: ", url);
    }
    const char *line = fgets(out, KEY_MAX, stdin);
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fputc('\n', stderr);
    }
    if (line != NULL)
        out[strcspn(out, " \t\r\n")] = '\0';
    if (line == NULL || out[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "no key was given: type it, pipe it in, or use --api-key");
    return 0;
}

int verb_login(struct invocation *inv, int *ret_status, struct error *err)
{
    const struct settings *settings = client_settings(inv->client);
    struct config config = {.found = true};
    char path[SETTINGS_PATH_MAX];
    yyjson_val *root;
    snprintf(config.url, sizeof(config.url), "%s", settings->url);
    snprintf(config.key, sizeof(config.key), "%s", settings->key);
    if (config.key[0] == '\0' && ask_key(config.url, config.key, err) < 0)
        return -1;
    if (settings->workspace != NULL)
        snprintf(config.workspace, sizeof(config.workspace), "%s", settings->workspace);
    client_set_key(inv->client, config.key);
    if (get(inv, "/v0/whoami", &root, err) < 0 || config_save(&config, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    buf_adds(&out, "Logged in to ");
    text_add_plain(&out, slice_of(config.url));
    buf_adds(&out, " as ");
    text_add_plain(&out, client_text(root, "/name"));
    buf_adds(&out, ", workspace ");
    text_add_plain(&out, client_text(root, "/workspace"));
    if (config_path(path))
        buf_addf(&out, "; kept in %s", path);
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}

int verb_logout(struct invocation *inv, int *ret_status, struct error *err)
{
    bool was_there;
    if (config_remove(&was_there, err) < 0)
        return -1;
    if (!was_there)
        fprintf(stderr, "nobody was logged in\n");
    return 0;
}

/* --- token --- */

/* The client that a token is for: the one that is named, or the key that calls are made with. */
static int find_client(struct invocation *inv, const char **ret_id, const char **ret_secret,
                       struct error *err)
{
    const char *id = args_option(inv->args, "client-id", getenv("CELLA_CLIENT_ID"));
    const char *secret = args_option(inv->args, "client-secret", getenv("CELLA_CLIENT_SECRET"));
    if ((id == NULL) != (secret == NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--client-id and --client-secret come together: the id of a key, and the "
                         "key");
    if (id == NULL) {
        yyjson_val *root;
        if (get(inv, "/v0/whoami", &root, err) < 0)
            return -1;
        id = client_text(root, "/keyId").data;
        secret = client_settings(inv->client)->key;
        if (id[0] == '\0')
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "the server asks for no key, so there is none to get a token for");
    }
    *ret_id = id;
    *ret_secret = secret;
    return 0;
}

int verb_token(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *id = NULL, *secret = NULL, *scope = args_option(inv->args, "scope", NULL);
    if (find_client(inv, &id, &secret, err) < 0)
        return -1;
    yyjson_mut_val *object;
    yyjson_mut_doc *body = client_body(inv->client, &object);
    yyjson_mut_obj_add_str(body, object, "grant_type", "client_credentials");
    yyjson_mut_obj_add_str(body, object, "client_id", id);
    yyjson_mut_obj_add_str(body, object, "client_secret", secret);
    if (scope != NULL)
        yyjson_mut_obj_add_str(body, object, "scope", scope);
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    buf_adds(&target, "/v0/oauth/token");
    yyjson_val *root;
    if (client_json(inv->client, "POST", &target, body, 0, &root, err) < 0)
        return -1;
    if (inv->json)
        return output_json(root, err);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    text_add_plain(&out, client_text(root, "/access_token"));
    buf_addc(&out, '\n');
    return output_buf(&out, err);
}
