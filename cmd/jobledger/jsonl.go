package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

const (
	maxLine     = 8 << 20  // bytes; a payload of 1 MiB takes six times that where each byte is written as \u0000
	chunkJobs   = 10_000   // jobs per transaction
	chunkBytes  = 16 << 20 // of payloads per transaction, so that memory stays bounded
	rememberFor = 1 << 20  // keys that are compared with each other before anything is written
)

const lineKeys = "queue, key, payload, tags, priority, run_at, delay, max_attempts, max_runtime, version, " +
	"requires"

// enqueueLines enqueues the jobs of a JSONL file. It is read twice: everything is checked before anything is
// written, and no file is too large for the memory.
func (p *program) enqueueLines(c *cli.Context, defaults commands.Enqueue) error {
	switch {
	case c.Args().Present():
		return cli.Usagef("--jsonl and PAYLOAD exclude each other: the payload stands in each line")
	case defaults.Key != "":
		return cli.Usagef("--jsonl and --key exclude each other: the key stands in each line")
	}
	name := c.String("jsonl")
	content, done, err := p.OpenInput("--jsonl", name)
	if err != nil {
		return err
	}
	defer done()
	lines := jobLines{defaults: defaults, now: p.Now()}
	p.ReparseTimes = func() {
		lines.now = p.Now()
		lines.defaults.RunAt, _, _ = p.runAt(c)
	}

	total, err := p.checkLines(c, lines, content)
	if err != nil {
		code, why, hint := cli.Explain(err)
		return &cli.Error{Code: code, Err: errors.New(why), Hint: strings.TrimSuffix("nothing was enqueued; "+hint,
			"; ")}
	}
	if total == 0 {
		p.Message("there is no job in --jsonl %s", name)
		return nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	bar := (*cli.Progress)(nil)
	if !p.StdoutTerminal { // there the ids themselves show how it goes
		bar = p.StartProgress("enqueue", int64(total))
	}
	defer bar.Done()
	written, existing := 0, 0
	for chunk, err := range lines.chunks(content) {
		if err != nil {
			return err
		}
		answers, err := service.Enqueue(c.Context, p.Actor, chunk.jobs...)
		if err != nil {
			bar.Done()
			code, why, _ := cli.Explain(err)
			return &cli.Error{Code: code, Err: fmt.Errorf("lines %d to %d: %s", chunk.first(), chunk.last(), why),
				Hint: fmt.Sprintf("%s of the lines before %s enqueued, with the id printed",
					render.Count(int64(written), "job"), render.Plural(int64(written), "is", "are"))}
		}
		for _, answer := range answers {
			if answer.Existing {
				existing++
			}
			_ = p.printEnqueued(answer.Job, answer.Existing) // Flush returns the error
		}
		if err := p.Flush(); err != nil { // also where a reader went away: here it does not mean that all is done
			bar.Done()
			return cli.Exitf(cli.ExitUnexpected, "print the ids of lines %d to %d: %w; these jobs and those before "+
				"are enqueued", chunk.first(), chunk.last(), err)
		}
		written += len(answers)
		bar.Add(len(answers))
	}
	bar.Done()
	if existing > 0 {
		p.Message("%d of %s %s there already, with the same key and payload", existing,
			render.Count(int64(written), "job"), render.Plural(int64(existing), "was", "were"))
	}
	return nil
}

// checkLines says what is wrong with the first bad line, alone, compared with the lines before it, or with
// what the ledger holds. It writes nothing.
func (p *program) checkLines(c *cli.Context, lines jobLines, content io.Reader) (total int, err error) {
	service, err := p.Open(c.Context)
	switch {
	case err == nil:
		defer service.Store.Close()
	case !errors.Is(err, ledger.ErrNoLedger): // it will be made
		return 0, err
	}
	bar := p.StartProgress("check", -1)
	defer bar.Done()
	// by hash of queue and key; a file may have millions
	seed, payloads := maphash.MakeSeed(), make(map[uint64]uint64)
	for chunk, err := range lines.chunks(content) {
		if err != nil {
			return 0, err
		}
		for i, e := range chunk.jobs {
			if e.Key == "" {
				continue
			}
			key, payload := maphash.String(seed, e.Queue+" "+e.Key), maphash.Bytes(seed, e.Payload)
			if before, ok := payloads[key]; ok && before != payload {
				return 0, cli.Exitf(cli.ExitConflict, "line %d: key %q stands in an earlier line too, with another "+
					"payload", chunk.lines[i], e.Key)
			}
			if len(payloads) == rememberFor {
				clear(payloads) // a conflict so far apart is found when it is written
			}
			payloads[key] = payload
		}
		if service != nil {
			if i, err := service.CheckKeys(c.Context, chunk.jobs); err != nil {
				if i >= 0 {
					err = fmt.Errorf("line %d: %w", chunk.lines[i], err)
				}
				return 0, err
			}
		}
		total += len(chunk.jobs)
		bar.Add(len(chunk.jobs))
	}
	return total, nil
}

// jobLines reads jobs from lines.
type jobLines struct {
	defaults commands.Enqueue
	now      time.Time // from which delays count
}

// chunk is some jobs and the numbers of their lines.
type chunk struct {
	jobs  []commands.Enqueue
	lines []int
}

func (c chunk) first() int { return c.lines[0] }
func (c chunk) last() int  { return c.lines[len(c.lines)-1] }

// chunks yields the jobs, as many at a time as one transaction takes. Empty lines are passed over.
func (l jobLines) chunks(content io.Reader) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		lines := bufio.NewScanner(content)
		lines.Buffer(make([]byte, 64<<10), maxLine)
		var next chunk
		size, n := 0, 0
		for lines.Scan() {
			n++
			text := lines.Bytes()
			if n == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff"))
			}
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			e, err := l.job(text)
			if err != nil {
				code, why, hint := cli.Explain(err)
				yield(chunk{}, &cli.Error{Code: code, Err: fmt.Errorf("line %d: %s", n, why), Hint: hint})
				return
			}
			next.jobs, next.lines = append(next.jobs, e), append(next.lines, n)
			if size += len(e.Payload); len(next.jobs) == chunkJobs || size >= chunkBytes {
				if !yield(next, nil) {
					return
				}
				next, size = chunk{}, 0
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(chunk{}, cli.Usagef("line %d is longer than 8 MiB", n+1))
		case err != nil:
			yield(chunk{}, fmt.Errorf("line %d: %w", n+1, err))
		case len(next.jobs) > 0:
			yield(next, nil)
		}
	}
}

