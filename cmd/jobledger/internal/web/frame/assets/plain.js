// Escapes what could turn the direction of writing or hide, as the server does in a page: \u202e.
const harmful = /[\p{Bidi_Control}\p{Cc}\u200b\u2028\u2029\u2060-\u2064\ufeff\u{e0000}-\u{e007f}]/gu;
const plain = (text) => text.replace(harmful, (c) => c === "\n" || c === "\t" ? c
  : c.codePointAt(0) > 0xffff ? `\\U${c.codePointAt(0).toString(16).padStart(8, "0")}`
  : `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

// plainJSON reads JSON; its strings can be shown.
export const plainJSON = (text) => JSON.parse(text, (_, value) => typeof value === "string" ? plain(value) : value);
