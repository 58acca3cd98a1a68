-- The event of a retry may say how long the attempts of the job may take from then on. An older program takes an event
-- with an unknown field for damaged.
UPDATE compatibility SET readable_from = 23, writable_from = 23;
