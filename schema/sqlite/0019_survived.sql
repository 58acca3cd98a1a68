-- A command that cannot be ended holds after a cancel what waits for its end, for as long as its worker or supervising
-- parent says that it lives.
INSERT INTO kinds VALUES (35, 'survived');
