/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The limits that no configuration changes, together in one place. */

enum {
    /* Names */
    NAME_MAX_LEN = 63,                       /* a DNS label */
    SANDBOX_PATH_MAX = 2 * NAME_MAX_LEN + 1, /* "group/name" */
    SANDBOX_ID_LEN = 12,                     /* lower-case base 32, made by the server */
    INSTANCE_ID_LEN = 8,                     /* one per data folder */
    KEY_ID_LEN = 12,                         /* as a sandbox's */

    /* Callers */
    WORKSPACES_MAX = 1000,
    WORKSPACE_LIMITS_MAX = 255, /* bytes of rates, and of quotas, that are a workspace's own */
    KEYS_PER_WORKSPACE_MAX = 1000,
    KEY_LIFETIME_MAX_S = 10 * 365 * 24 * 3600,
    TOKEN_MAX = 2048, /* bytes of a token that is looked at */
    TOKEN_LIFETIME_S = 3600,
    JWT_MAX = 8 * 1024, /* bytes of a JWT of somebody else's */
    JWT_KID_MAX = 255,  /* of the id of a key */
    JWT_ISSUERS_MAX = 16,
    JWT_MAPPED_MAX = 256, /* rows of one map from claims to roles or workspaces */
    JWT_LEEWAY_MAX_S = 300,
    TRUSTED_PROXIES_MAX = 32,
    BOX_GRANTED_MAX = 16384,          /* sandboxes whose tokens with an end are remembered … */
    BOX_GRANTS_MAX = 8,               /* … and how many of each */
    JWT_GRANT_S = 24 * 3600,          /* how long that counts which a JWT's holder hands out … */
    JWT_GRANT_STEPS = 4,              /* … less a step of these at most */
    JWT_CONFIG_MAX = 4 * 1024 * 1024, /* with the key sets of files in it */
    JWKS_MAX = 256 * 1024,            /* bytes of a key set */
    JWKS_KEYS_MAX = 64,
    JWKS_FRESH_MAX_S = 86400, /* how long a set of keys may go without being asked for again … */
    JWKS_STALE_MAX_S = 30 * 86400, /* … and count while it cannot be had */
    TOKENS_CACHED_MAX = 1024,      /* whose signature was found right */
    SANDBOX_TOKEN_S = 24 * 3600,   /* of a token that is bound to one, unless it is said */
    SANDBOX_TOKEN_MAX_S = 365 * 24 * 3600,

    /* Secrets that are sent for sandboxes, never into them */
    SECRETS_MAX = 1000, /* of one workspace */
    SECRET_VALUE_MAX = 8 * 1024,
    SECRET_HOSTS_MAX = 32, /* that one may be sent to */
    SECRET_METADATA_MAX = 4 * 1024,

    /* HTTP */
    HTTP_HEADERS_MAX = 64 * 1024,       /* request line and all fields, bytes */
    HTTP_HEADER_COUNT_MAX = 100,        /* fields */
    HTTP_TARGET_MAX = 16 * 1024,        /* request target, bytes */
    HTTP_JSON_BODY_MAX = 24 << 20,      /* holds 16 MiB of content as base64 */
    HTTP_IDLE_TIMEOUT_MS = 75 * 1000,   /* between two requests */
    HTTP_HEADER_TIMEOUT_MS = 15 * 1000, /* from the first byte to the end of the fields */
    HTTP_BODY_TIMEOUT_MS = 60 * 1000,   /* without a byte moving, either way */
    HTTP_BODY_SLOW_MS = 30 * 1000,      /* from here on a body that is read as a whole … */
    HTTP_BODY_RATE_MIN = 16 * 1024,     /* … has to have come with so many bytes per second */
    HTTP_CONNECTIONS_MAX = 8192,
    TLS_PEM_MAX = 128 * 1024,        /* a certificate, its chain and its key, bytes */
    WEBSOCKET_MESSAGE_MAX = 1 << 20, /* bytes, all pieces together */
    WEBSOCKET_PING_MS = 30 * 1000,   /* of silence; after as long again the peer is dead */
    WEBSOCKET_CLOSE_MS = 5 * 1000,   /* for the peer's answer to a Close */

