-- Events say what the parts of an archived file are, and kind 36 says it of files that older programs wrote. An older
-- program takes an unknown field for damage, and does not know the kind.
INSERT INTO kinds VALUES (36, 'archive_described');
