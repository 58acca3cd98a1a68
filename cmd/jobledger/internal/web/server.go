package web

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/hook"
	"jobledger/cmd/jobledger/internal/web/meter"
	"jobledger/cmd/jobledger/internal/web/page"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/web/work"
	"jobledger/commands"
	"jobledger/commands/cron"
	"jobledger/ledger/event"
)

// Times are the limits of time of connections and requests.
type Times struct {
	Header time.Duration // to read the headers of a request
	Body   time.Duration // to read a request whole, and then as long again to answer it
	Idle   time.Duration // between two requests
	Ask    time.Duration // to compute an answer; that of a few long ones is five times as long
	Search time.Duration // for a search of jobs, which answers with what it has found by then; 0: api.SearchTime
	// Archive is how long a page waits until what has left the ledger is read; then it says so, and is loaded
	// again.
	Archive time.Duration
	Drain   time.Duration // for the requests that are under way when the server ends
}

// DefaultTimes are the times of a [Config] that sets none.
var DefaultTimes = Times{Header: 5 * time.Second, Body: 30 * time.Second, Idle: 2 * time.Minute,
	Ask: door.AskTimeout, Search: api.SearchTime, Archive: 2 * time.Second,
	Drain: 10 * time.Second}

// Config says what a [Server] serves.
type Config struct {
	// Who is let in. New itself sets Keys, AskTimeout and ShowProblem. Pages show times in the zone of Now.
	door.Config

	Name     string        // the ledger, as pages call it
	Host     string        // the name of this machine
	Access   string        // the file with the grants of tokens; "": there are none
	Webhooks string        // the file with the webhooks; "": there are none
	Times    Times         // the zero value: DefaultTimes
	Waiting  int           // how many claims may wait at the same time; 0: work.MaxWaiting
	CheckAt  cron.Schedule // when the whole ledger is verified besides; the zero Schedule: never

	// Admin is where the server answers what concerns its process, for tokens with the scope admin; nil:
	// nowhere. Serve closes it.
	Admin net.Listener

	// Archived is that of a commands.Service, and Also that of a commands.Sweeper.
	Archived func(context.Context, event.JobID) (event.State, error)
	Also     func(context.Context) error

	Archive      string // the folder of the archive; "": it is not known
	ArchiveCache string // that of an archive.Reader

	// Examine returns what is wrong around the ledger; nil: it is not known.
	Examine func(context.Context) ([]doctor.Finding, error)
}

// Server answers requests about one ledger. It is safe for concurrent use.
type Server struct {
	Config
	door     *door.Door
	api      *api.API
	work     *work.Room
	follower *view.Follower
	verifier *view.Verifier
	pages    *page.Pages
	sweeper  sweeper
	reading  *reading         // nil: the archive is not known
	webhooks *hook.Dispatcher // nil: there are none
}