    FORM_FILE_HELD_MAX = 8 << 20, /* of a file whose permissions may come behind it, bytes */

    /* JSON */
    JSON_DEPTH_MAX = 64,
    JSON_VALUES_MAX = 500 * 1000, /* of a text: each takes 16 bytes, whatever it is */
    FILE_JSON_MAX = 16 << 20,     /* file content inside JSON, bytes before encoding */

    /* Wire */
    WIRE_PAYLOAD_MAX = 1 << 20, /* one frame */
    WIRE_DATA_CHUNK = 256 * 1024,
    CHANNEL_ANSWER_MAX = 24 << 20, /* all frames of one answer: 256 processes with their commands */

    /* Metrics */
    STATS_IDS_MAX = 16,         /* sandboxes in one question to the warden: it answers in one go */
    METRICS_TEXT_MAX = 4 << 20, /* all figures of the server, as text */
    METRICS_POINTS_MAX = 11000, /* of one series in an answer: a week in minutes fits */

    /* Egress */
    EGRESS_POLICY_MAX = 256 * 1024,  /* bytes of one sandbox's, packed */
    EGRESS_LOG_MAX = 512,            /* entries kept of one sandbox */
    EGRESS_LOG_PULL_MAX = 256,       /* entries in one answer to who keeps them for good */
    EGRESS_LOG_WAIT_MS = 10 * 1000,  /* that such an answer may take */
    EGRESS_GUEST_DIRECT_MAX = 4096,  /* connections past the proxies that are remembered, of one */
    EGRESS_CLOSED_MAX = 256,         /* … and that wait to be counted, of all */
    EGRESS_GUESTS_MAX = 20000,       /* sandboxes */
    EGRESS_FLOWS_MAX = 8192,         /* connections through the proxies, of all together … */
    EGRESS_GUEST_FLOWS_MAX = 128,    /* … and of one */
    EGRESS_QUESTIONS_MAX = 1024,     /* to the resolver, under way, of all … */
    EGRESS_GUEST_QUESTIONS_MAX = 64, /* … and of one */
    EGRESS_QUESTIONS_PER_S = 100,    /* of one: what is more is dropped */
    EGRESS_QUESTIONS_BURST = 200,
    EGRESS_LOOKUPS_PER_S = 20, /* of one, that a name server has to be asked for */
    EGRESS_LOOKUPS_BURST = 100,
    EGRESS_NAMES_MAX = 4096, /* whose addresses are remembered */
    EGRESS_NAME_MAX = 190,   /* bytes of a name, where names are listed: longer ones carry data */
    EGRESS_SECRETS_MAX = 512 * 1024, /* bytes of one sandbox's headers with their values */
    EGRESS_CA_MAX = 8 * 1024,        /* of its authority's certificate, and of its key */

    /* Network */
    PLAN_NET_RULES_MAX = 256,   /* on addresses, of one sandbox, in the kernel */
    NET_ADMIT_TTL_MAX_S = 3600, /* for which the answer to a question admits an address */

    /* Sandboxes */
    ENV_VARS_MAX = 256,
    ENV_BYTES_MAX = 64 * 1024,
    COMMAND_MAX = 128 * 1024, /* what one exec argument can hold */
    EVENTS_KEPT_MAX = 100,
    NOTES_KEPT_MAX = 200, /* what a sandbox's log says of its life besides events */
    LABELS_MAX = 64,
    LABEL_PREFIX_MAX = 253, /* of a key, before its slash: a DNS name */
    LABEL_NAME_MAX = 63,
    LABEL_VALUE_MAX = 255,
    EXTERNAL_ID_MAX = 64,
    DISPLAY_NAME_MAX = 255,
    BLAXEL_SPEC_MAX = 16 * 1024,
    E2B_SPEC_MAX = 32 * 1024,
    GROUPS_MAX = 1000, /* of one workspace */
    GROUP_SANDBOXES_MAX = 1000,
    GROUP_SPEC_MAX = 128 * 1024, /* what its sandboxes inherit, as JSON text */
    PREVIEWS_MAX = 100,          /* of one sandbox */
    PREVIEW_TOKENS_MAX = 100,    /* of one preview */
    PREVIEW_HEADERS_MAX = 8 * 1024,
    PATH_BYTES_MAX = 4096,

