import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  parseDocument,
  type Tags,
  type YAMLMap,
} from 'yaml';

/** A part of a YAML document; undefined is absent. */
export type Part = Node | undefined;

/** Beside texts, only null is distinguished. */
const NULL_TAG: Tags = ['null'];

/** More levels than any resource has; every walk over a document may recurse this deep. */
const MAX_DEPTH = 100;

/**
 * Reads one YAML document for merging: scalars keep their source text, so that `0755`, `1.10` or `on` survive a merge independent
 * of the YAML version. Undefined for a document that is not a mapping, is invalid, or cannot be merged field by field: anchors,
 * tags, keys that are not scalars or occur twice, too many levels.
 */
export function readYamlDocument(text: string): (Document & { contents: YAMLMap }) | undefined {
  let document: Document;
  try {
    // The parser's own search for repeated keys is quadratic.
    const options = { schema: 'failsafe', customTags: NULL_TAG, logLevel: 'silent', uniqueKeys: false } as const;
    document = parseDocument(text, options) as Document;
  } catch {
    // The parser rejects documents that nest too deep.
    return undefined;
  }
  const { contents } = document;
  if (document.errors.length > 0 || !isMap(contents) || !isPlain(contents, 0)) return undefined;
  return document as Document & { contents: YAMLMap };
}

function isPlain(node: unknown, depth: number): boolean {
  if (node === null) return true;
  if (depth > MAX_DEPTH || isAlias(node)) return false;
  if (isPair(node)) return isScalar(node.key) && isPlain(node.key, depth) && isPlain(node.value, depth);
  const { anchor, tag } = node as { anchor?: string; tag?: string };
  if (anchor !== undefined || isExplicit(tag)) return false;
  if (isMap(node) && new Set(node.items.map(({ key }) => entryKey(key))).size < node.items.length) return false;
  if (isMap(node) || isSeq(node)) return node.items.every((item) => isPlain(item, depth + 1));
  return isScalar(node);
}

function isExplicit(tag: string | undefined): boolean {
  return tag !== undefined && !/^tag:yaml\.org,2002:(?:map|seq|str|null)$/.test(tag);
}

/** The text of a key. */
export function entryKey(key: unknown): string {
  return isScalar(key) ? String(key.value ?? 'null') : '';
}

/** The entries of a mapping by key. */
export function entriesOf(node: Part): Map<string, Part> {
  if (!isMap(node)) return new Map();
  return new Map(node.items.map((pair) => [entryKey(pair.key), (pair.value ?? undefined) as Part]));
}

/** The text of a scalar at a path; undefined if there is none. */
export function scalarText(node: Part, ...path: string[]): string | undefined {
  const found = path.reduce<Part>((at, key) => (isMap(at) ? (at.get(key, true) as Part) : undefined), node);
  return isScalar(found) && typeof found.value === 'string' ? found.value : undefined;
}

/** Matches plain scalars that a reader of some YAML version does not parse as text. */
const NOT_A_TEXT =
  /^(?:true|false|yes|no|on|off|y|n|[-+]?[.0-9][-+.:_0-9a-f]*(?:e[-+]?\d+)?|0x[0-9a-f_]+|0o[0-7_]+|[-+]?\.inf|\.nan)$/i;

/** True if both have the same meaning, whatever the order of fields, comments and quotes. */
export function samePart(a: Part, b: Part): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (isScalar(a) && isScalar(b)) {
    if (a.value !== b.value) return false;
    if (typeof a.value !== 'string' || !NOT_A_TEXT.test(a.value)) return true;
    return (a.type === 'PLAIN') === (b.type === 'PLAIN');
  }
  if (isSeq(a) && isSeq(b)) {
    return (
      a.items.length === b.items.length && a.items.every((item, at) => samePart(item as Part, b.items[at] as Part))
    );
  }
  if (!isMap(a) || !isMap(b) || a.items.length !== b.items.length) return false;
  const others = entriesOf(b);
  return a.items.every(({ key, value }) => {
    const name = entryKey(key);
    return others.has(name) && samePart((value ?? undefined) as Part, others.get(name));
  });
}

/** A text that two parts have in common if and only if they have the same meaning. */
export function partText(part: Part): string {
  if (isMap(part)) {
    const entries = [...entriesOf(part)].map(([key, value]) => `${JSON.stringify(key)}:${partText(value)}`);
    return `{${entries.sort().join(',')}}`;
  }
  if (isSeq(part)) return `[${part.items.map((item) => partText(item as Part)).join(',')}]`;
  if (!isScalar(part)) return '-';
  const { value, type } = part;
  const isNoText = typeof value === 'string' && type === 'PLAIN' && NOT_A_TEXT.test(value);
  return `${isNoText ? '!' : ''}${JSON.stringify(value)}`;
}
