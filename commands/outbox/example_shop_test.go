package outbox_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// exampleShop is the program in testdata/example, with its databases.
type exampleShop struct {
	*testing.T
	program, dsn, jobs string
	cmd                *exec.Cmd
	url                string
	said               bytes.Buffer // on stderr, by all processes
}

func (s *exampleShop) start() {
	s.Helper()
	s.cmd = exec.Command(s.program, "-shop", s.dsn, "-jobs", s.jobs, "-listen", "127.0.0.1:0", "-lease", "1s")
	s.cmd.Stderr = &s.said
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.Fatalf("the shop did not open: %v", err)
	}
	s.url = "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listens at "))
}

// order asks for an order and reports whether it was acknowledged.
func (s *exampleShop) order(client *http.Client, number int) bool {
	body := strings.NewReader(fmt.Sprintf(`{"number":%d,"to":"Ada"}`, number))
	answer, err := client.Post(s.url+"/orders", "application/json", body)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		s.Errorf("order %d: %s", number, answer.Status)
	}
	return answer.StatusCode == http.StatusCreated
}

// TestKilledExampleShop kills the example again and again while customers order. Each order that was
// acknowledged is shipped, none twice, and a signal ends the shop in an orderly way.
func TestKilledExampleShop(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program")
	}
	ledgertest.Slow(t)
	if _, err := exec.LookPath("go"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("builds a program, and there is no go")
	}
	program := filepath.Join(t.TempDir(), "shop")
	out, err := exec.Command("go", "build", "-o", program, "../../testdata/example").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	eachEngine(t, func(t *testing.T, dsn string) {
		s := &exampleShop{T: t, program: program, dsn: dsn, jobs: ledgertest.New(t)}
		acknowledged, next := make(map[int]bool), 0
		for round := range ledgertest.Size(1, 1, 60) {
			s.start()
			var mu sync.Mutex
			var customers sync.WaitGroup
			client := &http.Client{Transport: &http.Transport{}}
			ctx, stop := context.WithCancel(context.Background())
			for range 3 {
				customers.Go(func() {
					for ctx.Err() == nil {
						mu.Lock()
						next++
						number := next
						mu.Unlock()
						if s.order(client, number) {
							mu.Lock()
							acknowledged[number] = true
							mu.Unlock()
						} else {
							return // the shop is dead
						}
					}
				})
			}
			for end := time.Now().Add(30 * time.Second); round == 0 && time.Now().Before(end); {
				mu.Lock()
				some := len(acknowledged) > 0
				mu.Unlock()
				if some {
					break
				}
				time.Sleep(time.Millisecond) // until the shop has taken an order, however busy the machine is
			}
			time.Sleep(time.Duration(20_000+rand.IntN(60_000)) * time.Microsecond) // #nosec G404 -- of the kill
			if err := s.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = s.cmd.Wait()
			customers.Wait()
			stop()
			client.CloseIdleConnections()
		}
		s.finish(acknowledged)
	})
}

// finish runs the shop until all orders are shipped, stops it, and checks what it has done.
func (s *exampleShop) finish(acknowledged map[int]bool) {
	s.Helper()
	s.start()
	db := openDB(s.T, s.dsn)
	numbers := func(table string) map[int]int {
		rows, err := db.Query(`SELECT number FROM ` + table)
		if err != nil {
			s.Fatal(err)
		}
		defer rows.Close()
		found := make(map[int]int)
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				s.Fatal(err)
			}
			found[n]++
		}
		return found
	}
	orders := numbers("orders")
	for end := time.Now().Add(time.Minute); len(numbers("parcels")) < len(orders); {
		if time.Now().After(end) {
			s.Errorf("%d of %d orders are shipped", len(numbers("parcels")), len(orders))
			break
		}
		time.Sleep(50 * time.Millisecond) // until the leases of killed shops have run out
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.Errorf("the shop was stopped: %v", err)
	}
	parcels := numbers("parcels")
	for n := range acknowledged {
		if orders[n] != 1 {
			s.Errorf("order %d was acknowledged and is lost", n)
		}
	}
	for n, times := range parcels {
		if times != 1 || orders[n] != 1 {
			s.Errorf("order %d: %d parcels, %d orders", n, times, orders[n])
		}
	}
	if len(acknowledged) == 0 {
		s.Error("no order was acknowledged")
	}
	if s.Failed() {
		s.Logf("the shop said:\n%s", &s.said)
	}
	s.Logf("%d orders, %d of them acknowledged, %d parcels", len(orders), len(acknowledged), len(parcels))
	commandstest.Verify(s.T, ledgertest.OpenAt(s.T, s.jobs))
}
