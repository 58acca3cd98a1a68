package main

import (
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
)

// Each command of the page of the API that reads, and is not about one thing by its name, is answered as a
// shell would send it with a token and values for its variables.
func TestCommandsOfTheAPIPage(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	serving := serveStore(t, s.Store, func() time.Time { return s.Now.Add(time.Minute) })
	_, _, page := getter(t, serving)("/api")
	token := serving.tokenFor(t, access.Scopes...)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	values := strings.NewReplacer("$BOOT", "01KDXYZAF8000000000000B00T", "$QUEUE", "mail")
	sent := 0
	commandLine := regexp.MustCompile(`<pre class="curl"[^>]*>(.*)</pre>`)
	for _, found := range commandLine.FindAllStringSubmatch(page, -1) {
		command := html.UnescapeString(found[1])
		address := regexp.MustCompile(`"(http[^"]*)"$`).FindStringSubmatch(command)
		if address == nil || !strings.HasPrefix(address[1], serving.base+"/") {
			t.Errorf("there is no address of this server: %s", command)
			continue
		}
		path, _, _ := strings.Cut(address[1], "?")
		if strings.Contains(command, " -X ") || strings.Contains(path, "$") {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context()) // a stream has no end
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, values.Replace(address[1]), nil)
		check(t, err)
		if strings.Contains(command, `-H "Authorization: Bearer $TOKEN"`) {
			r.Header.Set("Authorization", token)
		}
		answer, err := client.Do(r)
		check(t, err)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s\n%s", command, answer.Status, readAll(t, answer))
		}
		_ = answer.Body.Close()
		cancel()
		sent++
	}
	if sent < 20 {
		t.Errorf("%d commands were sent", sent)
	}
	s.Verify()
}
