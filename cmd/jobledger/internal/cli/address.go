package cli

import (
	"net/url"
	"os"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
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
		return " --db " + words.QuoteShell(withoutPassword(p.DB))
	}
	return " --db " + words.QuoteShell(p.DB)
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
	return WithHint(Usagef("%s makes a file; %s is not a file", flag, DisplayDSN(name)),
		"'jobledger export --db FILE | jobledger import - --db postgres://…' puts a ledger into PostgreSQL")
}

// SplitDSN splits the DSN of a file into its path and its options. The address of a server is returned as the
// path.
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
