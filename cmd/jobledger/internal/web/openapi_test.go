package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/commands/commandstest"
)

// No object of the document, nor of what a server behind a prefix and one for certificates make of it, has a
// key twice: decoders keep the last of them and say nothing, and generators refuse it.
func TestDocumentHasEachKeyOnce(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("all", []string{"*"}, access.Read)
	status, served := s.post("GET", "/openapi.json", "", "", "Authorization", token)
	if status != 200 {
		t.Fatalf("%d %s", status, served)
	}
	for _, text := range [][]byte{api.Document, []byte(served)} {
		if err := eachKeyOnce(json.NewDecoder(bytes.NewReader(text)), "the document"); err != nil {
			t.Error(err)
		}
	}
	if err := eachKeyOnce(json.NewDecoder(strings.NewReader(`{"a": [{"b": 1, "b": 2}]}`)), "it"); err == nil {
		t.Error("a key that is given twice is not found")
	}
}

// eachKeyOnce reads one value, called where, and returns an error if an object in it has a key twice.
func eachKeyOnce(d *json.Decoder, where string) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	given := make(map[string]bool)
	for i := 0; (open == json.Delim('{') || open == json.Delim('[')) && d.More(); i++ {
		name := fmt.Sprint(i)
		if open == json.Delim('{') {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if name = fmt.Sprint(key); given[name] {
				return fmt.Errorf("%s has the key %s twice", where, name)
			}
			given[name] = true
		}
		if err := eachKeyOnce(d, where+"."+name); err != nil {
			return err
		}
	}
	if open == json.Delim('{') || open == json.Delim('[') {
		_, err = d.Token()
	}
	return err
}

// Each operation has a name of its own, which generators make the name of a function.
func TestOperationsHaveNames(t *testing.T) {
	d := apitest.Read(t)
	named := make(map[string]string)
	for path, operations := range d.Paths {
		for method, o := range operations {
			if !regexp.MustCompile(`^[a-z][A-Za-z]+$`).MatchString(o.OperationID) {
				t.Errorf("%s %s has the name %q", method, path, o.OperationID)
			}
			if other := named[o.OperationID]; other != "" {
				t.Errorf("%s %s and %s have the name %s", method, path, other, o.OperationID)
			}
			named[o.OperationID] = method + " " + path
		}
	}
}

// Each example of the document is what its schema says, and is answered as the document says.
func TestExamplesAreAnsweredAsDocumented(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("all", []string{"*"}, access.Enqueue, access.Work, access.Operate,
		access.Erase)
	d := apitest.Read(t)
	const boot, claim = "01KDXYZAF8000000000000B00T", "01KDXYZAF800000000000000T1"
	sent := 0
	send := func(method, path, query string, want int) {
		t.Helper()
		operation, ok := d.Paths[api.Root+path][strings.ToLower(method)]
		if !ok {
			t.Fatalf("%s %s is not in the document", method, path)
		}
		address := strings.NewReplacer("{job}", string(s.job), "{token}", claim, "{boot}", boot, "{queue}",
			"mail").Replace(path) + query
		bodies := map[string]string{}
		for kind, content := range operation.RequestBody.Content {
			text, isText := content.Example.(string)
			if !isText {
				if err := apitest.Validate(t, content.Example, "paths", api.Root+path, strings.ToLower(method),
					"requestBody", "content", kind, "schema"); err != nil {
					t.Errorf("the example of %s %s: %v", method, path, err)
				}
				b, err := json.Marshal(content.Example)
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			bodies[kind] = text
		}
		if len(bodies) == 0 {
			bodies[""] = ""
		}
		for kind, body := range bodies {
			sent++
			status, text := s.post(method, address, kind, body, "Authorization", token)
			if status != want {
				t.Errorf("%s %s with %s: %d %s", method, address, body, status, text)
			}
		}
	}
	send("PUT", "/workers/{boot}", "", 201)
	send("PUT", "/workers/{boot}", "", 200)
	send("POST", "/claims", "", 200)
	send("POST", "/claims", "", 200)
	send("GET", "/claims", "?boot="+boot, 200)
	send("POST", "/heartbeats", "", 200)
	send("PUT", "/jobs/{job}/claims/{token}/process", "", 200)
	send("PUT", "/jobs/{job}/claims/{token}", "", 200)
	send("PUT", "/jobs/{job}/claims/{token}", "", 200)
	send("POST", "/jobs", "", 201)
	send("GET", "/claims/ready", "?queue=mail", 200)
	send("POST", "/queues/{queue}/jobs", "?key=a", 201)
	send("POST", "/queues/{queue}/jobs", "?key=a", 200)
	send("DELETE", "/workers/{boot}", "", 204)
	s.job = "01KDXYZAF8000000000000000K"
	send("PUT", "/jobs/{job}", "", 201)
	send("PUT", "/jobs/{job}", "", 200)
	for _, verb := range []string{"reschedule", "cancel", "retry", "cancel", "erase"} {
		send("POST", "/jobs/{job}/"+verb, "", 200)
	}
	send("POST", "/queues/{queue}/pause", "", 200)
	send("POST", "/queues/{queue}/resume", "", 200)
	send("POST", "/acts", "", 200)
	if status, _ := s.post("POST", "/claims", jsonKind, "{}", "Authorization", token); status != 400 {
		t.Errorf("a problem: %d", status)
	}
	operations := 0
	for _, of := range d.Paths {
		for _, operation := range of {
			if operation.Security != nil && len(*operation.Security) > 0 {
				operations++
			}
		}
	}
	if operations != 11 || sent < 16 {
		t.Errorf("%d operations with a token in the document, %d requests: this test sends 11", operations, sent)
	}
	commandstest.Verify(t, s.Store)
}
