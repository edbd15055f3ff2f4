/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Environment variables that a client marked as secret ("secret": true of Blaxel's envs). Commands
 * in the sandbox get their values; no API shows them, whichever API asks. The names are kept with
 * the sandbox, in runtime.secretEnvs of the spec that the Blaxel facade stores.
 */

#include "json/json.h"
#include "sandbox/sandbox.h"

/* What is shown in the place of a value. */
#define SECRET_ENV_SHOWN "********"

/* The sandbox's environment with SECRET_ENV_SHOWN for each secret value. */
struct slice secret_env_shown(struct arena *arena, const struct sandbox_info *info);

/* Completes the environment that a client sends for a sandbox. Clients read a sandbox, change a
 * part of it and send all of it: a secret variable that has SECRET_ENV_SHOWN as its value keeps the
 * one that it has. Items without a value (a patch that removes one) stay as they are.
 * PAYLOAD_TOO_LARGE. */
int secret_env_restore(struct arena *arena, const struct sandbox_info *info, struct slice *env,
                       struct error *err);
