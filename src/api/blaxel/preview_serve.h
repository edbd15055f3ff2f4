/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Those who are inside by a preview (preview_serve.c), once they are not to be any more. */

#include "api/api.h"

/* Ends what is open by that preview: by that token of it, or (NULL) by any and by none. */
void preview_serve_end(const struct api *api, const char *preview_id, const char *token_name);
