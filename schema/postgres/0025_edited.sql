-- An operator changes what a job that waits may take, or which workers take it. An older program does not know the kind.
UPDATE compatibility SET readable_from = 25, writable_from = 25;
INSERT INTO kinds VALUES (37, 'edited');
