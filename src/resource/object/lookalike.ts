const MAX_TYPE_CHARACTERS = 400;
/** Control characters, and what takes no place or changes the direction of writing. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u115f\u1160\u2800\u3164\uffa0]/u;
const ASCII = /^[\x20-\x7e]*$/;
const SCRIPTS = [
  'Latin',
  'Cyrillic',
  'Greek',
  'Armenian',
  'Georgian',
  'Cherokee',
  'Hebrew',
  'Arabic',
  'Devanagari',
  'Thai',
  'Hangul',
  'Han',
].map((script) => new RegExp(`\\p{Script=${script}}`, 'u'));

/** Letters that look like one of ASCII (a part of the confusables of UTS #39), pairs of both. */
const PAIRS =
  'аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwҫcңhАAВBЕEКKМMНHОOРPСCТTУYХXІIЅSЈJԌGοoΟOΑAΒBΕEΖZΗHΙIΚKΜMΝNΡPΤTΥYΧXνvρpαaιiκkυuγyօoսuհhոnցgıiɑaɡgʀRʟLⅼlⅰiꓲlꓳOꓮAꓰE⁄/∕/․.‐-‑-‒-–-−-ꞏ.';
const PLAIN = new Map(
  Array.from({ length: [...PAIRS].length / 2 }, (_, at) => [[...PAIRS][2 * at], [...PAIRS][2 * at + 1]]),
);

/** Types by what they look like. */
export type KnownTypes = ReadonlyMap<string, string>;

const NONE: KnownTypes = new Map();

/** Collects the types that other types must not resemble. Of two that resemble each other, the one in ASCII counts. */
export function knownTypes(types: Iterable<string>): KnownTypes {
  const known = new Map<string, string>();
  for (const type of types) {
    const plain = skeleton(type);
    if (plain === type || !known.has(plain)) known.set(plain, type);
  }
  return known;
}

/**
 * Returns why a condition type must not be used because users could mistake it for another one; undefined if it may be used. `known`
 * are the types that it must not resemble.
 */
export function lookalikeProblem(type: string, known: KnownTypes = NONE): string | undefined {
  const shown = JSON.stringify(type.slice(0, 100)).replace(
    /[^\x20-\x7e]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
  const refuse = (why: string) => `the condition type ${shown} ${why}`;
  if (type === '' || type.length > MAX_TYPE_CHARACTERS) return refuse(`needs 1 to ${MAX_TYPE_CHARACTERS} characters`);
  if (INVISIBLE.test(type)) return refuse('has control characters or characters that cannot be seen');
  if (type.trim() !== type) return refuse('begins or ends with a space');
  if (ASCII.test(type)) return undefined;
  if (/[^\S ]/u.test(type)) return refuse('has a space other than the plain one');
  if (type.normalize('NFKC') !== type) return refuse('has characters that are other forms of plain ones');
  for (const part of type.split(/[./_ -]/)) {
    const letters = [...part].filter((character) => /\p{L}/u.test(character));
    const scripts = new Set(letters.map((letter) => SCRIPTS.findIndex((script) => script.test(letter))));
    if (scripts.size > 1) return refuse('mixes letters of several scripts in one word');
  }
  const other = known.get(skeleton(type));
  return other === undefined || other === type ? undefined : refuse(`looks like ${other}`);
}

function skeleton(type: string): string {
  return [...type].map((character) => PLAIN.get(character) ?? character).join('');
}
