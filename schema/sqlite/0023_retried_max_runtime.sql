-- The event of a retry may say how long the attempts of the job may take from then on. An older program takes an event
-- with an unknown field for damaged; that it does not know this schema keeps it away. No table changes.
SELECT 1;
