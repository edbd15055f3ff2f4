/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `cella login` leaves for later calls: a server, a key, perhaps a workspace. A small JSON
 * file of the user's own: CELLA_CONFIG, or cella/config.json below XDG_CONFIG_HOME or ~/.config.
 */

#include <stdbool.h>

#include "base/error.h"
#include "base/limits.h"
#include "cli/settings.h"

struct config {
    bool found; /* false: there is no such file, and nothing else is set */
    char url[URL_MAX];
    char key[KEY_MAX];
    char workspace[NAME_MAX_LEN + 1]; /* "": the key's own */
};

/* Where it is; false when nothing says who the user is. */
bool config_path(char out[SETTINGS_PATH_MAX]);

/* PERMISSION_DENIED when others could read it: it holds a key. INVALID_JSON … when it is broken. */
int config_load(struct config *ret_config, struct error *err);
/* Replaces it in one step, readable by its owner alone. */
int config_save(const struct config *config, struct error *err);
/* *ret_was_there: whether there was one. */
int config_remove(bool *ret_was_there, struct error *err);
