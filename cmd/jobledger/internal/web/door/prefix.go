package door

import (
	"cmp"
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
)

// Prefix begins the path of every address of the server, where it shares a host with others.
type Prefix struct {
	Path string // as in /jobs, without a slash at the end; "": there is none

	// Stripped: a proxy removes Path from the path of requests before they arrive.
	Stripped bool
}

// ParsePrefix reads a prefix, as in /jobs or /tools/jobs; "" is none.
func ParsePrefix(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	bad := fault.Usagef("--path-prefix: %.80q is not like /jobs: a slash, then letters, digits and any of "+
		"-_.~, and no slash at the end", text)
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || len(text) > 200 {
		return "", bad
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || strings.Trim(part, ".") == "" || strings.Trim(part, plain) != "" {
			return "", bad
		}
	}
	return text, nil
}

// At is the address of path, which begins with a slash, as clients know it.
func (p Prefix) At(path string) string { return p.Path + path }

// SeeOther has the client get path, which begins with a slash, instead.
func (d *Door) SeeOther(w http.ResponseWriter, r *http.Request, path string) {
	http.Redirect(w, r, d.Prefix.At(path), http.StatusSeeOther)
}

// Direct is the address of path for one who asks the server itself, without the proxy.
func (p Prefix) Direct(path string) string {
	if p.Stripped {
		return path
	}
	return p.Path + path
}

// probes are the addresses that need no prefix: their callers are on this host, and bypass the proxy.
var probes = map[string]bool{"/healthz": true, "/readyz": true}

// within returns r without the prefix; ok is false where r is not for this server.
func (p Prefix) within(r *http.Request) (in *http.Request, ok bool) {
	if p.Path == "" || p.Stripped || probes[r.URL.Path] {
		return r, true
	}
	path, ok := cutPrefix(r.URL.Path, p.Path)
	if !ok {
		return r, false
	}
	in = new(http.Request)
	*in = *r
	u := *r.URL
	u.Path = path
	if u.RawPath != "" { // the prefix is the same in it: it has no character that is escaped
		if u.RawPath, ok = cutPrefix(r.URL.RawPath, p.Path); !ok {
			return r, false
		}
	}
	in.URL = &u
	return in, true
}

func cutPrefix(path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	rest = cmp.Or(rest, "/")
	return rest, ok && rest[0] == '/'
}
