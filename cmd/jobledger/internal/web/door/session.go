package door

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Times of login links and sessions.
const (
	linkLife    = 5 * time.Minute
	sessionLife = 12 * time.Hour
	sessionIdle = time.Hour
	linkPause   = 10 * time.Second // between two links
	linkFresh   = time.Minute      // for so long after a link that was not used, no other is needed
)

const (
	maxSessions  = 64
	maxBadLogins = 5  // within a minute
	maxLinks     = 10 // of one address, within an hour
)

// secret returns 32 random bytes as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// logins has the codes of the login links that are good, as digests.
type logins struct {
	mu      sync.Mutex
	codes   []loginCode
	asked   map[string][]time.Time // by the address, when links were made for it within the last hour
	refused []time.Time            // wrong codes of the last minute
}

type loginCode struct {
	digest [sha256.Size]byte
	made   time.Time
	used   bool
}

// create makes a new code for one at this address; "" is the server itself. The earlier ones stay good: else
// anybody could keep the owner from using theirs. ok is false where the last one is so young that it can be
// used, or where the address has had many.
func (l *logins) create(from string, now time.Time) (code string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	if n := len(l.codes); n > 0 {
		last := l.codes[n-1]
		if age := now.Sub(last.made); age < linkPause || age < linkFresh && !last.used {
			return "", false
		}
	}
	if from != "" {
		if len(l.asked[from]) >= maxLinks {
			return "", false
		}
		if l.asked == nil {
			l.asked = make(map[string][]time.Time)
		}
		l.asked[from] = append(l.asked[from], now)
	}
	code = secret()
	l.codes = append(l.codes, loginCode{sha256.Sum256([]byte(code)), now, false})
	return code, true
}

// forget drops the codes that are good no more, and what addresses asked for long ago.
func (l *logins) forget(now time.Time) {
	l.codes = slices.DeleteFunc(l.codes, func(c loginCode) bool { return now.Sub(c.made) > linkLife })
	for from, times := range l.asked {
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > time.Hour })
		if l.asked[from] = times; len(times) == 0 {
			delete(l.asked, from)
		}
	}
}

// use takes a code, which is good once; again is false where too many were wrong.
func (l *logins) use(code string, now time.Time) (ok, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	digest := sha256.Sum256([]byte(code))
	for i := range l.codes {
		c := &l.codes[i]
		if subtle.ConstantTimeCompare(digest[:], c.digest[:]) == 1 && !c.used {
			c.used = true
			return true, true
		}
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

// begin returns the secret of a new session. If there are too many, the one that was not used for longest
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

// PrintLink shows a new login link where the server runs, for the client of r, or for none where r is nil;
// false where one was shown that can be used still, after many for the same address, and on a Unix socket.
// The code follows a #, so that no log of requests has it.
func (d *Door) PrintLink(r *http.Request) bool {
	if d.Announce == nil || d.origin == "" {
		return false
	}
	from := ""
	if r != nil {
		from = d.addressOf(r)
	}
	code, ok := d.logins.create(from, d.Now())
	if ok {
		d.Announce(d.origin + d.Prefix.At("/login#") + code)
	}
	return ok
}

// LogIn begins a session with the code of a login link, and sets its cookie; false: the code is not valid. An
// error says that there were too many.
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
