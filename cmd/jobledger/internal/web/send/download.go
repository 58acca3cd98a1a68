package send

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger/event"
)

// Sender sends them. It is safe for concurrent use.
type Sender struct {
	*api.API
	downloads chan struct{} // has room for those that are sent
	shares    door.Shares   // of each token in them
}

// New returns a Sender of what a knows.
func New(a *api.API) *Sender {
	s := &Sender{API: a, downloads: make(chan struct{}, maxDownloads),
		shares: door.Shares{Most: maxDownloadsGrant}}
	a.SendLines = s.sendLines
	return s
}

// ExportPath is the path of exports.
const ExportPath = api.Root + "/export"

// Routes are those of the API.
func (a *Sender) Routes() []door.Route {
	return []door.Route{
		{Pattern: "GET " + ExportPath, Needs: door.Read, Streams: true,
			Types:  []string{"application/x-ndjson", "text/csv", "application/json"},
			Handle: a.export, Doc: door.Doc{ID: "exportHistory", Query: ExportParams, Answer: event.Line{},
				Gives: []string{"Jobledger-Pos"}, About: api.FromArchive,
				Summary: "What the command export writes, without a limit of its size."}},
		{Pattern: "GET " + api.Root + "/jobs/{job}/logs/{attempt}/{stream}", Needs: door.Read | door.Bodies,
			Streams: true, Queues: true, Types: []string{"application/octet-stream"}, Handle: a.logs,
			Doc: door.Doc{ID: "getJobLog", Query: LogParams, Gives: []string{"Jobledger-After"},
				Summary: "What the command of an attempt wrote, as a file. It needs the scope bodies, and the file " +
					"is on " +
					"the host of the server."}},
	}
}

// errClient means that a part could not be sent: the client has gone.
var errClient = errors.New("web: the client of a download has gone")

// How many answers of any length are sent at the same time.
const (
	maxDownloads      = 64
	maxDownloadsGrant = 16 // of one token
)

// download is an answer of any length, sent while it is made. The time to send it is not limited, but a
// client that reads nothing for some time is dropped.
type download struct {
	*Sender
	w       http.ResponseWriter
	headers http.Header // of an answer that is not an error
	zips    bool
	zip     *gzip.Writer
	begun   bool
}

// newDownload begins nothing: until the first byte, an error is answered as any other is.
func (a *Sender) newDownload(w http.ResponseWriter, r *http.Request, kind, name string) *download {
	h := http.Header{"Content-Type": {kind}, "Content-Disposition": {`attachment; filename="` + name + `"`},
		"X-Accel-Buffering": {"no"}}
	return &download{Sender: a, w: w, headers: h, zips: door.TakesGzip(r)}
}

// run has write write the answer, until the client goes or the server ends.
func (d *download) run(r *http.Request, write func(ctx context.Context, out io.Writer) error) error {
	if r.Method == http.MethodHead {
		d.begin()
		return nil
	}
	give, err := d.shares.Take(r, "downloads")
	if err != nil {
		d.w.Header().Set("Retry-After", "5")
		return err
	}
	defer give()
	select {
	case d.downloads <- struct{}{}:
		defer func() { <-d.downloads }()
	default:
		return door.Refusal(http.StatusServiceUnavailable, "busy", "there are too many downloads at the same time")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		ticker := time.NewTicker(api.StreamKeepalive)
		defer ticker.Stop()
		for {
			select {
			case <-d.Door.Closing():
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
				if !d.Door.Admits(r) {
					return
				}
			}
		}
	}()
	// The client has sent all of its request: from now on only a write to it has a deadline.
	control := http.NewResponseController(d.w)
	err = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
	if err != nil {
		return err
	}
	err = write(ctx, d)
	if err == nil {
		err = d.end()
	}
	if err == nil || !d.begun {
		return err
	}
	if ctx.Err() == nil && !errors.Is(err, errClient) {
		d.Door.ProblemOf(err) // it is logged
	}
	// The answer has begun and cannot be replaced by an error: the connection is broken, so that the client sees
	// an incomplete answer.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Unix(1, 0))
	return nil
}

func (d *download) begin() {
	if d.begun {
		return
	}
	d.begun = true
	h := d.w.Header()
	for name, values := range d.headers {
		h[name] = values
	}
	h.Add("Vary", "Accept-Encoding")
	if d.zips {
		h.Set("Content-Encoding", "gzip")
		d.zip = gzip.NewWriter(d.w)
	}
}

// Write sends a part of the answer. A client that does not read it in time is dropped.
func (d *download) Write(part []byte) (n int, err error) {
	d.begin()
	err = d.within(func() error {
		if d.zip != nil {
			n, err = d.zip.Write(part)
		} else {
			n, err = d.w.Write(part) // #nosec G705 -- an attachment, which no browser shows as a page
		}
		return err
	})
	return n, err
}

// within has send send something, for which the client has some time.
func (d *download) within(send func() error) error {
	control := http.NewResponseController(d.w)
	err := control.SetWriteDeadline(time.Now().Add(d.StreamWrite))
	if err == nil {
		err = send()
	}
	if err == nil {
		err = control.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return errors.Join(errClient, err)
	}
	return nil
}

// Flush sends at once what was written.
func (d *download) Flush() error {
	d.begin()
	return d.within(func() error {
		if d.zip != nil {
			if err := d.zip.Flush(); err != nil {
				return err
			}
		}
		return http.NewResponseController(d.w).Flush()
	})
}

func (d *download) end() error {
	d.begin()
	if d.zip == nil {
		return nil
	}
	return d.within(d.zip.Close)
}
