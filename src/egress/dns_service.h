/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answer to a sandbox's question. */

#include "egress/egress.h"

/*
 * Appends it to `out`. false: no answer at all. max: what fits into it, 0 for UDP, where the client
 * says that itself; longer ones are replaced by one that asks the client to come over TCP. Waits;
 * on a coroutine that holds a reference to the guest.
 */
bool dns_answer_question(struct egress *egress, struct guest *guest, struct slice message,
                         size_t max, struct buf *out);
