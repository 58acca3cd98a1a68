-- The event of a release has the exit code of the command. An older program takes an event with an unknown field for
-- damaged; that it does not know this schema keeps it away. No table changes.
SELECT 1;
