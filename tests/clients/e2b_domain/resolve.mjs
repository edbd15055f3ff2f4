// SPDX-License-Identifier: Apache-2.0
// Preloaded (node --import): names below the server's domain lead to this machine, which is all that DNS would say.

import dns from "node:dns";

const domain = process.env.E2B_DOMAIN.split(":")[0];
const ask = dns.lookup;
dns.lookup = (host, options, done) => ask(host.endsWith(`.${domain}`) ? "127.0.0.1" : host, options, done);
