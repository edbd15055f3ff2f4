/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What cellad tells and asks the egress process, over DIR/run/egress.sock (wire/messages.h). */

#include <sys/types.h>

#include "egress/egress.h"

/* Serves a listening unix socket (owned from now on) for ever, on a coroutine of its own. Only root
 * and this user are listened to. */
void control_serve(struct egress *egress, int fd, uid_t user);
