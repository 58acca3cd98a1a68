// Package remote is a client of `jobledger serve`, for producers and workers on other hosts. A [Client] has
// the methods of [commands.Service] that they need, and is the Backend of a worker:
//
//	client, err := remote.New(remote.Config{URL: "https://jobs.example.com", TokenFile: "token"})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	_, err = client.Enqueue(ctx, "", commands.Enqueue{Queue: "mail", Payload: text, Key: "order-17"})
//	w := &worker.Worker{Backend: client, Handler: &mux}
//
// Each request may be sent twice, since an answer can be lost: jobs have ids that the client makes, claims
// have its tokens, and an outcome belongs to a token. The client sends a request again until it has an
// answer, for a bounded time. Claims whose answer never came are given back once the server can be reached.
//
// Who acts is what the server says of the token; the actor of a call is not sent.
//
// Files in reading order: client.go (what is where), tls.go (certificates), send.go (one request),
// enqueue.go, group.go (calls that share a request), claims.go (turns of a worker), lost.go (claims without
// an answer), wait.go (being woken).
// Package wire has the JSON.
//
// Held by TestRemoteIsLikeAService, TestCutConnectionsLoseNothing,
// TestCallsThatShareRequestsHaveTheirOwnOutcomes and TestHistoriesOverHTTPAreLinearizable of the server.
package remote
