// Command insert runs SQL on a file of SQLite, as the sqlite3 shell does: what any program in Go with this
// driver needs to write one row and end.
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: insert FILE SQL")
		os.Exit(2)
	}
	if err := insert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "insert:", err)
		os.Exit(1)
	}
}

func insert(path, text string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(text); err != nil {
		return err
	}
	return db.Close()
}
