-- Events say what the parts of an archived file are, and kind 36 says it of files that older programs wrote. An older
-- program takes an unknown field for damage, and does not know the kind.
UPDATE compatibility SET readable_from = 21, writable_from = 21;
INSERT INTO kinds VALUES (36, 'archive_described');
