package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/work"
	"jobledger/commands/remote/wire"
)

const (
	maxPipeLine = 12 << 20 // bytes of a request, of which the body is the most
	maxPiped    = 256      // requests under way; further ones are not read yet
)

// pipeRequest is a line of what [Server.Pipe] reads.
type pipeRequest struct {
	ID     json.RawMessage            `json:"id"`
	Method string                     `json:"method"`
	Path   string                     `json:"path"`
	Body   map[string]json.RawMessage `json:"body"`
	Cancel json.RawMessage            `json:"cancel"` // the id of a request that is not wanted any more; alone
}

// pipeAnswer is a line of what [Server.Pipe] writes.
type pipeAnswer struct {
	ID     json.RawMessage `json:"id"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`           // of a JSON answer; else null
	Text   *string         `json:"text,omitempty"` // of a text
	Base64 []byte          `json:"base64,omitempty"`
}

// Pipe answers requests, each a line of JSON, with a line each, as Serve answers those over HTTP: they are
// made by the user who runs this program, and are carried out at the same time. p is the process of claims
// that name no other. Pipe returns when in has ended and all requests are answered: claims that wait then end
// with none. It returns an error if it cannot read, write, or reach the ledger any more.
func (s *Server) Pipe(ctx context.Context, in io.Reader, out io.Writer, p wire.Process) error {
	defer s.reading.close()
	ctx, stop := context.WithCancel(door.AsOwner(ctx))
	defer stop()
	s.sweeper.serve(ctx)
	defer s.sweeper.wait()
	defer stop()
	pipe := &pipe{handler: s.door.Handler(), process: p, out: json.NewEncoder(out), stop: stop}
	pipe.out.SetEscapeHTML(false)
	read := make(chan error, 1)
	go func() { read <- pipe.read(ctx, bufio.NewReaderSize(in, 64<<10)) }()
	var err error
	select {
	case err = <-read:
	case err = <-s.door.Lost():
	case <-ctx.Done(): // interrupted, or there is no reader of the answers
	}
	s.door.Close()
	pipe.wait()
	pipe.mu.Lock()
	defer pipe.mu.Unlock()
	return errors.Join(err, pipe.err)
}

// pipe is a Pipe at work.
type pipe struct {
	handler http.Handler
	process wire.Process
	stop    func()

	mu       sync.Mutex
	out      *json.Encoder
	err      error // of writing
	running  int
	finished *sync.Cond
	cancels  map[string][]context.CancelCauseFunc // of the requests under way, by id
}

// read reads requests until there is none, and starts each.
func (p *pipe) read(ctx context.Context, in *bufio.Reader) error {
	for {
		line, tooLong, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 || tooLong {
			p.start(ctx, line, tooLong)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// start begins a request, or ends another one.
func (p *pipe) start(ctx context.Context, line []byte, tooLong bool) {
	asked, refused := parse(line, tooLong)
	if refused == nil && asked.Cancel != nil {
		n := p.cancel(asked.Cancel)
		if asked.ID != nil {
			p.answer(pipeAnswer{ID: asked.ID, Status: http.StatusOK, Body: fmt.Appendf(nil, `{"cancelled":%d}`, n)})
		}
		return
	}
	p.begin()
	ctx, cancel := context.WithCancelCause(ctx)
	id := string(asked.ID)
	p.mu.Lock()
	if p.cancels == nil {
		p.cancels = make(map[string][]context.CancelCauseFunc)
	}
	p.cancels[id] = append(p.cancels[id], cancel)
	p.mu.Unlock()
	go func() {
		defer p.end()
		if refused == nil {
			refused = new(p.ask(ctx, asked))
		}
		p.mu.Lock()
		delete(p.cancels, id) // of those with the same id, which is a mistake, no other can be cancelled
		p.mu.Unlock()
		cancel(nil)
		p.answer(*refused)
	}()
}

// cancel ends the requests with this id, and returns how many there were.
func (p *pipe) cancel(id json.RawMessage) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.cancels[string(id)]
	for _, cancel := range all {
		cancel(work.ErrWithdrawn)
	}
	return len(all)
}

// begin waits until there is room for one more request.
func (p *pipe) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished == nil {
		p.finished = sync.NewCond(&p.mu)
	}
	for p.running >= maxPiped {
		p.finished.Wait()
	}
	p.running++
}

func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.finished.Broadcast()
}

// wait waits until all requests are answered.
func (p *pipe) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running > 0 {
		p.finished.Wait()
	}
}

// answer writes a line. If nothing reads it, the pipe ends.
func (p *pipe) answer(a pipeAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	if a.ID == nil {
		a.ID = json.RawMessage("null")
	}
	if p.err = p.out.Encode(a); p.err != nil {
		p.stop()
	}
}

