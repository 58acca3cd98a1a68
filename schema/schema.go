// Package schema holds the tables of a ledger, one numbered file per migration and engine, and nothing else.
//
// A file that has shipped is never edited: a change is a new file with the next number.
package schema

import (
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"
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
func SQLite() ([]Migration, error) { return load("sqlite") }

// Postgres returns the migrations of the PostgreSQL engine, as SQLite does those of its own. They are to run with
// search_path set to the ledger's schema.
func Postgres() ([]Migration, error) { return load("postgres") }

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
