// Package schema holds the tables, guards and views of a ledger as SQL, one numbered file per migration and
// engine. It runs nothing: package ledger applies the migrations of [SQLite] or [Postgres] when it opens a
// ledger.
//
// A file that has shipped is never edited: a change is a new file with the next number. A file of SQLite
// that is not a ledger is recognised by [ApplicationID]. On PostgreSQL, [PostgresObjects] is what a ledger
// must have, so that a check finds what is missing or altered, and [PostgresCreations] how to create it
// again.
//
// Files: schema.go (the migrations), objects.go (what a ledger in PostgreSQL consists of), sqlite and
// postgres (the SQL; postgres/roles.sql and cookbook.sql are for administrators and readers).
//
// Held by TestGuardsRefuseChanges, TestMigrationsHaveNoGaps, TestViewsColumns and TestObjectsAreRepaired.
// This package is not part of the Go API, and may change in any release.
package schema

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ApplicationID marks a SQLite file as a ledger ("jlgr" in its header); a file with another mark is refused.
const ApplicationID = 0x6a6c6772

//go:embed sqlite/0*.sql postgres/0*.sql
var files embed.FS

// Migration is one step from Version-1 to Version.
type Migration struct {
	Version int    // 1, 2, 3… without gaps; the number that begins the file's name
	Name    string // the file's name without number and ending
	SQL     string // statements, separated by semicolons
}

// SQLite returns the migrations of the SQLite engine in order. An error means that the program was built from
// files that are misnamed or misnumbered.
func SQLite() ([]Migration, error) { return copied(sqlite()) }

// Postgres returns the migrations of the PostgreSQL engine in order. Run them with search_path set to the
// ledger's schema. An error means the same as that of SQLite.
func Postgres() ([]Migration, error) { return copied(postgres()) }

// The files are read once: each opening of a ledger asks for the migrations several times.
var (
	sqlite   = sync.OnceValues(func() ([]Migration, error) { return load("sqlite") })
	postgres = sync.OnceValues(func() ([]Migration, error) { return load("postgres") })
)

// copied lets no caller change what the others get.
func copied(steps []Migration, err error) ([]Migration, error) { return slices.Clone(steps), err }

func load(engine string) ([]Migration, error) {
	entries, err := files.ReadDir(engine) // sorted by name, so by number
	if err != nil {
		return nil, err
	}
	var steps []Migration
	for _, entry := range entries {
		number, name, ok := strings.Cut(strings.TrimSuffix(entry.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if !ok || err != nil || version != len(steps)+1 {
			return nil, fmt.Errorf("schema: %s/%s: want %04d_name.sql", engine, entry.Name(), len(steps)+1)
		}
		text, err := files.ReadFile(path.Join(engine, entry.Name()))
		if err != nil {
			return nil, err
		}
		steps = append(steps, Migration{Version: version, Name: name, SQL: string(text)})
	}
	return steps, nil
}
