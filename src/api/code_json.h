/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every facade that runs code shares: text in whole characters, and results as members. */

#include "base/arena.h"
#include "code/code.h"
#include "json/json.h"

/* One stream of output on its way into JSON strings: a character that was written in two pieces is
 * told in one. Start from a zeroed struct. */
struct code_text {
    char cut[4]; /* the beginning of a character whose rest is to come */
    unsigned char cut_len;
};

/* What can be told now; may be empty. Points into the data or the arena. */
struct slice code_text_add(struct code_text *text, struct arena *arena, struct slice data);
/* What is left at the end: half a character, or nothing. */
struct slice code_text_end(struct code_text *text);

/*
 * A result's representations as members of the object: text, html, markdown, svg, png, jpeg, pdf,
 * latex, json, javascript, data and chart under these names, others by their media type in
 * "extra". What was meant to be JSON and is not becomes a string. All is copied into the document.
 */
void code_items_json(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct code_event *event);
