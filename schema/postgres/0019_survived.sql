-- A command that cannot be ended holds after a cancel what waits for its end, for as long as its worker or supervising
-- parent says that it lives. An older program does not know the kind.
UPDATE compatibility SET readable_from = 19, writable_from = 19;
INSERT INTO kinds VALUES (35, 'survived');