    /* How long a sandbox lives */
    LIFESPAN_MIN_S = 1,
    LIFESPAN_MAX_S = 3650 * 24 * 3600,

    /* Pools of sandboxes that are made ahead */
    POOLS_MAX = 64,
    POOL_SIZE_MAX = 1000, /* spares of one */
    POOL_AT_ONCE_MAX = 8, /* made at the same time, by one and by all together */
    POOL_TTL_MIN_S = 1,
    POOL_TTL_MAX_S = 30 * 24 * 3600,

    /* Published ports */
    PORTS_MAX = 64,           /* of one sandbox */
    PORT_COMMAND_MAX = 4096,  /* bytes of what serves one */
    PORT_TOKEN_S = 24 * 3600, /* a token's life, unless it is said */
    PORT_TOKEN_MAX_S = 365 * 24 * 3600,
    PORT_CONNECTIONS_MAX = 256,       /* on one port of the host */
    PORT_READY_MS = 60 * 1000,        /* from the start of its command to the first connection */
    PORT_COMMAND_AGAIN_MS = 5 * 1000, /* between two starts of it */

    /* Streams into a sandbox */
    TUNNELS_MAX = 512,             /* open at once, per sandbox */
    TUNNELS_IDLE_MAX = 32,         /* kept for the next request, per sandbox */
    TUNNEL_KEEP_MS = 10 * 1000,    /* … for so long */
    TUNNEL_CONNECT_MS = 10 * 1000, /* a listener that accepts nobody */
    PROXY_TIMEOUT_MS = 300 * 1000, /* until a program answers, and between two pieces of it */
    PROXY_TIMEOUT_MAX_S = 3600,
    TUNNEL_IDLE_MS = 3600 * 1000, /* without a byte, either way */

    /* Logs of sandboxes */
    LOGS_TAIL_MAX = 10000,    /* lines in an answer */
    LOGS_BYTES_MAX = 8 << 20, /* of them all */
    LOGS_READ_MAX = 64 << 20, /* output that is looked through for them */
    LOG_LINE_MAX = 16 * 1024, /* of one; longer ones are cut */
    LOG_FOLLOWERS_MAX = 16,   /* of one sandbox's */

    /* Processes, kept by the agent */
    PROCESS_LOG_MAX = 1 << 20,      /* bytes kept per stream */
    PROCESS_INLINE_MAX = 64 * 1024, /* output that comes with an exit, per stream */
    PROCESSES_KEPT_MAX = 256,       /* finished ones */
    FIGURES_CONNECTIONS_MAX = 64,   /* at the address of --metrics-listen */
    CHANNEL_QUESTIONS_MAX = 1024,   /* to one agent: commands whose end is asked for in advance */
    AUDIT_LEFT_MAX = 64 * 1024,     /* commands without a reader; of more, no line tells the end */
    LOG_BYTES_KEPT_MAX = 16 << 20,  /* of finished processes, in one sandbox */
    PROCESS_NAME_MAX = 128,
    EXECUTION_ID_MAX = 23,           /* bytes of what cellad calls an execution */
    PROCESS_PID_MAX = 1 << 22,       /* the kernel gives out smaller ones */
    PROCESS_INPUT_CHUNK = 64 * 1024, /* bytes for its stdin at a time */
    PROCESS_INPUTS_MAX = 8,          /* … of which so many may wait for it */
    PROCESS_PORTS_MAX = 1024,        /* that are told of one process */
    MONITORS_MAX = 16,               /* processes of one sandbox whose ports are told of */
    MONITOR_PORTS_MAX = 256,         /* that one of them remembers */
    WAIT_PORTS_MAX = 64,             /* that one exec waits for */
    COMMAND_MEMORY_MIN = 4 << 20,    /* limits of one command: with less nothing gets to exec … */
    COMMAND_OPEN_FILES_MIN = 4,      /* … the three it starts with, and one to work with */