// New returns a server that does not listen yet.
func New(c Config) *Server {
	if c.Report == nil {
		c.Report = func(string, ...any) {}
	}
	if c.Examine == nil {
		c.Examine = func(context.Context) ([]doctor.Finding, error) { return nil, nil }
	}
	if c.Times == (Times{}) {
		c.Times = DefaultTimes
	}
	pages := &page.Pages{Site: &frame.Site{Name: c.Name}}
	c.Keys, c.AskTimeout, c.ShowProblem = &access.Keys{Path: c.Access}, c.Times.Ask, pages.ShowProblem
	s := &Server{Config: c, follower: view.NewFollower(), verifier: view.NewVerifier(c.Now, c.CheckAt)}
	s.door = door.New(c.Config)
	s.door.Lag = s.follower.Lag
	s.api = api.New(api.Config{Store: c.Store, Door: s.door, Follower: s.follower,
		Moments: new(view.Moments), Figures: new(view.Now), Verifier: s.verifier, Examine: c.Examine, Now: c.Now,
		Search: c.Times.Search, Archive: c.Archive, Report: c.Report})
	if c.Archive != "" {
		s.reading = newReading(c)
	}
	pages.API, s.pages = s.api, pages
	service := &commands.Service{Store: c.Store, Archived: c.Archived}
	_, owner, _ := strings.Cut(c.Owner, ":")
	s.sweeper = sweeper{service: service, actor: "sweeper:" + cmp.Or(owner, "serve"), report: c.Report,
		also: c.Also}
	s.work = work.New(work.Config{Service: service, Prefix: c.Prefix, Now: c.Now, Closing: s.door.Closing(),
		Report: c.Report,
		Busy:   s.sweeper.busy, MostWaiting: cmp.Or(c.Waiting, work.MaxWaiting)})
	if c.Webhooks != "" && !c.ReadOnly {
		s.webhooks = &hook.Dispatcher{Service: service, Path: c.Webhooks, Host: c.Host,
			Busy: s.sweeper.busy, Report: c.Report}
	}
	s.door.Add(s.door.HealthRoutes()...)
	pages.Acts = &act.Acts{API: s.api, Service: service}
	s.door.Add(pages.Acts.Routes()...)
	s.door.Add(s.work.Routes()...)
	s.door.Add((&meter.Meter{API: s.api, Waiting: s.work.Waiting}).Routes()...)
	s.door.Add(s.alsoArchived(readers(pages))...)
	return s
}

// Pages are the paths of all pages that can be looked at, as patterns of [http.ServeMux].
func (s *Server) Pages() (paths []string) {
	for _, rt := range s.door.Routes() {
		if path, isGet := strings.CutPrefix(rt.Pattern, "GET "); isGet && rt.Page {
			paths = append(paths, strings.TrimSuffix(path, "{$}"))
		}
	}
	return paths
}

// ShowAll makes each of the servers show an overview of all of them; addresses are the addresses of their
// pages. It is called before they serve.
func ShowAll(servers []*Server, names, addresses []string) {
	var all []frame.Ledger
	for i, s := range servers {
		all = append(all, frame.Ledger{Name: names[i], Address: addresses[i], API: s.api})
	}
	for _, s := range servers {
		s.pages.Ledgers = all
	}
}

// Serve answers requests until ctx ends, and then, for at most Times.Drain, those under way; others are
// refused. On a TCP
// listener it announces a login link. It closes l. An error that is not ctx's ends it too, such as a ledger
// whose file was replaced.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.reading.close()
	s.door.ListenOn(l)
	h := &http.Server{
		Handler:           s.door.Handler(),
		ReadHeaderTimeout: s.Times.Header,
		ReadTimeout:       s.Times.Body,
		WriteTimeout:      2 * s.Times.Body, // so that one who sends too slowly gets an answer
		IdleTimeout:       s.Times.Idle,
		MaxHeaderBytes:    door.MaxHeader,
		ConnContext:       door.WithPeer,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:          nil,
	}
	following, unfollow := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() {
		s.follower.Run(following, s.Store, func(err error) { s.door.ProblemOf(err) })
	})
	if s.Store != nil {
		follower.Go(func() { s.verifier.Run(following, s.Store) })
	}
	defer follower.Wait()
	s.sweeper.serve(following)
	if s.webhooks != nil {
		follower.Go(func() { s.webhooks.Run(following) })
	}
	defer s.sweeper.wait()
	defer unfollow()
	if s.Admin != nil {
		defer s.serveAdmin(s.Admin)()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.door.ServeOn(h, door.LimitConnections(l, door.MaxConnections, s.Proxy.Has)) }()
	s.door.PrintLink(nil)
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.door.Lost():
	case err = <-ended:
		return err
	}
	s.door.Close()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Times.Drain)
	defer cancel()
	s.door.Drain(within) // those who ask meanwhile get 503
	if closeErr := h.Shutdown(within); closeErr != nil {
		_ = h.Close() // it cuts off those that are still under way
	}
	if serveErr := <-ended; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	return err
}
