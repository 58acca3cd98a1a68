package schema

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// SelectSQLiteObjects lists the tables, indexes, views and triggers of a SQLite file: kind, name and
// definition. The kind is taken from the definition, because SQLite goes by that too, and what it did not
// write itself counts as a trigger.
const SelectSQLiteObjects = `SELECT CASE
    WHEN sql GLOB 'CREATE TABLE *' OR sql GLOB 'CREATE VIRTUAL TABLE *' THEN 'table'
    WHEN sql GLOB 'CREATE INDEX *' OR sql GLOB 'CREATE UNIQUE INDEX *' THEN 'index'
    WHEN sql GLOB 'CREATE VIEW *' THEN 'view' ELSE 'trigger' END AS kind, name, sql
FROM sqlite_schema WHERE sql IS NOT NULL AND NOT (sql = 'CREATE TABLE sqlite_sequence(name,seq)' OR
    sql GLOB 'CREATE TABLE sqlite_stat[14](*')
ORDER BY 1, 2, 3`

//go:embed sqlite_digests.txt
var digestsOfSQLite string

// SQLiteDigest returns the digest of the objects that the migrations up to version make; "" if unknown.
func SQLiteDigest(version int) string { return sqliteDigests()[version] }

var sqliteDigests = sync.OnceValue(func() map[int]string {
	digests := make(map[int]string)
	for line := range strings.Lines(digestsOfSQLite) {
		var version int
		var digest string
		if _, err := fmt.Sscan(line, &version, &digest); err == nil {
			digests[version] = digest
		}
	}
	return digests
})

// ObjectsDigest makes the digest of a list of objects, in the order in which SelectSQLiteObjects gives them.
type ObjectsDigest struct{ sum hash.Hash }

// Add adds the next object.
func (d *ObjectsDigest) Add(kind, name, definition string) {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	for _, text := range []string{kind, name, definition} {
		fmt.Fprintf(d.sum, "%d %s\n", len(text), text)
	}
}

// String returns the digest of what was added; "" if that is nothing.
func (d *ObjectsDigest) String() string {
	if d.sum == nil {
		return ""
	}
	return hex.EncodeToString(d.sum.Sum(nil))
}