    /* Commands over one WebSocket */
    EXEC_STREAMS_MAX = 32,       /* at once */
    EXEC_INPUT_MAX = 256 * 1024, /* bytes of stdin that wait for a process, of one stream */
    EXEC_PIECE_MAX = 32 * 1024,  /* of output in one message: escaped, it stays well below 1 MiB */

    /* Terminals, kept by the agent */
    TERMINALS_MAX = 16,             /* sessions of one sandbox */
    TERMINAL_ATTACHED_MAX = 64,     /* connections to them, together */
    TERMINAL_SESSION_MAX = 64,      /* characters of a session's id */
    TERMINAL_RING = 256 * 1024,     /* bytes of output kept per session, for those who come back */
    TERMINAL_CHUNK_MAX = 32 * 1024, /* of input or output in one frame */
    TERMINAL_INPUT_MAX =
        16 * 1024,            /* of input that its program has not read: then no more is taken */
    TERMINAL_SIZE_MAX = 4096, /* columns and rows */
    TERMINAL_IDLE_MS = 3600 * 1000, /* with nobody attached */
    TERMINAL_IDLE_MAX_MS = 24 * 3600 * 1000,
    TERMINAL_ENDED_MS = 60 * 1000, /* its last output waits for somebody to come back for it */
    TERMINAL_GRACE_MS = 1000,      /* from SIGHUP to SIGKILL */
    TERMINAL_STALL_MS = 10 * 1000, /* how long a program waits for a reader that does not read */

    OUTPUT_TIMES_MAX = 8 * 1024, /* bytes of marks that tell when output came, per stream */
    FILE_WORKERS_MAX = 32,
    FILE_ATTRIBUTES_MAX = 16 * 1024, /* bytes of extended attributes, of one file */
    DIR_ENTRIES_MAX = 100 * 1000,

    /* Trees of files */
    TREE_DEPTH_MAX = 28,          /* levels in one answer: two of JSON's each */
    TREE_ENTRIES_MAX = 50 * 1000, /* in one answer */
    TREE_FILES_MAX = 10 * 1000,   /* in one put; each is an open file until all are there */

    /* Watching and searching */
    WATCH_WORKERS_MAX = 16, /* besides FILE_WORKERS_MAX: they stay for long */
    WATCH_DIRS_MAX = 8192,  /* of one watch */
    WATCH_QUEUE_MAX = 1 << 20,
    WATCHERS_MAX = 1024,              /* of E2B's clients, in one workspace */
    WATCHER_IDLE_MS = 10 * 60 * 1000, /* that nobody asks one: then it goes */
    WATCHER_ID_LEN = 20,
    PATTERNS_BYTES_MAX = 8 * 1024,
    FIND_QUERY_MAX = 1024,
    FIND_RESULTS_MAX = 10 * 1000,
    FIND_FILE_MAX = 16 << 20, /* larger files are not searched */
    FIND_TEXT_MAX = 512,
    FIND_TIME_MAX_MS = 30 * 1000,

    /* History */
    HISTORY_ROOTS_MAX = 4,
    HISTORY_ROOTS_BYTES_MAX = HISTORY_ROOTS_MAX * (PATH_BYTES_MAX + 1),
    HISTORY_DEPTH_MAX = 100,          /* levels below a root */
    HISTORY_ENTRIES_MAX = 200 * 1000, /* of all roots together */
    HISTORY_LISTING_MAX = 64 << 20,   /* bytes of one listing's frames */
    HISTORY_READ_MAX = 4096,          /* paths in one request */
    HISTORY_READ_BYTES_MAX = 512 * 1024,
    HISTORY_WORKERS_MAX = 4,    /* besides FILE_WORKERS_MAX: clients' files do not hold it up */
    HISTORY_FILE_MAX = 1 << 30, /* the largest that may be asked for, whatever a sandbox's own */

    /* Uploads in parts */
    UPLOADS_MAX = 32,             /* under way in one sandbox */
    UPLOAD_PARTS_MAX = 10 * 1000, /* of one */
    UPLOAD_IDLE_S = 60 * 60,      /* without a new part: then it is dropped */

