// Package access says who may do what over HTTP: tokens, each with its scopes and queues, in a file next to
// the ledger, and how fast.
//
//	token, grant, err := access.Create(path, access.Request{Name: "py", Scopes: […]}, now)
//	keys := &access.Keys{Path: path}
//	grant, err := keys.Find(token, now) // by a server, which sees changes of the file at once
//
// The file has one JSON object a line and is only appended to: a token that was made, that was revoked, that
// was used on another day than before. It has the SHA-256 of a token, never the token.
//
// Files in reading order: grant.go (scopes and queues), token_create.go, token_file.go (the file),
// token_find.go (finding a token's grant), rate.go (how fast).
//
// Held by TestTokensAreFoundUntilRevokedOrExpired, TestTokensSurviveTornLine and TestLimitsCountAndForget
// here, and by TestRightsOfEveryRoute of the server.
package access
