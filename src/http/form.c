/* SPDX-License-Identifier: Apache-2.0 */

/* Forms in pieces. The boundary is looked for in a window that slides over the body: content that
 * cannot be the beginning of a boundary is handed out at once. */

#include "http/form.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum state { AT_START, AT_BOUNDARY, IN_FIELDS, IN_DATA, AT_END };

static int invalid(struct error *err, const char *message)
{
    return error_set(err, ERROR_INVALID_MULTIPART, "%s", message);
}

static enum form_step bad(struct error *err, const char *message)
{
    invalid(err, message);
    return FORM_BAD;
}

/* --- parameters: `; name=token; name="quoted"` --- */

static bool is_token_char(char c)
{
    return c > ' ' && c < 0x7f && strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* A quoted string, its value into `to` (as large as the text). Only quotes and backslashes are
 * escaped: elsewhere a backslash is one, as in the file names of some browsers. */
static const char *take_quoted(const char *at, char *to)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\0')
            return NULL;
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        *to++ = *at;
    }
    *to = '\0';
    return at + 1;
}

static const char *take_token(const char *at, char *to)
{
    const char *start = at;
    while (is_token_char(*at))
        *to++ = *at++;
    *to = '\0';
    return at == start ? NULL : at;
}

/* The next parameter; NULL with *at at the end of the text: there is none, else it is malformed.
 * Names and values are in the arena. */
static const char *take_param(struct arena *arena, const char **at, const char **ret_value)
{
    const char *text = skip_space(*at);
    if (*text != ';') {
        *at = text;
        return NULL;
    }
    text = skip_space(text + 1);
    if (*text == '\0') { /* a semicolon at the end does no harm */
        *at = text;
        return NULL;
    }
    char *name = arena_alloc(arena, strlen(text) + 1);
    char *value = arena_alloc(arena, strlen(text) + 1);
    const char *end = take_token(text, name);
    if (end == NULL || *end != '=')
        return NULL;
    end = end[1] == '"' ? take_quoted(end + 1, value) : take_token(end + 1, value);
    if (end == NULL)
        return NULL;
    *at = end;
    *ret_value = value;
    return name;
}

/* --- the boundary --- */

