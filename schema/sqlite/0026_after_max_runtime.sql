-- The event of a success may say that the work went on beyond its max runtime. An older program takes an event with an
-- unknown field for damaged; that it does not know this schema keeps it away. No table changes.
SELECT 1;
