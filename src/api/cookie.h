/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cookies at the border between this server and programs in sandboxes. Some are this server's own
 * (tokens of previews and ports), and no program may see or set them, whatever origin it shares
 * with another: browsers keep cookies by host name, and not by port.
 */

#include "base/arena.h"

#define COOKIE_PREVIEW     "bl_preview_token"
#define COOKIE_PORT_PREFIX "cella_port_"

/* The value of a cookie in a Cookie field (NULL: there is none), in the arena; NULL when there is
 * none of that name. */
const char *cookie_get(struct arena *arena, const char *field, const char *name);

/* A Cookie field without this server's own; NULL when nothing is left. */
const char *cookie_for_program(struct arena *arena, const char *field);

/* A program's Set-Cookie field without a Domain, which would hand it to its neighbours below the
 * same domain; NULL when it is for one of ours. */
const char *cookie_from_program(struct arena *arena, const char *field);
