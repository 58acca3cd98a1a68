package cli

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
)

// DisplayDSN returns dsn for people: for a ledger in PostgreSQL the address without a password.
func DisplayDSN(dsn string) string {
	if !ledger.IsServerAddress(dsn) {
		return dsn
	}
	if address, err := ledger.ServerAddress(dsn); err == nil {
		return address
	}
	return "postgres://…"
}

// withoutPassword returns dsn without a password, with its other options.
func withoutPassword(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return "postgres://…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if strings.Contains(name, "password") {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// DBFlag returns " --db …" for a shell command about this ledger, or "" where the default names it.
func (p *Program) DBFlag() string {
	if p.DB == DefaultDB || ledger.IsServerAddress(p.DB) && p.DB == os.Getenv("JOBLEDGER_DB") {
		return ""
	}
	if ledger.IsServerAddress(p.DB) {
		return " --db " + render.QuoteShell(withoutPassword(p.DB))
	}
	return " --db " + render.QuoteShell(p.DB)
}

// RequireFile returns an error unless the ledger is a file; the hint names what to use with a server instead.
func (p *Program) RequireFile(verb, hint string) error {
	if !ledger.IsServerAddress(p.DB) {
		return nil
	}
	return WithHint(Usagef("%s is for a ledger in a file, and %s is in PostgreSQL", verb, DisplayDSN(p.DB)),
		"%s", hint)
}

// CheckNewFile returns an error if name, the value of a flag, is the address of a server.
func CheckNewFile(flag, name string) error {
	if !ledger.IsServerAddress(name) {
		return nil
	}
	return WithHint(Usagef("%s makes a file; %s is none", flag, DisplayDSN(name)),
		"'jobledger export --db FILE | jobledger import - --db postgres://…' puts a ledger into PostgreSQL")
}

// errNoHome means that there is no folder for what this host keeps.
var errNoHome = errors.New("neither XDG_STATE_HOME nor HOME is set")

// LogFolder returns the folder in which this machine keeps the output of commands: next to a ledger file, or
// in the user's state folder for a ledger in PostgreSQL.
func LogFolder(path string) (string, error) {
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
	return filepath.Join(state, ProgramName), nil
}

// SplitDSN splits the DSN of a file into its path and its options. That of a server it returns as the path.
func SplitDSN(dsn string) (path, options string) {
	path, isURL := strings.CutPrefix(dsn, "sqlite:")
	if isURL {
		path, options, _ = strings.Cut(path, "?")
	}
	return path, options
}

// NewLedgerHint returns what to do where a ledger has events already and a new one is needed.
func (p *Program) NewLedgerHint() string {
	if ledger.IsServerAddress(p.DB) {
		return "give --db another database, or with ?schema=NAME another schema of this one"
	}
	return "give --db the name of a new ledger"
}
