/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Everything here is kept in memory for as long as its sandbox lives and shown in every answer, so
 * every piece has a limit; and it is shown to people, so none of it may hold control characters.
 */

#include "sandbox/metadata.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_word(struct slice text, size_t max, const char *inner)
{
    if (text.len == 0 || text.len > max || !is_alnum(text.data[0]) ||
        !is_alnum(text.data[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_alnum(text.data[i]) && strchr(inner, text.data[i]) == NULL)
            return false;
    return true;
}

static bool is_label_key(struct slice key)
{
    const char *slash = memchr(key.data, '/', key.len);
    if (slash == NULL)
        return is_word(key, LABEL_NAME_MAX, "-_.");
    struct slice prefix = {key.data, (size_t)(slash - key.data)};
    struct slice name = {slash + 1, key.len - prefix.len - 1};
    return is_word(prefix, LABEL_PREFIX_MAX, "-.") && is_word(name, LABEL_NAME_MAX, "-_.");
}

static bool is_one_line(const char *text)
{
    for (; *text != '\0'; text++)
        if (iscntrl((unsigned char)*text))
            return false;
    return true;
}

static int check_label(const char *item, struct error *err)
{
    const char *equals = strchr(item, '=');
    struct slice key = {item, equals == NULL ? strlen(item) : (size_t)(equals - item)};
    if (!is_label_key(key))
        return error_set(
            err, ERROR_INVALID_ARGUMENT,
            "metadata.labels: \"%.*s\" is not a key: 1 to %d letters, digits, '-', '_' "
            "and '.' between letters or digits, with a DNS name and '/' before it if "
            "wanted",
            (int)(key.len > 80 ? 80 : key.len), item, LABEL_NAME_MAX);
    if (equals == NULL || strlen(equals + 1) > LABEL_VALUE_MAX || !is_one_line(equals + 1))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.labels.%.*s: not one line of at most %d bytes",
                         (int)(key.len > 80 ? 80 : key.len), item, LABEL_VALUE_MAX);
    return 0;
}

int metadata_check_labels(struct slice labels, struct error *err)
{
    size_t count = 0;
    strv_each (item, labels) {
        if (++count > LABELS_MAX)
            return error_set(err, ERROR_INVALID_ARGUMENT, "metadata.labels: more than %d",
                             LABELS_MAX);
        if (check_label(item, err) < 0)
            return -1;
    }
    return 0;
}

static int check_external_id(const char *id, struct error *err)
{
    for (const char *at = id; at != NULL && *at != '\0'; at++)
        if (at - id >= EXTERNAL_ID_MAX || (!is_alnum(*at) && *at != '-'))
            return error_set(
                err, ERROR_INVALID_ARGUMENT,
                "metadata.externalId: \"%.80s\" is not 1 to %d letters, digits and '-'", id,
                EXTERNAL_ID_MAX);
    return 0;
}

int metadata_check(const struct sandbox_metadata *metadata, struct error *err)
{
    const char *name = metadata->display_name, *spec = metadata->blaxel_spec;
    if (metadata_check_labels(metadata->labels, err) < 0 ||
        check_external_id(metadata->external_id, err) < 0)
        return -1;
    if (name != NULL && (strlen(name) > DISPLAY_NAME_MAX || !is_one_line(name)))
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "metadata.displayName: not one line of at most %d bytes",
                         DISPLAY_NAME_MAX);
    if (spec != NULL && strlen(spec) > BLAXEL_SPEC_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE, "spec: more than %d bytes", BLAXEL_SPEC_MAX);
    if (metadata->e2b_spec != NULL && strlen(metadata->e2b_spec) > E2B_SPEC_MAX)
        return error_set(err, ERROR_PAYLOAD_TOO_LARGE,
                         "metadata and network: more than %d bytes together", E2B_SPEC_MAX);
    return 0;
}

bool metadata_has_labels(struct slice labels, struct slice wanted)
{
    strv_each (want, wanted) {
        bool found = false;
        strv_each (have, labels)
            found = found || strcmp(have, want) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* False when there is something to copy and it could not be. */
static bool copy_text(const char *from, const char **ret_copy)
{
    *ret_copy = from == NULL || from[0] == '\0' ? NULL : strdup(from);
    return *ret_copy != NULL || from == NULL || from[0] == '\0';
}

int metadata_copy(const struct sandbox_metadata *from, struct sandbox_metadata *ret_copy)
{
    struct sandbox_metadata copy = {0};
    char *labels = malloc(from->labels.len + 1);
    copy.labels = (struct slice){labels, from->labels.len};
    bool texts = copy_text(from->external_id, &copy.external_id);
    texts = copy_text(from->display_name, &copy.display_name) && texts;
    texts = copy_text(from->blaxel_spec, &copy.blaxel_spec) && texts;
    texts = copy_text(from->e2b_spec, &copy.e2b_spec) && texts;
    if (labels == NULL || !texts) {
        metadata_release(&copy);
        return -1;
    }
    if (from->labels.len > 0)
        memcpy(labels, from->labels.data, from->labels.len);
    *ret_copy = copy;
    return 0;
}

void metadata_release(struct sandbox_metadata *metadata)
{
    free((char *)metadata->labels.data);
    free((char *)metadata->external_id);
    free((char *)metadata->display_name);
    free((char *)metadata->blaxel_spec);
    free((char *)metadata->e2b_spec);
    *metadata = (struct sandbox_metadata){0};
}