    /* Code */
    CODE_CONTEXTS_MAX = 32,       /* of one sandbox */
    CODE_SOURCE_MAX = 8 << 20,    /* of one run */
    CODE_FRAME_MAX = 16 << 20,    /* from a kernel: a result with all its representations */
    CODE_ITEMS_MAX = 64,          /* representations of a result */
    CODE_ANSWER_MAX = 32 << 20,   /* output and results in an answer that comes in one piece */
    CODE_START_MS = 60 * 1000,    /* until a kernel listens, on a busy machine */
    CODE_INTERRUPT_MS = 5 * 1000, /* after an interrupt: then it is killed */
    CODE_TIME_MAX_S = 24 * 3600,  /* a time-out of one run */

    /* History */
    HISTORY_FILE_DEFAULT = 10 << 20, /* the largest file that is kept */
    HISTORY_FILE_MOST = 64 << 20, /* … that a sandbox can ask for: git reads two of them at once */
    HISTORY_DIFFS_MAX = 6,        /* at a time, of all sandboxes: the others wait … */
    HISTORY_LOGS_MAX = 6,         /* the same for lists of commits … */
    HISTORY_EACH_MAX = 2,         /* … so many of them of one workspace … */
    HISTORY_QUEUE_MAX = 32,       /* … of which so many may wait */
    HISTORY_LARGE_FILES = 20 * 1000, /* from so many on a look takes much memory … */
    HISTORY_LARGE_MAX = 4,      /* … so many are taken at a time, of all sandboxes, and … */
    HISTORY_LARGE_EACH_MAX = 2, /* … of one workspace */
    HISTORY_LARGE_QUEUE_MAX = 4096,
    HISTORY_IGNORE_MAX = 100,            /* patterns of one sandbox */
    HISTORY_IGNORE_LEN_MAX = 200,        /* bytes of one */
    HISTORY_IGNORE_BYTES_MAX = 4 * 1024, /* of all */
    HISTORY_MATCH_MAX = 1 << 30,         /* steps of holding files against them, at one time */
    HISTORY_LEFT_SHOWN = 100,            /* files that a rollback has left alone, in an answer */
    HISTORY_LEFT_BYTES_MAX = 64 * 1024,  /* of their names and reasons */
    HISTORY_PACKS_MAX = 50,              /* then they are made one */
    HISTORY_OPEN_MAX = 64, /* executions nobody waits for whose end is looked out for */
    HISTORY_REPOSITORY_MAX = 2000 << 20, /* bytes: then its older half goes; and of the files */
    HISTORY_REPOSITORY_MIN = 1 << 20,    /* … where the server was told another number */
    HISTORY_PAGE_MAX = 1000,             /* commits in one answer */
    HISTORY_PAGE_DEFAULT = 100,
    HISTORY_EXECUTIONS_BYTES = 1 << 20, /* of those that are remembered: some 15 000 */
    HISTORY_LINES_BYTES = 2048,         /* of them in memory: some 28 of each sandbox */
    HISTORY_JOURNAL_BYTES = 1 << 20,    /* of all sandboxes' newest: then it is written anew */
    HISTORY_FILES_SHOWN = 1000,         /* names of one commit, in an answer */
    HISTORY_DIFF_FILES_MAX = 2000,      /* in an answer */
    HISTORY_DIFF_FILE_MAX = 1 << 20,    /* bytes of one file's part */
    HISTORY_DIFF_BYTES_MAX = 16 << 20,  /* of all */

    SCALEBOX_PORTS_MAX = 32, /* listed for one sandbox by Scalebox's clients */

    /* Networks */
    NET_RULES_MAX = 256,               /* in a list of one policy */
    NET_HEADERS_MAX = 32,              /* that one sandbox's requests are given */
    NET_POLICY_BYTES_MAX = 256 * 1024, /* a packed policy: every list full of the longest names */
    NET_EXCEPTIONS_MAX = 64,           /* private ranges that the operator opens */
};
