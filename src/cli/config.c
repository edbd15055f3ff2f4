/* SPDX-License-Identifier: Apache-2.0 */

/* The user's own file. It holds a key, so it is made for nobody else and not used once others can
 * read it. */

#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "json/json.h"

enum { CONFIG_BYTES_MAX = 16 * 1024 };

bool config_path(char out[SETTINGS_PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } places[] = {
        {"CELLA_CONFIG", ""},
        {"XDG_CONFIG_HOME", "/cella/config.json"},
        {"HOME", "/.config/cella/config.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *value = getenv(places[i].variable);
        if (value != NULL && value[0] == '/')
            return snprintf(out, SETTINGS_PATH_MAX, "%s%s", value, places[i].below) <
                   SETTINGS_PATH_MAX;
    }
    return false;
}

/* --- reading --- */

struct fields {
    const char *url, *key, *workspace;
};

static const struct json_field config_fields[] = {
    {"url", JSON_STRING, .required = true, .offset = offsetof(struct fields, url)},
    {"apiKey", JSON_STRING, .offset = offsetof(struct fields, key)},
    {"workspace", JSON_STRING, .offset = offsetof(struct fields, workspace)},
};

static int copy(const char *from, char *to, size_t size, const char *what, struct error *err)
{
    if (from != NULL && (strlen(from) >= size || strpbrk(from, "\r\n") != NULL))
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s cannot be right", what);
    snprintf(to, size, "%s", from == NULL ? "" : from);
    return 0;
}

static int read_fields(struct arena *arena, struct slice text, struct config *config,
                       struct error *err)
{
    struct fields fields = {NULL, NULL, NULL};
    yyjson_val *root;
    if (json_parse(arena, text, &root, err) < 0 ||
        json_read(arena, root, "", config_fields, ARRAY_LEN(config_fields), &fields, err) < 0 ||
        copy(fields.url, config->url, sizeof(config->url), "url", err) < 0 ||
        copy(fields.key, config->key, sizeof(config->key), "apiKey", err) < 0)
        return -1;
    return copy(fields.workspace, config->workspace, sizeof(config->workspace), "workspace", err);
}

static int read_file(int fd, struct config *config, struct error *err)
{
    struct stat st;
    char text[CONFIG_BYTES_MAX];
    if (fstat(fd, &st) < 0)
        return error_sys(err, "looking at it");
    if ((st.st_mode & 077) != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "others may open it, and it holds a key: chmod 600");
    ssize_t len = read(fd, text, sizeof(text));
    if (len < 0)
        return error_sys(err, "reading it");
    struct arena *arena = arena_new();
    int result = read_fields(arena, (struct slice){text, (size_t)len}, config, err);
    arena_free(arena);
    return result;
}

int config_load(struct config *ret_config, struct error *err)
{
    struct config config = {.found = true};
    char path[SETTINGS_PATH_MAX];
    _cleanup_fd_ int fd = -1;
    if (config_path(path))
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) { /* a home that cannot be searched is one without it */
        *ret_config = (struct config){.found = false};
        return 0;
    }
    if (read_file(fd, &config, err) < 0)
        return error_prefix(err, "%s", path);
    *ret_config = config;
    return 0;
}

/* --- writing --- */

static int make_folders(const char *path, struct error *err)
{
    char part[SETTINGS_PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return error_sys(err, "making %s", part);
        *slash = '/';
    }
    return 0;
}

static char *config_text(const struct config *config, size_t *ret_len)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "url", config->url);
    yyjson_mut_obj_add_str(doc, root, "apiKey", config->key);
    if (config->workspace[0] != '\0')
        yyjson_mut_obj_add_str(doc, root, "workspace", config->workspace);
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END,
                                  ret_len);
    yyjson_mut_doc_free(doc);
    return text;
}

int config_save(const struct config *config, struct error *err)
{
    char path[SETTINGS_PATH_MAX], temporary[SETTINGS_PATH_MAX + 8];
    size_t len = 0;
    if (!config_path(path))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "there is no home to keep the key in: set HOME or CELLA_CONFIG");
    _cleanup_free_ char *text = config_text(config, &len);
    if (text == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the values given are not UTF-8");
    if (make_folders(path, err) < 0)
        return -1;
    snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    _cleanup_fd_ int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return error_sys(err, "writing %s", path);
    if (write(fd, text, len) != (ssize_t)len || fsync(fd) < 0 || rename(temporary, path) < 0) {
        error_sys(err, "writing %s", path);
        unlink(temporary);
        return -1;
    }
    return 0;
}

int config_remove(bool *ret_was_there, struct error *err)
{
    char path[SETTINGS_PATH_MAX];
    bool known = config_path(path), there = known && unlink(path) == 0;
    if (known && !there && errno != ENOENT && errno != ENOTDIR)
        return error_sys(err, "removing %s", path);
    *ret_was_there = there;
    return 0;
}
