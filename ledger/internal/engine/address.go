package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// IsServerAddress reports whether dsn is the address of a ledger on a PostgreSQL server, and not the path of
// a file.
func IsServerAddress(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

var (
	keywords = regexp.MustCompile(
		`(?i)^\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=`)
	wordFirst = regexp.MustCompile(`(?i)^\s*[a-z_]+\s*=.*\s`)
	scheme    = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*:`)
	someValue = regexp.MustCompile(`(?i)\?[a-z_]+=`)
	password  = regexp.MustCompile(`(?i)passw(or)?d\s*=`)
)

// CheckFileAddress returns ErrAddress if dsn, which is not the address of a server, was hardly meant as the
// path of a file, but as an address that another program takes: a file of that name would be made, and a
// password would be a part of the name. What begins with "./" or "../" is a path whatever follows. The error
// does not repeat the text.
func CheckFileAddress(dsn string) error {
	const byDot = "; ./NAME is the path of a file with any name"
	rest, isURL := strings.CutPrefix(dsn, "sqlite:")
	slashed := filepath.ToSlash(rest)
	if strings.HasPrefix(slashed, "./") || strings.HasPrefix(slashed, "../") {
		return nil
	}
	path, _, _ := strings.Cut(rest, "?")
	if !isURL {
		path = rest
	}
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	last := filepath.Base(path)
	why := ""
	switch {
	case isURL && strings.HasPrefix(slashed, "//"):
		why = "write sqlite:jobs.db, or sqlite:/var/jobs.db, without //"
	case keywords.MatchString(path), wordFirst.MatchString(path):
		why = "with keywords such as host= it is not understood; write postgres://USER@HOST/DATABASE" + byDot
	case !isURL && strings.HasPrefix(strings.ToLower(path), "postgres") && scheme.MatchString(first):
		why = "a ledger in PostgreSQL is postgres://USER@HOST/DATABASE" + byDot
	case scheme.MatchString(first) && (runtime.GOOS != "windows" || filepath.VolumeName(path) == ""):
		why = "what stands before the first : is unknown; the forms are PATH, sqlite:PATH?sync=normal and " +
			"postgres://USER@HOST/DATABASE" + byDot
	case !isURL && (someValue.MatchString(last) || strings.HasSuffix(path, "?") && !filepath.IsAbs(path)):
		why = "options need sqlite: in front, as in sqlite:PATH?sync=normal" + byDot
	case password.MatchString(last):
		why = "a password is not a part of the path of a file"
	default:
		return nil
	}
	if filepath.IsAbs(path) && !isURL {
		if _, err := os.Lstat(path); err == nil { // an absolute path has no other form
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrAddress, why)
}
