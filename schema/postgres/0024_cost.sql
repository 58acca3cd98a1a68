-- The event that ends an attempt may say what its processes used: cpu_user, cpu_system, max_rss. An older program takes
-- an event with an unknown field for damaged.
UPDATE compatibility SET readable_from = 24, writable_from = 24;
