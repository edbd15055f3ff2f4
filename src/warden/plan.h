/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The check of a plan. cellad faces the network and may have been taken over: what it asks for is
 * looked at here as if a stranger had sent it, before anything is made.
 */

#include <stdbool.h>

#include "base/error.h"
#include "wire/messages.h"

enum { PLAN_ID_MAX = 32 };

bool plan_id_valid(const char *id); /* [a-z0-9]{1,32}: safe as a file and a cgroup name */
int plan_check(const struct plan *plan, struct error *err);
int plan_check_clone(const struct warden_clone *clone, struct error *err);
int plan_check_update(const struct warden_update *update, struct error *err);
