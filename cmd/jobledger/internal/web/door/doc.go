// Package door lets requests in, or refuses them: it listens, checks the host that a request names, where
// it comes from, its method, its credential and its rights, and then calls the handler of its route. It turns
// the errors of handlers into answers.
//
//	d := door.New(door.Config{Store: store, Now: time.Now})
//	d.Add(door.Route{Pattern: "GET /", Needs: door.Read, Handle: handle})
//	d.ListenOn(listener)
//	http.Serve(listener, d.Handler())
//
// Files in reading order: door.go (what a door is, who asks, and rights), guard.go (what a request must
// pass), bearer.go and clientca.go (tokens and certificates), session.go and again.go (login links and
// sessions), listen.go and peer_linux.go (what a server listens at), problem.go (errors), reply.go (what an
// answer goes through).
//
// Held by TestLoginsAndSessionsExpire and TestPeerIsNamed here, and by TestRightsOfEveryRoute and
// TestGuardHoldsForEveryRoute of the server.
package door
