// Package notify wakes the other processes on a server after commits, and is woken by theirs, with LISTEN and
// NOTIFY.
//
//	n := notify.New(server)
//	text, args := n.WithCommit(topics) // is sent right after COMMIT
//	n.Notify(topics)                   // once the transaction is durable
//
// A NOTIFY takes a lock of the whole server at its commit, which would slow down the commits of jobs. So it
// has a transaction of its own, sent right after the commit that it reports; or a little later, on another
// connection, if one was sent just before. Only speed depends on it: listeners also poll the tail, and do so
// more often where LISTEN is not available.
//
// Files: notify.go (what is sent), listen.go (what is heard).
//
// Held by TestPostgresNotificationWakes, TestPostgresWatchOutlivesItsConnections and
// TestPostgresCommitsShareNotification of package ledger.
package notify