// job reads one line. Null is as if the key were not there, save for the payload.
func (l jobLines) job(line []byte) (commands.Enqueue, error) {
	e := l.defaults
	e.Tags = make(map[string]string, len(l.defaults.Tags))
	maps.Copy(e.Tags, l.defaults.Tags)
	if !utf8.Valid(line) {
		return e, cli.Usagef("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return e, cli.Usagef("not a JSON object")
	}
	seen := make(map[string]bool, 8)
	for d.More() {
		var value json.RawMessage
		token, err := d.Token()
		key, _ := token.(string)
		if err == nil {
			err = d.Decode(&value)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return e, cli.Usagef("not a JSON object: it breaks off")
		}
		if err != nil {
			return e, cli.Usagef("not a JSON object: %w", err)
		}
		if seen[key] {
			return e, cli.Usagef("the key %q is given twice", key)
		}
		seen[key] = true
		if string(value) == "null" && key != "payload" {
			continue
		}
		if err := l.field(&e, key, value); err != nil {
			return e, err
		}
	}
	if _, err := d.Token(); err != nil {
		return e, cli.Usagef("not a JSON object: it breaks off")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return e, cli.Usagef("text after the JSON object; a line holds one")
	}
	switch {
	case seen["run_at"] && seen["delay"]:
		return e, cli.Usagef("run_at and delay exclude each other")
	case e.Queue == "":
		return e, cli.Usagef("no queue, neither here nor as --queue (-q)")
	}
	return e, e.Check()
}

func (l jobLines) field(e *commands.Enqueue, key string, value json.RawMessage) (err error) {
	text := ""
	switch key {
	case "queue", "key", "run_at", "delay", "max_runtime", "version":
		if json.Unmarshal(value, &text) != nil {
			return cli.Usagef("%s: %s is no string%s", key, brief(value), map[string]string{"delay": ` such as "90s"`,
				"max_runtime": ` such as "90s"`}[key])
		}
	}
	switch key {
	case "queue", "key", "version":
		if text == "" {
			return cli.Usagef("%s is empty; leave it out where there is none", key)
		}
	}
	if key != "payload" || value[0] == '"' { // of other JSON as payload the text is kept
		if err := event.CheckStrings(value); err != nil {
			return cli.Usagef("%s: %w", key, err)
		}
	}
	switch key {
	case "queue":
		e.Queue = text
	case "key":
		e.Key = text
	case "version":
		e.Version = text
	case "payload":
		if e.Payload = value; value[0] == '"' {
			err = json.Unmarshal(value, &text)
			e.Payload = []byte(text)
		}
	case "tags":
		err = addTags(e.Tags, value)
	case "requires":
		e.Requires = nil
		if json.Unmarshal(value, &e.Requires) != nil {
			return cli.Usagef("requires: %s is no list of strings", brief(value))
		}
	case "priority":
		e.Priority, err = wholeValue(key, value, -commands.MaxPriority, commands.MaxPriority)
	case "max_attempts":
		e.MaxAttempts, err = wholeValue(key, value, 1, commands.MaxMaxAttempts)
	case "run_at":
		e.RunAt, err = parseRunAt(key, text, l.now)
	case "delay":
		var delay time.Duration
		delay, err = durationValue(key, text, 0, true)
		e.RunAt = l.now.Add(delay)
	case "max_runtime":
		e.MaxRuntime, err = durationValue(key, text, time.Millisecond, false)
	default:
		return cli.Usagef("unknown key %s; allowed: %s", brief(strconv.AppendQuote(nil, key)), lineKeys)
	}
	return err
}

// addTags reads an object of tags into tags, which may have been given by flags. A name that is there
// twice would lose one of its values, and null is no value.
func addTags(tags map[string]string, value json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(value))
	if start, _ := d.Token(); start != json.Delim('{') {
		return cli.Usagef("tags: %s is no object with strings as values", brief(value))
	}
	seen := make(map[string]bool)
	for d.More() {
		token, _ := d.Token() // the whole value has been read before
		name := token.(string)
		token, _ = d.Token()
		text, ok := token.(string)
		switch {
		case !ok:
			return cli.Usagef("tags: the value of %q is no string", name)
		case seen[name]:
			return cli.Usagef("tags: %q is given twice", name)
		}
		seen[name], tags[name] = true, text
	}
	return nil
}

// brief is as much of a value as an error needs.
func brief(value json.RawMessage) string {
	if len(value) > 40 {
		return strings.ToValidUTF8(string(value[:40]), "") + "…"
	}
	return string(value)
}

func wholeValue(key string, value json.RawMessage, lo, hi int) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < lo || n > hi {
		return 0, cli.Usagef("%s: %s is not a whole number from %d to %d", key, brief(value), lo, hi)
	}
	return n, nil
}

func durationValue(key, text string, lo time.Duration, allowZero bool) (time.Duration, error) {
	return cli.ReadDuration(key, text, lo, commands.MaxRunTime, allowZero)
}