// parse reads a line; refused is the answer to one that is not a request.
func parse(line []byte, tooLong bool) (asked pipeRequest, refused *pipeAnswer) {
	refuse := func(status int, code, text string) (pipeRequest, *pipeAnswer) {
		return asked, new(problemAnswer(asked.ID, status, code, text))
	}
	if tooLong {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "a line of more than 12 MiB")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&asked)
	if err == nil && d.More() {
		err = errors.New("more than one value in a line")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "usage",
			`a line is {"id": …, "method": "POST", "path": "/jobs", "body": {…}}: `+err.Error())
	}
	if asked.Cancel != nil && (asked.Path != "" || asked.Method != "" || asked.Body != nil) {
		return refuse(http.StatusBadRequest, "usage", `a line with "cancel" has no path, method or body`)
	}
	return asked, nil
}

// ask has one request answered.
func (p *pipe) ask(ctx context.Context, asked pipeRequest) pipeAnswer {
	r, err := p.request(ctx, asked)
	if err != nil {
		return problemAnswer(asked.ID, http.StatusBadRequest, "usage", err.Error())
	}
	var w recorder
	p.handler.ServeHTTP(&w, r)
	if w.status == http.StatusRequestTimeout && errors.Is(context.Cause(ctx), work.ErrWithdrawn) {
		return pipeAnswer{ID: asked.ID, Status: http.StatusNoContent}
	}
	return w.answer(asked.ID)
}

// request returns a line as a request over HTTP.
func (p *pipe) request(ctx context.Context, asked pipeRequest) (*http.Request, error) {
	bare, _, _ := strings.Cut(asked.Path, "?")
	if !strings.HasPrefix(bare, "/") || strings.HasSuffix(bare, "/stream") ||
		strings.HasSuffix(bare, "/export") {
		return nil, errors.New("path is one of the API, and no stream or export")
	}
	if !strings.HasPrefix(asked.Path, wire.Root+"/") {
		asked.Path = wire.Root + asked.Path
	}
	where, err := url.ParseRequestURI(asked.Path)
	if err != nil {
		return nil, errors.New("path is not valid")
	}
	if asked.Method == "" {
		asked.Method = http.MethodGet
		if asked.Body != nil {
			asked.Method = http.MethodPost
		}
	}
	p.complete(asked, where.Path)
	var body []byte
	if asked.Body != nil {
		if body, err = json.Marshal(asked.Body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, strings.ToUpper(asked.Method), where.String(),
		bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("method is not valid")
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// complete fills in what a claim leaves out: the process, and one token.
func (p *pipe) complete(asked pipeRequest, path string) {
	if asked.Body == nil || asked.Method != http.MethodPost {
		return
	}
	set := func(name string, value any) {
		if _, ok := asked.Body[name]; !ok {
			asked.Body[name], _ = json.Marshal(value) // strings and numbers always have JSON
		}
	}
	switch path {
	case wire.Root + "/claims":
		if _, other := asked.Body["boot"]; !other {
			set("worker", p.process.Worker)
			set("boot", p.process.Boot)
			set("host", p.process.Host)
			set("pid", p.process.PID)
		}
		if _, queues := asked.Body["queues"]; queues {
			set("tokens", []string{ulid.Make().String()})
		}
	case wire.Root + "/heartbeats":
		set("boot", p.process.Boot)
	}
}

func problemAnswer(id json.RawMessage, status int, code, text string) pipeAnswer {
	var w recorder
	door.WriteProblem(&w, door.Refusal(status, code, text))
	return w.answer(id)
}

// recorder keeps an answer. There is no connection whose deadlines a handler could set.
type recorder struct {
	header http.Header
	status int // 0: 200
	body   bytes.Buffer
}

func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

func (w *recorder) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
}

func (w *recorder) Write(part []byte) (int, error) { return w.body.Write(part) }

// answer is what was kept, as a line.
func (w *recorder) answer(id json.RawMessage) pipeAnswer {
	a := pipeAnswer{ID: id, Status: cmp.Or(w.status, http.StatusOK)}
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type")) // "" where there is none
	switch body := w.body.Bytes(); {
	case len(body) == 0:
	case strings.HasSuffix(kind, "json"):
		a.Body = bytes.TrimSpace(body)
	case strings.HasPrefix(kind, "text/"):
		a.Text = new(string(body))
	default:
		a.Base64 = body
	}
	return a
}

// readLine reads a line of at most maxPipeLine bytes; of a longer one, it skips the rest.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxPipeLine {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
