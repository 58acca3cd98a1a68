package door

import (
	"cmp"
	"net/http"
	"time"
)

// onceMore is a page that asks for itself. The browser sends the session with that, as it does with each
// request of a page of this server.
const onceMore = `<!DOCTYPE html><title>jobledger</title><meta http-equiv="refresh" content="0">` + "\n"

// againLife is how long a browser that was sent [onceMore] is not sent it again.
const againLife = 10 * time.Second

// askAgain answers r, which has no credential, with a page that asks once more, if a link of another site led
// to it: with such a request a browser does not send the cookie of a session, since that is strict. It
// reports false if the browser has asked again by now, and has no session.
func (d *Door) askAgain(w http.ResponseWriter, r *http.Request) bool {
	name := d.cookieOf(r) + "-again"
	if _, err := r.Cookie(name); err == nil || r.Method != http.MethodGet {
		return false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "cross-site" && site != "same-site" {
		return false
	}
	http.SetCookie(w, &http.Cookie{ // #nosec G124 -- it has no secret; a strict one would not come back
		Name: name, Secure: d.secure(r), Value: "1", Path: cmp.Or(d.Prefix.Path, "/"), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int(againLife.Seconds())})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = Send(w, []byte(onceMore)) // the connection has gone
	return true
}
