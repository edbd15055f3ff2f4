/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Charts as Scalebox's protocol types them, which tells elements apart by the member they are in.
 */

#include "json/json.h"

/* chart: as kernels tell them ({"type", "title", "elements", …}), and as they may be broken. NULL
 * when it is no chart. */
yyjson_mut_val *scalebox_chart_json(yyjson_mut_doc *doc, yyjson_val *chart);
