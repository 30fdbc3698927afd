/** An escape, a quotation, a class, a counted repetition, or one character, as RE2 reads them. What RE2 refuses may be divided in any way. */
const TOKEN =
  /\\Q.*?(?:\\E|$)|\\[pP](?:\{[^}]*\}?|.)|\\x\{[^}]*\}?|\\.?|\[\^?\]?(?:\[:\^?\w+:\]|\\.?|[^\]\\])*(?:\]|$)|\(\?[a-zA-Z-]+\)|\{(\d+)(?:,(\d*))?\}|./gsu;
const UNICODE_TABLE = /\\[pP]/g;
/** The end of a range beyond ASCII: to ignore case, RE2 looks up each character of the range. */
const WIDE_RANGE = /-(?:\\x\{|[^\0-\x7f])/gu;
/** What is no item: a repetition after it repeats the item before. */
const NO_ITEM = /^(?:\(\?.*\)|\\Q(?:\\E)?)$/s;
const IGNORES_CASE = /\(\?[a-zA-Z-]*i/;

/** Parts that take as long to compile as a table of Unicode characters, or a wide range without regard to case; and what each repetition of one costs. */
const TABLE = 60;
const WIDE = 1000;
const REPEATED_TABLE = 4;
/** Characters of a class whose ranges cost as much as one part. */
const CLASS_CHARACTERS = 64;

/**
 * An upper bound on the instructions of a regular expression of RE2 once it is compiled, with additional ones for classes that take long,
 * computed in time proportional to its length: a repetition counts as often as what it repeats is copied, so that `(ab){1000}` has thousands.
 */
export function patternSize(pattern: string): number {
  const ignoresCase = IGNORES_CASE.test(pattern);
  const outer: { before: number; last: number }[] = [];
  /** Sizes in the innermost group: of its last item, which a repetition after it repeats, and of those before. */
  let group = { before: 3, last: 0 };
  /** What is not repeated. */
  let once = 0;
  const add = (size: number) => {
    group = { before: group.before + group.last, last: size };
  };
  for (const [token, least = '', most = ''] of pattern.matchAll(TOKEN)) {
    if (NO_ITEM.test(token)) continue;
    if (token === '(') {
      outer.push(group);
      group = { before: 3, last: 0 };
    } else if (token === ')') {
      const size = group.before + group.last;
      group = outer.pop() ?? { before: 0, last: 0 };
      add(size);
    } else if (least !== '') {
      const rounds = Math.max(1, Number(most || least));
      group.last = group.last * rounds + (rounds - Number(least)) + 2;
    } else if (token === '*' || token === '+' || token === '?') group.last += 2;
    else if (token === '|') add(2);
    else if (token.startsWith('\\Q')) add(token.length);
    else if (token.startsWith('[') || /^\\p/i.test(token)) {
      const tables = countOf(token, UNICODE_TABLE);
      const wide = ignoresCase ? countOf(token, WIDE_RANGE) : 0;
      once += token.length + tables * TABLE + wide * WIDE;
      add(1 + Math.floor(token.length / CLASS_CHARACTERS) + (tables + wide) * REPEATED_TABLE);
    } else add(1);
  }
  return [...outer, group].reduce((sum, { before, last }) => sum + before + last, once);
}

function countOf(text: string, searched: RegExp): number {
  return text.match(searched)?.length ?? 0;
}
