/* SPDX-License-Identifier: Apache-2.0 */

/* Documents to be written: yyjson's, in a request's memory, so that nobody has to free them. */

#include "json/json.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "json/utf8.h"

static void *arena_malloc(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void *arena_realloc(void *arena, void *ptr, size_t old_size, size_t size)
{
    void *larger = arena_alloc(arena, size);
    memcpy(larger, ptr, old_size < size ? old_size : size);
    return larger;
}

static void arena_ignore(void *arena, void *ptr)
{
}

yyjson_mut_doc *json_doc(struct arena *arena)
{
    const yyjson_alc alc = {arena_malloc, arena_realloc, arena_ignore, arena};
    return yyjson_mut_doc_new(&alc);
}

static char *write_text(const yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *ret_len)
{
    /* Through malloc(), because the text grows by steps and an arena keeps all of them. */
    yyjson_write_err problem;
    char *text = yyjson_mut_write_opts(doc, flags, NULL, ret_len, &problem);
    if (text == NULL && problem.code != YYJSON_WRITE_ERROR_INVALID_STRING)
        abort(); /* out of memory, or a document without a root */
    return text;
}

char *json_text(const yyjson_mut_doc *doc, bool pretty, size_t *ret_len)
{
    yyjson_write_flag flags = YYJSON_WRITE_INF_AND_NAN_AS_NULL;
    if (pretty)
        flags |= YYJSON_WRITE_PRETTY_TWO_SPACES;
    char *text = write_text(doc, flags, ret_len);
    if (text != NULL)
        return text;

    /* Somewhere in it is a string that is not UTF-8 (a file's name, a message cut in the middle of
     * a character). Outside of strings all is ASCII, so mending the whole text mends the string. */
    size_t len = 0;
    _cleanup_free_ char *raw = write_text(doc, flags | YYJSON_WRITE_ALLOW_INVALID_UNICODE, &len);
    if (raw == NULL)
        abort();
    _cleanup_buf_ struct buf clean = BUF_INIT(UTF8_CLEAN_MAX(len));
    utf8_clean((struct slice){raw, len}, &clean);
    if (clean.failed)
        abort();
    *ret_len = clean.len;
    return buf_steal(&clean);
}

struct slice json_write(struct arena *arena, const yyjson_mut_doc *doc, bool pretty)
{
    size_t len = 0;
    _cleanup_free_ char *text = json_text(doc, pretty, &len);
    return (struct slice){arena_dup(arena, text, len), len};
}
