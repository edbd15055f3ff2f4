/* SPDX-License-Identifier: Apache-2.0 */

#include "main/pool_option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/log.h"

struct field {
    const char *name;
    int (*take)(struct pool_option *option, const char *value, struct error *err);
};

static int take_text(char *to, size_t size, const char *what, const char *value, struct error *err)
{
    size_t len = strlen(value);
    if (len == 0 || len >= size)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s has 1 to %zu characters", what, size - 1);
    memcpy(to, value, len + 1);
    return 0;
}

static int take_image(struct pool_option *option, const char *value, struct error *err)
{
    return take_text(option->image, sizeof(option->image), "image", value, err);
}

static int take_name(struct pool_option *option, const char *value, struct error *err)
{
    return take_text(option->name, sizeof(option->name), "name", value, err);
}

static int take_number(const char *what, const char *value, bool *has, int64_t *number,
                       struct error *err)
{
    size_t len = strlen(value);
    if (len == 0 || len > 9 || value[strspn(value, "0123456789")] != '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s=%.40s is no number", what, value);
    *number = (int64_t)strtoull(value, NULL, 10); /* nine digits at most */
    *has = true;
    return 0;
}

static int take_trust(struct pool_option *option, const char *value, struct error *err)
{
    enum trust_level level;
    if (trust_level_parse(value, &level, err) < 0)
        return error_prefix(err, "trust");
    option->trust = trust_level_text(level);
    return 0;
}

static int take_size(struct pool_option *option, const char *value, struct error *err)
{
    return take_number("size", value, &option->has_size, &option->size, err);
}

static int take_refill(struct pool_option *option, const char *value, struct error *err)
{
    return take_number("refill", value, &option->has_refill, &option->refill, err);
}

static int take_ttl(struct pool_option *option, const char *value, struct error *err)
{
    uint64_t seconds;
    if (duration_seconds(value, &seconds, err) < 0)
        return error_prefix(err, "ttl");
    option->ttl_s = seconds > INT64_MAX ? INT64_MAX : (int64_t)seconds;
    option->has_ttl = true;
    return 0;
}

/* "python+bash": a comma would end it. */
static int take_code(struct pool_option *option, const char *value, struct error *err)
{
    option->has_code = true;
    for (size_t len; *value != '\0'; value += len + (value[len] == '+')) {
        char word[32];
        len = strcspn(value, "+");
        snprintf(word, sizeof(word), "%.*s", (int)len, value);
        if (code_list_add(option->code, word, err) < 0)
            return error_prefix(err, "code");
    }
    return 0;
}

static const struct field fields[] = {
    {"image", take_image}, {"trust", take_trust},   {"size", take_size}, {"ttl", take_ttl},
    {"name", take_name},   {"refill", take_refill}, {"code", take_code},
};

static int take_field(struct pool_option *option, const char *part, struct error *err)
{
    const char *eq = strchr(part, '=');
    for (size_t i = 0; eq != NULL && i < ARRAY_LEN(fields); i++)
        if (strlen(fields[i].name) == (size_t)(eq - part) &&
            strncmp(fields[i].name, part, (size_t)(eq - part)) == 0)
            return fields[i].take(option, eq + 1, err);
    return error_set(
        err, ERROR_INVALID_ARGUMENT,
        "\"%.60s\" is none of image=, trust=, size=, ttl=, name=, refill=, code=, as in "
        "image=host,size=8",
        part);
}

int pool_option_parse(const char *text, struct pool_option *ret_option, struct error *err)
{
    struct pool_option option = {0};
    _cleanup_free_ char *copy = strdup(text);
    char *rest = copy, *part;
    if (copy == NULL)
        return error_sys(err, "reading a pool");
    while ((part = strsep(&rest, ",")) != NULL)
        if (take_field(&option, part, err) < 0)
            return -1;
    if (option.image[0] == '\0')
        return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.60s\" names no image: image=host,size=8",
                         text);
    *ret_option = option;
    return 0;
}

int pool_options_apply(struct sandboxes *s, char *lines, struct error *err)
{
    char *line;
    while ((line = strsep(&lines, "\n")) != NULL) {
        struct pool_option option;
        if (line[0] == '\0')
            continue;
        if (pool_option_parse(line, &option, err) < 0)
            return error_prefix(err, "--pool");
        const struct pool_create request = {
            .name = option.name[0] == '\0' ? NULL : option.name,
            .image = option.image,
            .security = {.level = option.trust, .may_loosen = true},
            .size = option.has_size ? &option.size : NULL,
            .ttl_s = option.has_ttl ? &option.ttl_s : NULL,
            .at_once = option.has_refill ? &option.refill : NULL,
            .code = option.has_code ? option.code : NULL,
            .actor = "server",
        };
        if (pools_ensure(s, &request, err) == 0)
            continue;
        if (err->code != ERROR_ALREADY_EXISTS) /* that depends on what others did meanwhile */
            return error_prefix(err, "--pool %s", line);
        log_warn("--pool %s: %s", line, err->message);
    }
    return 0;
}
