package web

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
)

// traced enqueues and does a job with a trace, and returns its id.
func (s *served) traced(queue string) event.JobID {
	s.t.Helper()
	service := &commands.Service{Store: s.Store}
	_, err := service.Enqueue(s.t.Context(), "cli:test", commands.Enqueue{Queue: queue,
		Tags: map[string]string{"traceparent": "00-" + traceID + "-b7ad6b7169203331-01"}})
	if err != nil {
		s.t.Fatal(err)
	}
	jobs, err := service.Claim(s.t.Context(), commands.ClaimRequest{Queues: []string{queue},
		Worker: event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011"}})
	if err != nil || len(jobs) != 1 {
		s.t.Fatal(jobs, err)
	}
	_, err = service.Apply(s.t.Context(), "worker:w", jobs[0].ID, commands.Succeed{Token: jobs[0].Token})
	if err != nil {
		s.t.Fatal(err)
	}
	return jobs[0].ID
}

var (
	openSample = regexp.MustCompile(`^(\w+)(?:\{(\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*)\})?` +
		` (\S+)( # .*)?$`)
	openExemplar = regexp.MustCompile(`^ # \{job="(\w+)"(?:,trace_id="(\w+)")?\} (\S+) (\d+\.\d{6})$`)
	upperEnd     = regexp.MustCompile(`le="([^"]+)"`)
)

// The metrics are in OpenMetrics for a client that asks for it, as its specification has them, with the last
// job of each bucket as an exemplar. For others they are the same numbers as text.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	id := s.traced("traced")
	token := s.create("m", []string{"*"}, access.Metrics)
	scraper := "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
		"text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	for accept, want := range map[string]string{"": plainText, "*/*": plainText, "text/plain": plainText,
		"application/json": plainText, "application/openmetrics-text": openMetrics, scraper: openMetrics,
		"application/openmetrics-text;q=0.3,text/plain;q=0.5": plainText,
		"application/openmetrics-text;q=0":                    plainText,
		"application/openmetrics-text;version=2.0.0":          plainText} {
		answer, _ := s.do("GET", "/metrics", nil, "Authorization", token, "Accept", accept)
		if got := answer.Header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %s", accept, got)
		}
	}
	_, plain := s.do("GET", "/metrics", nil, "Authorization", token)
	_, text := s.do("GET", "/metrics", nil, "Authorization", token, "Accept", scraper)
	body, ended := strings.CutSuffix(text, "\n# EOF\n")
	if !ended || strings.Contains(body, "# EOF") {
		t.Fatalf("it does not end with # EOF:\n%s", text)
	}
	family, kind := "", ""
	seen := map[string]bool{}
	exemplars := map[string]int{}
	below := 0.0
	for line := range strings.SplitSeq(body, "\n") {
		if words := strings.SplitN(line, " ", 4); words[0] == "#" {
			switch words[1] {
			case "TYPE":
				if family, kind = words[2], words[3]; seen[family] || strings.HasSuffix(family, "_total") {
					t.Errorf("the family %s", family)
				}
				seen[family] = true
			case "UNIT":
				if !strings.HasSuffix(family, "_"+words[3]) || words[2] != family {
					t.Errorf("the unit of %s: %s", family, line)
				}
			default:
				if words[1] != "HELP" || words[2] != family {
					t.Errorf("after the type of %s: %s", family, line)
				}
			}
			continue
		}
		m := openSample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no sample: %s", line)
		}
		suffix, in := strings.CutPrefix(m[1], family)
		allowed := map[string][]string{"counter": {"_total"}, "gauge": {""},
			"histogram": {"_bucket", "_sum", "_count"}}[kind]
		if !in || !slices.Contains(allowed, suffix) {
			t.Errorf("%s is in the family %s, a %s", m[1], family, kind)
		}
		end := 0.0
		if le := upperEnd.FindStringSubmatch(m[2]); le != nil {
			if end, _ = strconv.ParseFloat(le[1], 64); le[1] != "+Inf" && !strings.ContainsAny(le[1], ".e") {
				t.Errorf("the end of a bucket is not a float: %s", line)
			}
		}
		if m[4] != "" {
			x := openExemplar.FindStringSubmatch(m[4])
			if x == nil {
				t.Fatalf("an exemplar: %s", line)
			}
			value, err := strconv.ParseFloat(x[3], 64)
			if err != nil || value > end || end > 0.005 && value <= below || x[1] != string(id) || x[2] != traceID {
				t.Errorf("the exemplar of a bucket from %v: %s", below, line)
			}
			exemplars[family]++
		}
		below = end
		// The check of the start may end between the two answers.
		if moves := regexp.MustCompile(`_http_|_wal_|_verif|oldest_ready|disk_free|^process_|^go_`); m[4] == "" &&
			!moves.MatchString(m[1]) && !strings.Contains(m[2], "le=") && !strings.Contains(plain, line+"\n") {
			t.Errorf("as text there is no %s", line)
		}
	}
	if exemplars["jobledger_job_wait_seconds"] != 1 || exemplars["jobledger_job_run_seconds"] != 1 ||
		len(exemplars) != 2 {
		t.Errorf("exemplars of %v", exemplars)
	}
	if strings.Contains(plain, "# {") || strings.Contains(plain, "# EOF") || strings.Contains(plain, "# UNIT") {
		t.Errorf("the text has what is OpenMetrics:\n%s", plain)
	}
	checkExposition(t, plain)
	commandstest.Verify(t, s.Store)
}

// Prometheus reads the metrics with their exemplars, and keeps both.
func TestPrometheusKeepsExemplars(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("prometheus is not installed") // in CI that is a failure
	}
	s := serve(t, "127.0.0.1:0")
	id := s.traced("traced")
	token := strings.TrimPrefix(s.create("m", []string{"*"}, access.Metrics), "Bearer ")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	dir := t.TempDir()
	config := fmt.Sprintf(`{"global": {"scrape_interval": "1s"}, "scrape_configs": [{"job_name": "jobledger",
		"authorization": {"credentials": %q}, "static_configs": [{"targets": [%q]}]}]}`, token,
		strings.TrimPrefix(s.base, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	// #nosec G204 -- as the system has it
	cmd := exec.CommandContext(t.Context(), program, "--config.file", file, "--storage.tsdb.path",
		filepath.Join(dir, "data"), "--web.listen-address", address, "--enable-feature=exemplar-storage")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ask := func(path string, query url.Values, into any) bool {
		answer, err := http.Get("http://" + address + path + "?" + query.Encode())
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return json.NewDecoder(answer.Body).Decode(into) == nil
	}
	for _, family := range []string{"jobledger_job_wait_seconds", "jobledger_job_run_seconds"} {
		query := url.Values{"query": {family + "_bucket"}, "start": {strconv.FormatInt(time.Now().Unix()-600, 10)},
			"end": {strconv.FormatInt(time.Now().Unix()+600, 10)}}
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			var got struct {
				Data []struct {
					Exemplars []struct{ Labels map[string]string }
				}
			}
			if ask("/api/v1/query_exemplars", query, &got) && len(got.Data) == 1 && len(got.Data[0].Exemplars) == 1 {
				labels := got.Data[0].Exemplars[0].Labels
				if labels["job"] != string(id) || labels["trace_id"] != traceID {
					t.Errorf("the exemplar of %s is %v", family, labels)
				}
				break
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("no exemplar of %s: %+v\n%s", family, got, said.String())
			}
		}
	}
	var counted struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	query := url.Values{"query": {`jobledger_events_total{kind="succeeded",queue="traced"}`}}
	if !ask("/api/v1/query", query, &counted) || len(counted.Data.Result) != 1 ||
		counted.Data.Result[0].Value[1] != "1" {
		t.Errorf("it counts %+v", counted)
	}
	commandstest.Verify(t, s.Store)
}
