package web

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	httppprof "net/http/pprof"
	"runtime/pprof"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
)

// maxProfile is how long a profile may take.
const maxProfile = 5 * time.Minute

// profileParameters are what requests for profiles may say, and the least and the most of each.
var profileParameters = map[string][2]int{"seconds": {1, int(maxProfile / time.Second)}, "debug": {0, 2},
	"gc": {0, 1}}

// serveAdmin answers at l what concerns this process, for tokens with the scope admin. end ends that.
func (s *Server) serveAdmin(l net.Listener) (end func()) {
	d := door.New(door.Config{Store: s.Store, Now: s.Now, Owner: s.Owner, Report: s.Report, Keys: s.door.Keys,
		Rate: s.Rate})
	add := func(path string, handle func(w http.ResponseWriter, r *http.Request) error) {
		d.Add(door.Route{Pattern: "GET /debug/pprof/" + path, Needs: door.Admin, Streams: true,
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				if err := checkProfile(r); err != nil {
					return err
				}
				return handle(w, r)
			}})
	}
	plain := func(h http.HandlerFunc) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error { h(w, r); return nil }
	}
	add("{$}", listProfiles)
	add("profile", plain(httppprof.Profile))
	add("trace", plain(httppprof.Trace))
	add("{name}", func(w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("name")
		if pprof.Lookup(name) == nil {
			return door.Refusal(http.StatusNotFound, "no_resource", "there is no such profile")
		}
		httppprof.Handler(name).ServeHTTP(w, r)
		return nil
	})
	d.ListenOn(l)
	h := &http.Server{Handler: d.Handler(), ReadHeaderTimeout: s.Times.Header, ReadTimeout: s.Times.Body,
		WriteTimeout: maxProfile + s.Times.Body, IdleTimeout: s.Times.Idle, MaxHeaderBytes: door.MaxHeader}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Serve(door.LimitConnections(l, 16, nil)) // it ends with Close
	}()
	return func() {
		_ = h.Close()
		<-ended
	}
}

// listProfiles says which profiles there are, each with how much is in it.
func listProfiles(w http.ResponseWriter, _ *http.Request) error {
	var text bytes.Buffer
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&text, "%s %d\n", p.Name(), p.Count())
	}
	text.WriteString("profile\ntrace\n")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write(text.Bytes())
	return err
}

// checkProfile returns an error unless r has parameters of a profile only.
func checkProfile(r *http.Request) error {
	for name, values := range r.URL.Query() {
		allowed, known := profileParameters[name]
		n, err := strconv.Atoi(values[0])
		if !known || err != nil || len(values) > 1 || n < allowed[0] || n > allowed[1] {
			return door.Refusal(http.StatusBadRequest, "usage",
				fmt.Sprintf("parameters are seconds, from 1 to %d, debug, from 0 to 2, and gc, 0 or 1",
					int(maxProfile/time.Second)))
		}
	}
	return nil
}
