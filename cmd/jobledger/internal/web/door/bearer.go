package door

import (
	"errors"
	"net"
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/web/access"
)

// errToken is the answer to a token that is not valid, whatever is wrong with it.
var errToken = Refusal(http.StatusUnauthorized, "unauthenticated", "the token is not valid")

// bearer returns the caller with the token of r. Wrong tokens are counted by address.
func (d *Door) bearer(r *http.Request) (Caller, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var g access.Grant
	err := access.ErrBad
	if strings.EqualFold(scheme, "Bearer") && d.Keys != nil && len(r.Header["Authorization"]) == 1 {
		g, err = d.Keys.Find(token, d.Now())
	}
	switch {
	case errors.Is(err, access.ErrBad):
		address := d.addressOf(r)
		if !d.limits.MayTry(address, d.Now()) {
			return Caller{}, Refusal(http.StatusTooManyRequests, "rate", "too many tokens that are not valid")
		}
		d.limits.Bad(address, d.Now())
		return Caller{}, errToken
	case err != nil:
		return Caller{}, d.unreadable(err)
	}
	return granted(g, "http:"+g.Name), nil
}

// unreadable is the answer where the file of tokens cannot be read, because of err.
func (d *Door) unreadable(err error) error {
	d.Report("tokens: %v", err)
	return Refusal(http.StatusServiceUnavailable, "busy", "the tokens cannot be read now")
}

// granted is the caller with the grant g.
func granted(g access.Grant, actor string) Caller {
	c := Caller{Grant: g, Actor: actor}
	for _, scope := range g.Scopes {
		c.Rights |= rightOf[scope]
	}
	return c
}

// addressOf is the address that r came from, without the port; "unix" for a Unix socket.
func (d *Door) addressOf(r *http.Request) string {
	if d.Proxy != nil {
		if client := d.Proxy.clientOf(r); client != "" {
			return client
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unix"
	}
	return host
}
