CREATE TABLE greenroom.principal (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text UNIQUE NOT NULL
);
CREATE TABLE greenroom.member (
    space bigint, principal bigint,
    role smallint NOT NULL,
    PRIMARY KEY (space, principal)
);
CREATE INDEX member_principal ON greenroom.member (principal);

-- A token is stored as the digest of its secret alone.
CREATE TABLE greenroom.token (
    id text PRIMARY KEY,
    hash bytea NOT NULL,
    space bigint NOT NULL,
    principal bigint NOT NULL,
    role smallint NOT NULL,
    made_at timestamptz NOT NULL,
    expires timestamptz,
    revoked_at timestamptz
);
CREATE INDEX token_space ON greenroom.token (space);

-- Counts whatever takes a right away: nodes that see another number forget what they remember of tokens.
CREATE TABLE greenroom.account_change (one boolean PRIMARY KEY CHECK (one), counter bigint NOT NULL);
INSERT INTO greenroom.account_change (one, counter) VALUES (true, 0);

-- What an operator allows a space beside what the settings of nodes say.
CREATE TABLE greenroom.space_limit (space bigint, name text, value bigint NOT NULL, PRIMARY KEY (space, name));

-- Spaces whose rows were carried elsewhere, and are kept until somebody removes them.
CREATE TABLE greenroom.moved_space (
    space bigint PRIMARY KEY,
    target text NOT NULL,
    -- Which of all migrations it was; the directory has the same number.
    migration text NOT NULL,
    at timestamptz NOT NULL
);
