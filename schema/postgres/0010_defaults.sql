-- What the jobs of a queue get where they say no other. These events are few and are read as they are: no table.
INSERT INTO kinds VALUES (31, 'queue_defaults');
