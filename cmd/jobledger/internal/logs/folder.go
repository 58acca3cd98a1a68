package logs

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
)

// errNoHome means that there is no folder for what this host keeps.
var errNoHome = errors.New("neither XDG_STATE_HOME nor HOME is set")

// Folder returns the folder in which this machine keeps the output of commands: next to a ledger file, or
// in the user's state folder for a ledger in PostgreSQL.
func Folder(path string) (string, error) {
	if !ledger.IsServerAddress(path) {
		return attemptlog.Folder(path), nil
	}
	state, err := StateFolder()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(path)
	if err != nil {
		return "", err
	}
	name := url.PathEscape(strings.TrimPrefix(u.Path, "/"))
	if schema := u.Query().Get("schema"); schema != "" {
		name += "." + schema
	}
	if name = strings.TrimLeft(name, "."); name == "" {
		name = "_"
	}
	return filepath.Join(state, name), nil
}

// StateFolder returns the folder in which this user keeps, on this machine, what belongs to no ledger's
// folder.
func StateFolder() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the standard wants it ignored then
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errNoHome
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, buildinfo.ProgramName), nil
}
