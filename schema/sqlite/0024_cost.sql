-- The event that ends an attempt may say what its processes used: cpu_user, cpu_system, max_rss. An older program takes
-- an event with an unknown field for damaged; that it does not know this schema keeps it away. No table changes.
SELECT 1;
