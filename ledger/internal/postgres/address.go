package postgres

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/ownerfile"
)

// address is the parsed address of a ledger.
type address struct {
	config *pgx.ConnConfig
	schema string
	sync   string
	listen bool // false: a pooler in between does not support LISTEN

	// refused is the password file that was not read, because others may read it; "" for none.
	refused string

	userTimeout time.Duration // how long the server's host may leave packets unanswered
}

// String returns the address without a password.
func (p address) String() string {
	u := url.URL{Scheme: "postgres", User: url.User(p.config.User), Path: "/" + p.config.Database}
	port := strconv.Itoa(int(p.config.Port))
	u.Host = net.JoinHostPort(p.config.Host, port)
	if strings.HasPrefix(p.config.Host, "/") {
		u.Host, u.RawQuery = "", url.Values{"host": {p.config.Host}, "port": {port}}.Encode()
	}
	if p.schema != defaultSchema {
		values := u.Query()
		values.Set("schema", p.schema)
		u.RawQuery = values.Encode()
	}
	return u.String()
}

const (
	defaultSchema  = "jobledger"
	connectTimeout = 10 * time.Second

	userTimeoutOption  = "tcp_user_timeout" // as libpq calls it, which pgx does not implement
	userTimeoutDefault = 30 * time.Second
)

// parseAddress takes this program's own options out of an address and leaves the rest to pgx, which knows the
// options of libpq, its environment variables and its password file.
func parseAddress(dsn string) (p address, err error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Fragment != "" || u.User == nil && strings.Contains(u.Path+u.RawQuery, "@") {
		// The error does not quote the address: with a / or a # in a password it would show a part of that.
		return p, fmt.Errorf("%w: not a URL as postgres://USER@HOST/DATABASE; "+
			"what is special in a name or a password is written as %%40 for @, %%2F for /, %%23 for #, %%3F for ?",
			engine.ErrAddress)
	}
	values := u.Query()
	p.schema, p.sync, p.listen, p.userTimeout = defaultSchema, "full", true, userTimeoutDefault
	for name, allowed := range map[string]string{
		"schema": "a name of lower-case letters, digits and _", "sync": "full or normal", "listen": "on or off",
		userTimeoutOption: "milliseconds, 1000 to 3600000",
	} {
		if !values.Has(name) {
			continue
		}
		v := strings.Join(values[name], ",")
		values.Del(name)
		switch {
		case name == "schema" && isSchemaName(v):
			p.schema = v
		case name == "sync" && (v == "full" || v == "normal"):
			p.sync = v
		case name == "listen" && (v == "on" || v == "off"):
			p.listen = v == "on"
		case name == userTimeoutOption && isUserTimeout(v):
			ms, _ := strconv.Atoi(v)
			p.userTimeout = time.Duration(ms) * time.Millisecond
		default:
			return p, fmt.Errorf("%w: option %s=%s; it takes %s", engine.ErrAddress, name, v, allowed)
		}
	}
	refused := refusedPasswordFile(values.Get("passfile"))
	if refused != "" {
		values.Set("passfile", os.DevNull)
	}
	u.RawQuery = values.Encode()
	if p.config, err = pgx.ParseConfig(u.String()); err != nil {
		return p, fmt.Errorf("%w: %w", engine.ErrAddress, err)
	}
	if p.config.Password == "" {
		p.refused = refused
	}
	p.config.ConnectTimeout = cmp.Or(p.config.ConnectTimeout, connectTimeout)
	return p, nil
}

// refusedPasswordFile returns the password file that pgx would read, if group or others may read it, or it is
// no file. libpq does not use such a one either.
func refusedPasswordFile(given string) string {
	path := cmp.Or(given, os.Getenv("PGPASSFILE"))
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".pgpass")
	}
	info, err := os.Stat(path) // #nosec G703 -- the file that the user names
	if err != nil || runtime.GOOS == "windows" || info.Mode().IsRegular() && !ownerfile.OpenToOthers(info) {
		return ""
	}
	return path
}

func isUserTimeout(s string) bool {
	ms, err := strconv.Atoi(s)
	return err == nil && ms >= 1_000 && ms <= 3_600_000
}

func isSchemaName(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" &&
		!strings.HasPrefix(s, "pg_") && s[0] > '9'
}

// Address returns the address of the ledger at dsn without its password. It does not connect.
func Address(dsn string) (string, error) {
	a, err := parseAddress(dsn)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}