static bool is_boundary(const char *text)
{
    static const char fine[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "'()+_,-./:=? ";
    size_t len = strlen(text);
    return len > 0 && len <= FORM_BOUNDARY_MAX && strspn(text, fine) == len && text[len - 1] != ' ';
}

static int find_boundary(struct arena *arena, const char *params, const char **ret_boundary,
                         struct error *err)
{
    const char *name, *value, *boundary = NULL;
    while ((name = take_param(arena, &params, &value)) != NULL) {
        if (strcasecmp(name, "boundary") != 0)
            continue;
        if (boundary != NULL)
            return invalid(err, "the Content-Type has two boundaries");
        boundary = value;
    }
    if (*params != '\0')
        return invalid(err, "the Content-Type's parameters are malformed");
    if (boundary == NULL)
        return invalid(err, "the Content-Type has no boundary");
    if (!is_boundary(boundary))
        return invalid(err, "the boundary has to be 1 to 70 letters, digits and '()+_,-./:=?");
    *ret_boundary = boundary;
    return 0;
}

int form_decoder_init(struct form_decoder *d, const char *content_type, struct error *err)
{
    static const char type[] = "multipart/form-data";
    size_t len = sizeof(type) - 1;
    if (content_type == NULL || strncasecmp(content_type, type, len) != 0 ||
        strchr("; \t", content_type[len]) == NULL) /* the text's end too */
        return error_set(err, ERROR_UNSUPPORTED_MEDIA_TYPE,
                         "this call takes multipart/form-data, and the body says it is %.100s",
                         content_type == NULL ? "nothing" : content_type);
    struct arena *arena = arena_new();
    const char *boundary = NULL;
    int rc = find_boundary(arena, content_type + len, &boundary, err);
    *d = (struct form_decoder){.state = AT_START};
    if (rc == 0) {
        memcpy(d->delimiter, "\r\n--", 4);
        memcpy(d->delimiter + 4, boundary, strlen(boundary));
        d->delimiter_len = 4 + strlen(boundary);
    }
    arena_free(arena);
    return rc;
}

/* --- the body --- */

static enum form_step more(bool at_end, struct error *err)
{
    return at_end ? bad(err, "the form ends too early") : FORM_MORE;
}

/* The first boundary has no line end before it, or an empty line. */
static enum form_step decode_start(struct form_decoder *d, const char *in, size_t len, bool at_end,
                                   size_t *ret_used, struct error *err)
{
    size_t skip = len > 0 && in[0] == '\r' ? 0 : 2;
    const char *want = d->delimiter + skip;
    size_t want_len = d->delimiter_len - skip;
    if (memcmp(in, want, len < want_len ? len : want_len) != 0)
        return bad(err, "the form does not begin with its boundary");
    if (len < want_len)
        return more(at_end, err);
    *ret_used = want_len;
    d->state = AT_BOUNDARY;
    return FORM_MORE;
}

/* What stands behind a boundary: the end, or a line end and a part. */
static enum form_step decode_boundary(struct form_decoder *d, const char *in, size_t len,
                                      bool at_end, size_t *ret_used, struct error *err)
{
    if (len < 2)
        return more(at_end, err);
    *ret_used = 2;
    if (memcmp(in, "--", 2) == 0) {
        d->state = AT_END;
        return FORM_END;
    }
    if (memcmp(in, "\r\n", 2) != 0)
        return bad(err, "something stands behind a boundary on its line");
    if (d->parts++ == FORM_PARTS_MAX) {
        error_set(err, ERROR_PAYLOAD_TOO_LARGE, "a form has at most %d parts", FORM_PARTS_MAX);
        return FORM_BAD;
    }
    d->state = IN_FIELDS;
    return FORM_MORE;
}

static enum form_step decode_fields(struct form_decoder *d, const char *in, size_t len, bool at_end,
                                    size_t *ret_used, struct error *err)
{
    const char *end = memmem(in, len, "\r\n\r\n", 4);
    size_t fields = end == NULL ? len : (size_t)(end - in) + 4;
    if (fields > FORM_FIELDS_MAX) {
        error_set(err, ERROR_HEADERS_TOO_LARGE, "a part's header is larger than %d bytes",
                  FORM_FIELDS_MAX);
        return FORM_BAD;
    }
    if (end == NULL)
        return more(at_end, err);
    *ret_used = fields;
    d->state = IN_DATA;
    return FORM_PART;
}

/* How many bytes at the end of the window may be the beginning of a delimiter. */
static size_t suspect_tail(const struct form_decoder *d, const char *in, size_t len)
{
    size_t most = len < d->delimiter_len - 1 ? len : d->delimiter_len - 1;
    const char *at = in + len - most;
    while (at < in + len && (at = memchr(at, '\r', (size_t)(in + len - at))) != NULL) {
        size_t n = (size_t)(in + len - at);
        if (memcmp(at, d->delimiter, n) == 0)
            return n;
        at++;
    }
    return 0;
}

static enum form_step decode_data(struct form_decoder *d, const char *in, size_t len, bool at_end,
                                  size_t *ret_used, struct error *err)
{
    const char *found = memmem(in, len, d->delimiter, d->delimiter_len);
    size_t safe = found != NULL ? (size_t)(found - in) : len - suspect_tail(d, in, len);
    if (safe > 0) {
        *ret_used = safe;
        return FORM_DATA;
    }
    if (found == NULL)
        return more(at_end, err);
    *ret_used = d->delimiter_len;
    d->state = AT_BOUNDARY;
    return FORM_PART_END;
}

enum form_step form_decode(struct form_decoder *d, const char *in, size_t len, bool at_end,
                           size_t *ret_used, struct error *err)
{
    static enum form_step (*const decode[])(struct form_decoder *, const char *, size_t, bool,
                                            size_t *, struct error *) = {
        [AT_START] = decode_start,
        [AT_BOUNDARY] = decode_boundary,
        [IN_FIELDS] = decode_fields,
        [IN_DATA] = decode_data,
    };
    *ret_used = 0;
    for (;;) {
        if (d->state == AT_END)
            return FORM_END;
        size_t used = 0;
        unsigned state = d->state;
        enum form_step step = decode[state](d, in + *ret_used, len - *ret_used, at_end, &used, err);
        /* A step that needs nobody's attention goes on at once; content and fields are handed out
         * from the beginning of the window. */
        bool silent = step == FORM_MORE && d->state != state;
        if ((step == FORM_PART || step == FORM_DATA) && *ret_used > 0) {
            d->state = state;
            return FORM_MORE;
        }
        *ret_used += used;
        if (!silent)
            return step;
    }
}

/* --- a part's fields --- */

static int take_disposition(struct arena *arena, const char *value, struct form_part *part,
                            struct error *err)
{
    static const char type[] = "form-data";
    size_t len = sizeof(type) - 1;
    if (part->name != NULL)
        return invalid(err, "a part has two Content-Disposition fields");
    if (strncasecmp(value, type, len) != 0)
        return invalid(err, "a part's Content-Disposition is not form-data");
    const char *params = value + len, *name, *text;
    while ((name = take_param(arena, &params, &text)) != NULL) {
        const char **to = strcasecmp(name, "name") == 0       ? &part->name
                          : strcasecmp(name, "filename") == 0 ? &part->filename
                                                              : NULL;
        if (to == NULL)
            continue;
        if (*to != NULL)
            return error_set(err, ERROR_INVALID_MULTIPART, "a part has two parameters \"%s\"",
                             name);
        *to = text;
    }
    if (*params != '\0')
        return invalid(err, "a part's Content-Disposition is malformed");
    if (part->name == NULL)
        return invalid(err, "a part has no name");
    return 0;
}

static int take_field(struct arena *arena, char *line, struct form_part *part, struct error *err)
{
    char *at = line;
    while (is_token_char(*at))
        at++;
    if (at == line || *at != ':')
        return invalid(err, "a part's header field is malformed");
    *at++ = '\0';
    const char *value = skip_space(at);
    for (size_t len = strlen(value); len > 0 && strchr(" \t", value[len - 1]) != NULL; len--)
        at[(size_t)(value - at) + len - 1] = '\0';
    if (strcasecmp(line, "Content-Disposition") == 0)
        return take_disposition(arena, value, part, err);
    if (strcasecmp(line, "Content-Type") != 0)
        return 0;
    if (part->content_type != NULL)
        return invalid(err, "a part has two Content-Type fields");
    part->content_type = value;
    return 0;
}

static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
            return true;
    return false;
}

int form_part_parse(struct arena *arena, const char *fields, size_t len, struct form_part *ret_part,
                    struct error *err)
{
    struct form_part part = {0};
    const char *end = fields + len - 2; /* the empty line */
    while (fields < end) {
        const char *line_end = memmem(fields, (size_t)(end - fields), "\r\n", 2);
        size_t n = (size_t)(line_end - fields);
        if (has_control(fields, n) || fields[0] == ' ' || fields[0] == '\t')
            return invalid(err, "a part's header field is malformed");
        if (take_field(arena, arena_dup(arena, fields, n), &part, err) != 0)
            return -1;
        fields = line_end + 2;
    }
    if (part.name == NULL)
        return invalid(err, "a part has no Content-Disposition");
    *ret_part = part;
    return 0;
}
