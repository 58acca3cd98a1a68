-- The event of a success may say that the work went on beyond its max runtime. An older program takes an event with an
-- unknown field for damaged.
UPDATE compatibility SET readable_from = 26, writable_from = 26;
