package door

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"sync"
	"time"
)

// Times of login links and sessions.
const (
	linkLife    = 5 * time.Minute
	sessionLife = 12 * time.Hour
	sessionIdle = time.Hour
	linkPause   = 10 * time.Second // between two links
)

const (
	maxSessions  = 64
	maxBadLogins = 5 // within a minute
)

// secret returns 32 random bytes as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// logins has the code of the newest login link, as a digest.
type logins struct {
	mu      sync.Mutex
	digest  [sha256.Size]byte
	valid   bool // there is a code, and it has not been used
	made    time.Time
	refused []time.Time // wrong codes of the last minute
}

// create makes a new code, which takes the place of the last one; ok is false soon after that.
func (l *logins) create(now time.Time) (code string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.made.IsZero() && now.Sub(l.made) < linkPause {
		return "", false
	}
	code = secret()
	l.digest, l.valid, l.made = sha256.Sum256([]byte(code)), true, now
	return code, true
}

// use takes a code, which is good once; again is false where too many were wrong.
func (l *logins) use(code string, now time.Time) (ok, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	digest := sha256.Sum256([]byte(code))
	if subtle.ConstantTimeCompare(digest[:], l.digest[:]) == 1 && l.valid && now.Sub(l.made) <= linkLife {
		l.valid = false
		return true, true
	}
	for len(l.refused) > 0 && now.Sub(l.refused[0]) > time.Minute {
		l.refused = l.refused[1:]
	}
	if len(l.refused) >= maxBadLogins {
		return false, false
	}
	l.refused = append(l.refused, now)
	return false, true
}

// sessions are those that login links began. They are in memory only: the end of the server ends them.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]session
}

type session struct{ began, used time.Time }

func (s session) over(now time.Time) bool {
	return now.Sub(s.began) > sessionLife || now.Sub(s.used) > sessionIdle
}

// begin returns the secret of a new session. Where there are too many, the one that was not used for longest
// ends.
func (s *sessions) begin(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[[sha256.Size]byte]session)
	}
	var oldest [sha256.Size]byte
	for key, one := range s.all {
		if one.over(now) {
			delete(s.all, key)
			continue
		}
		if first, ok := s.all[oldest]; !ok || one.used.Before(first.used) {
			oldest = key
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	text := secret()
	s.all[sha256.Sum256([]byte(text))] = session{now, now}
	return text
}

// holds reports whether key is that of a session, and keeps that from becoming idle.
func (s *sessions) holds(key [sha256.Size]byte, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[key]
	if !ok || one.over(now) {
		delete(s.all, key)
		return false
	}
	one.used = now
	s.all[key] = one
	return true
}

// end ends the session with this key.
func (s *sessions) end(key [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

// cookieOf is the name of the cookie: one for each port, since browsers send cookies to all ports of a
// host. A browser takes one with __Host- only over TLS, from this host and for all of it, and one with
// __Secure- only over TLS.
func (d *Door) cookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	switch {
	case d.secure(r) && d.Prefix.Path != "":
		return "__Secure-jobledger-" + port
	case d.secure(r):
		return "__Host-jobledger-" + port
	}
	return "jobledger-" + port
}

func (d *Door) sessionOf(r *http.Request) (key [sha256.Size]byte, ok bool) {
	cookie, err := r.Cookie(d.cookieOf(r))
	if err != nil {
		return key, false
	}
	return sha256.Sum256([]byte(cookie.Value)), true
}

// PrintLink shows a new login link where the server runs; false soon after the last one, and on a Unix
// socket. The code is behind a #, so that it is in no log.
func (d *Door) PrintLink() bool {
	if d.Announce == nil || d.origin == "" {
		return false
	}
	code, ok := d.logins.create(d.Now())
	if ok {
		d.Announce(d.origin + d.Prefix.At("/login#") + code)
	}
	return ok
}

// LogIn begins a session for one who has the code of a login link, and sets its cookie; false: the code is
// not valid. An error says that there were too many.
func (d *Door) LogIn(w http.ResponseWriter, r *http.Request, code string) (ok bool, err error) {
	ok, again := d.logins.use(code, d.Now())
	switch {
	case !again:
		return false, Refusal(http.StatusTooManyRequests, "rate", "too many wrong codes; wait a minute")
	case !ok:
		return false, nil
	}
	http.SetCookie(w, &http.Cookie{ // #nosec G124 -- where there is no TLS, on the loopback interface only
		Name: d.cookieOf(r), Secure: d.secure(r), Value: d.sessions.begin(d.Now()),
		Path: cmp.Or(d.Prefix.Path, "/"), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife.Seconds())})
	return true, nil
}

// LogOut ends the session of r.
func (d *Door) LogOut(r *http.Request) {
	if key, ok := d.sessionOf(r); ok {
		d.sessions.end(key)
	}
}
