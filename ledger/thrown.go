package ledger

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// The functions of Write, and those of Peek on a server, run on the goroutine of the commit loop. What ends
// one of them in another way than by returning must reach the caller alone: not the process, the Store, or
// the functions that share its transaction.

// Panic is the value with which Write panics where its function did.
type Panic struct {
	Value any    // what the function panicked with
	Stack []byte // of the goroutine that ran it
}

// Error has the value and the stack, so that both are printed where no function recovers.
func (p Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// thrown is the outcome of a function that did not return.
type thrown struct {
	exit  bool // it called runtime.Goexit
	panic Panic
}

func (t *thrown) Error() string {
	if t.exit {
		return "ledger: the function ended its goroutine"
	}
	return t.panic.Error()
}

// rethrow ends the caller as err says that its function ended, or returns err.
func rethrow(err error) error {
	t, ok := err.(*thrown)
	switch {
	case !ok:
		return err
	case t.exit:
		runtime.Goexit()
	}
	panic(t.panic)
}

// call calls fn with tx on the goroutine of the commit loop, and what fn leaves to be done at its end. It
// returns a panic as an error. Where fn ends the goroutine, which nothing can prevent, it notes that in
// s.exited: see commitLoop.
func (s *Store) call(tx *Tx, fn func(*Tx) error) (err error) {
	returned := false
	s.functions.Add(1)
	defer func() {
		s.functions.Add(1)
		if !returned {
			if value := recover(); value != nil {
				err = &thrown{panic: Panic{value, debug.Stack()}}
			} else {
				s.exited = true
			}
		}
		tx.end()
	}()
	err = fn(tx)
	if err == nil && tx.fn.atEnd != nil && tx.err == nil {
		err = tx.fn.atEnd.End(tx)
	}
	returned = true
	return err
}

// goOn does what the goroutine left undone that a function has ended: it gives up the transaction, answers
// the caller of that function, and runs the other functions again.
func (s *Store) goOn() {
	s.exited = false
	exit := &thrown{exit: true}
	if p := s.peeking; p != nil {
		s.peeking = nil
		s.loseWriter()
		p.done <- exit
		return
	}
	_ = s.giveUp() // as where a function returns an error: the next transaction begins again, or says why not
	rest := make([]grouped, 0, len(s.group))
	for i, r := range s.group {
		if i != s.at {
			rest = append(rest, r)
		}
	}
	s.group[s.at].done <- exit
	if len(rest) > 0 {
		s.finishGroup(s.runAgain(rest))
	}
}
