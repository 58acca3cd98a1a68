package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

// Limits of a request.
const (
	maxHeader      = 16 << 10 // bytes
	maxForm        = 4 << 10  // bytes
	maxAnswer      = 8 << 20  // bytes
	maxConnections = 512
	headerTimeout  = 5 * time.Second
	requestTimeout = 30 * time.Second // to read a request, and to write the answer
	idleTimeout    = 2 * time.Minute
	askTimeout     = 5 * time.Second // to compute an answer
	drainTimeout   = 10 * time.Second
)

// Ask runs one command line, without the program's name, on the ledger that is open, and writes what it
// prints to out. Its error is that of the command.
type Ask func(ctx context.Context, out io.Writer, words []string) error

// Tables runs one command line as [Ask] does, and returns the tables that it would print for people.
type Tables func(ctx context.Context, words []string) ([]*render.Table, error)

// Config says what a [Server] serves.
type Config struct {
	Store  *ledger.Store
	Ask    Ask
	Tables Tables
	Now    func() time.Time // in the zone in which pages show times
	Name   string           // the ledger, as pages call it

	// Announce shows a login link to the user who runs the server; nil: there are none.
	Announce func(link string)
	// Report logs a fault of the server, in one line; nil: it is dropped.
	Report func(format string, args ...any)
}

// Server answers requests about one ledger. It is safe for concurrent use.
type Server struct {
	Config
	routes   []route
	mux      *http.ServeMux
	hosts    map[string]bool // what the header Host may be; nil: anything, on a Unix socket
	origin   string          // of the login link, as in http://jobledger.localhost:4711
	logins   logins
	sessions sessions
	requests requests
	metrics  cache
	follower *follower
	closing  chan struct{} // closed when the server begins to end
	draining atomic.Bool

	streamWrite time.Duration // how long the client of a stream may read nothing
	lost        chan error    // why no request can be answered any more
	once        sync.Once
}

// New returns a server that does not listen yet.
func New(c Config) *Server {
	if c.Report == nil {
		c.Report = func(string, ...any) {}
	}
	s := &Server{Config: c, mux: http.NewServeMux(), lost: make(chan error, 1),
		follower: newFollower(), closing: make(chan struct{}), streamWrite: defaultStreamWrite}
	s.routes = s.allRoutes()
	for _, r := range s.routes {
		s.mux.Handle(r.pattern, s.serveRoute(r))
	}
	return s
}

// Serve answers requests until ctx ends, and then, for at most 10 s, those under way. On a TCP listener it
// announces a login link. It closes l. An error that is not ctx's ends it too, such as a ledger whose file
// was replaced.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.listenOn(l)
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withPeer,
		ErrorLog:          nil,
	}
	following, unfollow := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() {
		s.follower.run(following, s.Store, func(err error) { s.problemOf(err) })
	})
	defer follower.Wait()
	defer unfollow()
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(limitConnections(l, maxConnections)) }()
	if s.origin != "" {
		s.announce()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.lost:
	case err = <-ended:
		return err
	}
	s.draining.Store(true)
	close(s.closing)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if closeErr := h.Shutdown(within); closeErr != nil {
		_ = h.Close() // it cuts off those that are still under way
	}
	if serveErr := <-ended; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	return err
}

// listenOn learns from l what requests may name as their host.
func (s *Server) listenOn(l net.Listener) {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return
	}
	_, port, _ := net.SplitHostPort(address.String())
	s.hosts = make(map[string]bool)
	for _, name := range []string{"jobledger.localhost", "localhost", address.IP.String()} {
		s.hosts[net.JoinHostPort(name, port)] = true
	}
	s.origin = "http://" + net.JoinHostPort("jobledger.localhost", port)
}

// lose ends the server because of err.
func (s *Server) lose(err error) {
	s.once.Do(func() { s.lost <- err })
}
