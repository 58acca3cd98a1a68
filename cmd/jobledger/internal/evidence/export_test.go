package evidence

// Withdraw is withdraw, for tests.
var Withdraw = withdraw
