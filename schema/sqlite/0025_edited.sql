-- An operator changes what a job that waits may take, or which workers take it.
INSERT INTO kinds VALUES (37, 'edited');
