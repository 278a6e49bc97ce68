-- Messages that wait to be published, as the chassis's outbox has it. A lane is what a relay locks, so no tour ever writes
-- one: a row that each tour wrote would be the next hot row.
CREATE TABLE outbox_lane (lane smallint PRIMARY KEY);
INSERT INTO outbox_lane SELECT generate_series(0, 7);

CREATE TABLE outbox (
    id         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane       smallint NOT NULL,
    message_id text     NOT NULL,
    body       text     NOT NULL
);
CREATE INDEX outbox_lane_id ON outbox (lane, id);
