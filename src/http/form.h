/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The grammar of multipart/form-data (RFC 7578, RFC 2046), as pure functions: no socket, no
 * waiting. http/multipart.h reads a request's body with them.
 *
 *     form_decode(&d, in, len, at_end, &used, err)  … then:
 *       FORM_MORE      skip `used`, and come back with more bytes behind what is left
 *       FORM_PART      the first `used` bytes are the fields of a part: form_part_parse(), skip
 *       FORM_DATA      the first `used` bytes are the part's content; take them
 *       FORM_PART_END  skip `used`; the part is over
 *       FORM_END       skip `used`; the form is over, whatever follows
 *       FORM_BAD       INVALID_MULTIPART
 *
 * `in` may be a window of any size from FORM_WINDOW_MIN on; at_end: nothing follows it. Strict:
 * every line ends in CRLF, nothing stands before the first boundary (but one line end) or behind a
 * boundary on its line.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    FORM_BOUNDARY_MAX = 70,
    FORM_DELIMITER_MAX = FORM_BOUNDARY_MAX + 4, /* CR LF - - boundary */
    FORM_FIELDS_MAX = 4096,                     /* of one part, bytes */
    FORM_WINDOW_MIN = FORM_FIELDS_MAX + FORM_DELIMITER_MAX + 4,
    FORM_PARTS_MAX = 1000,
};

enum form_step { FORM_MORE, FORM_PART, FORM_DATA, FORM_PART_END, FORM_END, FORM_BAD };

struct form_decoder {
    char delimiter[FORM_DELIMITER_MAX + 1];
    size_t delimiter_len;
    unsigned state;
    unsigned parts;
};

/* From a Content-Type field. UNSUPPORTED_MEDIA_TYPE unless it is multipart/form-data,
 * INVALID_MULTIPART without a good boundary. */
int form_decoder_init(struct form_decoder *d, const char *content_type, struct error *err);

enum form_step form_decode(struct form_decoder *d, const char *in, size_t len, bool at_end,
                           size_t *ret_used, struct error *err);

struct form_part {
    const char *name;
    const char *filename;     /* NULL: a field, not a file. A stranger's: no path without a check */
    const char *content_type; /* NULL: none given */
};

/* Takes a part's fields apart; strings are in the arena, without control characters. */
int form_part_parse(struct arena *arena, const char *fields, size_t len, struct form_part *ret_part,
                    struct error *err);
