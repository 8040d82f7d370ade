CREATE SCHEMA greenroom;
SET LOCAL search_path = greenroom;

-- `address_secret`: what addresses of content are signed with, by every node.
-- `timeline`: which server it was, and on which timeline: another may lack commits.
CREATE TABLE cluster (
    one boolean PRIMARY KEY CHECK (one), format int NOT NULL, min_format int NOT NULL, address_secret bytea, timeline text
);

-- One start of one process; a number is never used twice. A heartbeat changes one row for all spaces of a node.
CREATE TABLE node (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    home text NOT NULL,
    address text NOT NULL,
    fingerprint bytea NOT NULL,
    format int NOT NULL,
    -- Directories that it offers to spaces, as `label=path`.
    mounts text[] NOT NULL,
    expires timestamptz NOT NULL,
    steady_since timestamptz NOT NULL,
    taken bigint NOT NULL,
    draining boolean NOT NULL,
    -- Spaces of the node's own settings: they stay as long as it runs.
    held bigint[] NOT NULL DEFAULT '{}',
    -- What the spaces do that it serves and that do most, for operators to look at.
    busiest jsonb NOT NULL DEFAULT '[]'
) WITH (fillfactor = 40);

CREATE TABLE space (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text UNIQUE NOT NULL,
    removed_at timestamptz,
    -- The label of the directory that it works in, on nodes that offer one.
    mount text
);

-- The row that every batch changes: who may write, and how far it came.
CREATE TABLE lease (
    space bigint PRIMARY KEY,
    node bigint,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    seq bigint NOT NULL,
    log_floor bigint NOT NULL,
    format int NOT NULL DEFAULT 1
) WITH (fillfactor = 40);
CREATE INDEX lease_node ON lease (node);

-- The first action of each day on which something was recorded, by the clock of the database: what a space keeps of its log in
-- days is found by it.
CREATE TABLE log_day (space bigint, day int, first_seq bigint NOT NULL, PRIMARY KEY (space, day));

-- An operator wants a space to be served by a node. While it is there, no other takes the space.
CREATE TABLE move_order (
    space bigint PRIMARY KEY,
    target bigint NOT NULL,
    asked_at timestamptz NOT NULL
);

-- What is indexed of a channel, and what is rewritten with almost every batch, are apart.
CREATE TABLE channel (
    space bigint, id bigint,
    uri text NOT NULL,
    kind smallint NOT NULL,
    parent bigint,
    duty smallint NOT NULL,
    disposed_at bigint,
    PRIMARY KEY (space, id)
);
CREATE UNIQUE INDEX channel_uri ON channel (space, uri) WHERE disposed_at IS NULL;
CREATE INDEX channel_duty ON channel (space, id) WHERE duty <> 0 AND disposed_at IS NULL;
CREATE INDEX channel_parent ON channel (space, parent) WHERE parent IS NOT NULL;
CREATE INDEX channel_disposed ON channel (space, disposed_at) WHERE disposed_at IS NOT NULL;
CREATE TABLE head (
    space bigint, channel bigint,
    head_seq bigint NOT NULL,
    private bytea NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (space, channel)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE action (
    space bigint, channel bigint, seq bigint,
    bytes bytea NOT NULL,
    PRIMARY KEY (space, channel, seq)
);

CREATE TABLE turn (
    space bigint, channel bigint, n bigint,
    id text NOT NULL,
    outcome smallint NOT NULL,
    hidden_at bigint,
    size bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (space, channel, n)
);
CREATE INDEX turn_id ON turn (space, channel, id);
CREATE TABLE turn_range (
    space bigint, chat bigint, pos bigint,
    source bigint NOT NULL,
    first_n bigint NOT NULL,
    last_n bigint NOT NULL,
    visible_n bigint NOT NULL,
    as_of bigint NOT NULL,
    PRIMARY KEY (space, chat, pos)
);
CREATE INDEX turn_range_source ON turn_range (space, source);

CREATE TABLE summary (
    space bigint, session bigint,
    uri text NOT NULL,
    modified bigint NOT NULL,
    created bigint NOT NULL,
    empty boolean NOT NULL,
    creator text,
    json bytea NOT NULL,
    PRIMARY KEY (space, session)
);
CREATE INDEX summary_modified ON summary (space, modified DESC, session DESC);
CREATE INDEX summary_empty ON summary (space, created, session) WHERE empty;

CREATE TABLE client (
    space bigint, client_id text,
    version text NOT NULL,
    capabilities text,
    locale text,
    last_seen_ms bigint NOT NULL,
    transform text,
    PRIMARY KEY (space, client_id)
);
CREATE INDEX client_last_seen ON client (space, last_seen_ms, client_id);
CREATE TABLE floor (
    space bigint, client_id text, channel text,
    floor bigint NOT NULL,
    replaced boolean NOT NULL,
    oldest_turn text,
    view_turns bigint,
    max_latency_ms bigint,
    PRIMARY KEY (space, client_id, channel)
);
CREATE TABLE checkpoint (
    space bigint, chat bigint,
    turn_id text NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space, chat)
);

