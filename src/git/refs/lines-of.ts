/** The lines of a text, one after the other: to split all of a large one would block the event loop. */
export function* linesOf(data: Buffer): Generator<string> {
  for (let start = 0; start < data.length; ) {
    const found = data.indexOf(0x0a, start);
    const end = found < 0 ? data.length : found;
    yield data.toString('utf8', start, end);
    start = end + 1;
  }
}
