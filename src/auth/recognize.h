/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What opens this server, recognized where it is not asked for: so that it goes no further. Whose
 * it is, whether it counts (still) and what it opens is not looked at, and nothing is counted.
 */

#include <stdbool.h>

#include "auth/auth.h"
#include "base/arena.h"

/* A key, in either of its forms (auth/box_token.h); a token of this server's for its API; or a JWT
 * that one of the trusted issuers has made for this server, and not for somebody else. */
bool auth_recognizes(const struct auth *auth, struct arena *arena, const char *credential);

/* A token of that sandbox, as E2B's and Scalebox's clients show it. */
bool auth_recognizes_box(const struct auth *auth, const char *sandbox_id, const char *token);
