-- The events of a range are in a file of the archive.
INSERT INTO kinds VALUES (21, 'archived');
