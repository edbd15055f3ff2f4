/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether what sandboxes need is there: looked at when somebody asks, at most once a second. */

#include "sandbox/sandbox.h"

struct readiness { /* what is wrong with each; "": nothing */
    char store[160], warden[160], disk[160];
};

/* On a coroutine. Waits a few seconds at most: who does not answer by then is not ready. */
void sandboxes_readiness(struct sandboxes *s, struct readiness *ret_readiness);
