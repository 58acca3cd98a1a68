//go:build unix

package child

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"testing"
	"time"
)

// connReading returns the receiving end of a connection over which these bytes were sent.
func connReading(sent []byte) *conn { return &conn{dec: json.NewDecoder(bytes.NewReader(sent))} }

// FuzzProtocol reads any bytes as each kind of message. A message that can be read is unchanged after it was
// written and read again. The end of the connection is an error and never a message.
func FuzzProtocol(f *testing.F) {
	for _, message := range []any{
		command{
			Path: []byte("/bin/sh"), Args: [][]byte{[]byte("sh"), {0xff}},
			KillAfter: time.Second, Lease: lease{1, 2},
		},
		order{Lease: &lease{Term: 5, Kill: 7}}, order{Stop: true}, order{Kill: true},
		started{Pid: 7}, started{Errno: 2, Chdir: true}, ended{Cause: CauseLease, Left: 1},
	} {
		text, err := json.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(append(text, text...))
	}
	for _, text := range []string{
		"", "{", "null", "[]", `{"Lease":{"Term":1e999}}`, `{"Kill":1}`, `{"Args":["/w=="]}`, `{"Args":["%"]}`,
		"\x00", `{"Status":-1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, blank := range []any{command{}, order{}, started{}, ended{}} {
			c, received := connReading(sent), 0
			for ; ; received++ {
				message := reflect.New(reflect.TypeOf(blank))
				err := c.receive(message.Interface())
				if err == io.EOF {
					t.Fatalf("%q: the end of the connection looks like the end of a message", sent)
				}
				if err != nil {
					break
				}
				text, err := json.Marshal(message.Interface())
				if err != nil {
					t.Fatalf("%q is read as %+v, which cannot be written: %v", sent, message.Elem(), err)
				}
				again := reflect.New(reflect.TypeOf(blank))
				err = connReading(text).receive(again.Interface())
				if err != nil || !reflect.DeepEqual(message.Interface(), again.Interface()) {
					t.Fatalf("%q is read as %+v, written as %s, and read as %+v, %v",
						sent, message.Elem(), text, again.Elem(), err)
				}
			}
			if received > len(sent) {
				t.Fatalf("%d messages in %d bytes", received, len(sent))
			}
		}
	})
}

// FuzzProtocolCommand shows that a command arrives with the same bytes, whatever they are.
func FuzzProtocolCommand(f *testing.F) {
	f.Add("/bin/sh", "-c\nexit \xff", "PATH=/bin\nX=\x01", "", int64(10), int64(0), int64(5), int64(9))
	f.Add("", "", "", "\xfe", int64(-1), int64(1)<<62, int64(-1)<<63, int64(1)<<62)
	f.Fuzz(func(t *testing.T, path, args, env, dir string, killAfter, maxRuntime, term, kill int64) {
		want := command{
			Path: []byte(path), Dir: []byte(dir),
			Args: bytes.Split([]byte(args), []byte{'\n'}), Env: bytes.Split([]byte(env), []byte{'\n'}),
			KillAfter: time.Duration(killAfter), MaxRuntime: time.Duration(maxRuntime),
			Lease: lease{instant(term), instant(kill)},
		}
		ours, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		go func() {
			defer theirs.Close()
			_ = newConn(theirs).send(want)
		}()
		var got command
		if err := newConn(ours).receive(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("sent %+v, received %+v, %v", want, got, err)
		}
	})
}

// A worker that sends nonsense is treated like a dead one: its command and all its processes are killed.
func TestProtocolNonsenseEndsCommand(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		for _, nonsense := range []string{
			"x", "\x00", "[]", `{"Kill":1}`, `{"Lease":{"Term":"soon"}}`, `{"Stop":tru}`, "{{",
			`{"Lease":{"Term":1e999}}`,
		} {
			c := start(t, way(shell("trap '' TERM; echo ready; sleep 60 & wait")))
			if _, err := c.conn.file.Write([]byte(nonsense)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.Done():
				wantEnd(t, c.Wait(), "SIGKILL")
			case <-time.After(time.Minute):
				c.killHere()
				t.Fatalf("after %s the command goes on", nonsense)
			}
		}
	})
}
