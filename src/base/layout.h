/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names below the data folder. The supervisor, the warden, cellad and the CLI agree on them here.
 *
 *   lock           flock: one server per data folder; held by the supervisor, the warden and cellad
 *   instance       INSTANCE_ID_LEN characters; part of every name outside the folder (cgroups, …)
 *   .restore/      what a restore has still to put into its place, if the folder is a mount point
 *   api-key        the key made on the first start, mode 0600
 *   secret-key     what secrets in the database are sealed with, mode 0600
 *   tls/           0711
 *     ca.pem         certificate of the server's own authority, for everybody
 *     ca.key         its key, mode 0600
 *     server.pem     the server's certificate, and its key, mode 0600
 *   audit/         who did what: a hash chain of lines (src/audit); belongs to cellad's user
 *   db/            SQLite; belongs to the user that cellad runs as
 *     audit-head     number and hash of the audit log's newest line
 *     metrics/<id>   what a sandbox has used, in rings of a fixed size
 *     network/<id>   what a sandbox tried to reach, as much as fits into a fixed size
 *   history/       belongs to the user that cellad runs as
 *     <id>/          what became of a sandbox's files: sandbox/history_repo.h
 *     journal        the newest executions of all of them: sandbox/history_journal.h
 *   run/           0750 root:cella
 *     warden.sock    where the warden listens
 *     egress.sock    where the egress process takes policies
 *     api.sock       every API again, for programs of this machine: faster than TCP; keys count
 *     agents/<id>    listening sockets of the running sandboxes' agents
 *     sandboxes/<id> what the warden knows of a sandbox that runs or is being made, to adopt it
 *     router         the network namespace that sandboxes' interfaces end in
 *     server         one line each: pid of the supervisor, of the warden, of cellad, the URL, and
 *                    the pid of the egress process (0: none)
 *   images/        image store; images/host is made at every start
 *   volume.img     the btrfs volume, where the folder's own file system is none
 *   volume/        mount point of it (or a plain folder on btrfs): one subvolume per sandbox
 */

#define LAYOUT_LOCK               "lock"
#define LAYOUT_INSTANCE           "instance"
#define LAYOUT_RESTORE            ".restore"
#define LAYOUT_API_KEY            "api-key"
#define LAYOUT_SECRET_KEY         "secret-key"
#define LAYOUT_TLS                "tls"
#define LAYOUT_TLS_CA             "tls/ca.pem"
#define LAYOUT_TLS_CA_KEY         "tls/ca.key"
#define LAYOUT_TLS_SERVER         "tls/server.pem"
#define LAYOUT_DB_DIR             "db"
#define LAYOUT_DB                 "db/cella.db"
#define LAYOUT_AUDIT              "audit"
#define LAYOUT_AUDIT_HEAD         "db/audit-head"
#define LAYOUT_METRICS            "db/metrics"
#define LAYOUT_NETWORK_LOGS       "db/network"
#define LAYOUT_HISTORY            "history"
#define LAYOUT_HISTORY_JOURNAL    "journal" /* in it; too short for a sandbox's id */
#define LAYOUT_RUN                "run"
#define LAYOUT_WARDEN_SOCK        "run/warden.sock"
#define LAYOUT_EGRESS_SOCK        "run/egress.sock"
#define LAYOUT_WARDEN_EGRESS_SOCK "run/warden-egress.sock"
#define LAYOUT_API_SOCK           "run/api.sock"
#define LAYOUT_AGENTS             "run/agents"
#define LAYOUT_RECORDS            "run/sandboxes"
#define LAYOUT_ROUTER             "run/router"
#define LAYOUT_SERVER             "run/server"
#define LAYOUT_IMAGES             "images"
#define LAYOUT_VOLUME_IMG         "volume.img"
#define LAYOUT_VOLUME             "volume"

#define DEFAULT_DATA_DIR "/var/lib/cella"
#define DEFAULT_LISTEN   "127.0.0.1:7070"
#define DEFAULT_USER     "cella"
#define DEFAULT_DOMAIN   "localhost"
#define DEFAULT_PORTS    "127.0.0.1:30000-32767"