CREATE TABLE message (
    space bigint, id text,
    session bigint NOT NULL,
    chat bigint NOT NULL,
    turn_id text,
    created_at bigint NOT NULL,
    metadata bytea NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE INDEX message_turn ON message (space, chat, turn_id, id);
CREATE TABLE part (
    space bigint, id text,
    message text NOT NULL,
    pos bigint NOT NULL,
    type text NOT NULL,
    json bytea NOT NULL,
    PRIMARY KEY (space, id)
);
CREATE UNIQUE INDEX part_message ON part (space, message, pos);
CREATE TABLE frozen (space bigint, part text, json bytea NOT NULL, PRIMARY KEY (space, part));
CREATE TABLE part_reference (space bigint, part text, digest bytea, PRIMARY KEY (space, part, digest));
CREATE INDEX part_reference_digest ON part_reference (space, digest);
CREATE TABLE model_output (
    space bigint, chat bigint, turn_id text, round bigint,
    json bytea NOT NULL,
    PRIMARY KEY (space, chat, turn_id, round)
);

-- What turns changed in files; that of a session has the empty name.
CREATE TABLE file_changes (
    space bigint, channel bigint, turn_id text,
    json bytea NOT NULL,
    PRIMARY KEY (space, channel, turn_id)
);

-- `turn` is -1 for what is stored as long as its channel.
CREATE TABLE reference (
    space bigint, channel bigint, turn bigint, digest bytea,
    content_type text,
    PRIMARY KEY (space, channel, turn, digest)
);
CREATE INDEX reference_digest ON reference (space, digest);

-- What models were sent, for inspection alone.
CREATE TABLE render (
    space bigint, chat bigint, id bigint GENERATED ALWAYS AS IDENTITY,
    turn_id text NOT NULL,
    at bigint NOT NULL,
    before_json bytea NOT NULL,
    after_json bytea NOT NULL,
    outcome text NOT NULL,
    asked_json bytea,
    PRIMARY KEY (space, chat, id)
);
CREATE TABLE lowered (
    space bigint, chat bigint, id bigint GENERATED ALWAYS AS IDENTITY,
    turn_id text NOT NULL,
    at bigint NOT NULL,
    target text NOT NULL,
    model text NOT NULL,
    blocks bytea NOT NULL,
    diagnostics bytea NOT NULL,
    PRIMARY KEY (space, chat, id)
);
CREATE TABLE model_call (
    space bigint, chat bigint, n bigint,
    key bigint NOT NULL,
    turn_id text NOT NULL,
    at bigint NOT NULL,
    ended_at bigint,
    purpose text NOT NULL,
    round bigint NOT NULL,
    api text NOT NULL,
    model text NOT NULL,
    body_bytes bigint NOT NULL,
    body_digest bytea NOT NULL,
    body_layout bytea NOT NULL,
    details_layout bytea NOT NULL,
    end_json bytea,
    PRIMARY KEY (space, chat, n)
);
CREATE INDEX model_call_key ON model_call (space, key);
CREATE TABLE sent_piece (
    space bigint, chat bigint, digest bytea, content_type text,
    size bigint NOT NULL,
    last_call bigint NOT NULL,
    bytes bytea,
    PRIMARY KEY (space, chat, digest, content_type)
);
CREATE INDEX sent_piece_digest ON sent_piece (space, digest) WHERE content_type <> '';

CREATE TABLE blob (
    space bigint, digest bytea,
    size bigint NOT NULL,
    put_at bigint NOT NULL,
    place smallint NOT NULL,
    -- What the name of its object has after the digest; no object is put under a name that another had.
    object text NOT NULL DEFAULT '',
    PRIMARY KEY (space, digest)
);
CREATE TABLE blob_chunk (
    space bigint, digest bytea, n int,
    bytes bytea NOT NULL,
    PRIMARY KEY (space, digest, n)
);
ALTER TABLE blob_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;
-- Objects that no row names yet or any more, and that are still to be deleted. They outlive their space.
CREATE TABLE blob_grave (
    space bigint, digest bytea,
    at timestamptz NOT NULL,
    object text NOT NULL DEFAULT '',
    PRIMARY KEY (space, digest, object)
);
CREATE INDEX blob_grave_at ON blob_grave (at);

INSERT INTO cluster (one, format, min_format) VALUES (true, 1, 1);
