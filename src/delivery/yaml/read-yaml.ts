import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseAllDocuments,
  type YAMLMap,
  type Scalar as YamlScalar,
} from 'yaml';
import { isMapping, isSequence, type Mapping, type Scalar, type Value } from './yaml-value.ts';

/** A line of the text, from 1, and the problem there. */
export class YamlProblem extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.name = 'YamlProblem';
    this.line = line;
  }
}

export interface YamlDocument {
  readonly value: Value;
  readonly line: number;
}

const MAX_DEPTH = 200;
/** Characters of the longest key that YAML readers must accept. */
const MAX_KEY_CHARACTERS = 1000;
/** Entries that the merge keys of a text may visit: 200 KB of "<<: [*a, *b]" would otherwise take minutes. */
const MAX_MERGED_ENTRIES = 100_000;

/**
 * Reads the documents of a YAML (or JSON) text, without empty ones. Aliases are replaced by their values and merge keys are
 * applied. Throws YamlProblem for invalid YAML, duplicate keys, unknown tags, and too deep nesting.
 */
export function readYaml(text: string): YamlDocument[] {
  const lines = new LineCounter();
  // "failsafe" turns no scalar into a number; the library's own search for equal keys takes quadratic time.
  const parsed = parseAllDocuments(text, {
    schema: 'failsafe',
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'silent',
  });
  const documents: YamlDocument[] = [];
  const merges = { left: MAX_MERGED_ENTRIES };
  for (const document of Array.isArray(parsed) ? parsed : []) {
    const value = readDocument(document, lines, merges);
    if (value !== undefined) documents.push(value);
  }
  return documents;
}

function readDocument(
  document: Document.Parsed,
  lines: LineCounter,
  merges: { left: number },
): YamlDocument | undefined {
  const error = document.errors[0];
  if (error !== undefined) {
    const deep = error.message.includes('call stack');
    throw new YamlProblem(lineOf(lines, error.pos[0]), deep ? 'nested too deeply' : error.message);
  }
  const { contents } = document;
  if (contents === null) return undefined;
  const line = lineOf(lines, contents.range[0]);
  if (document.directives.yaml.explicit === true && document.directives.yaml.version !== '1.2')
    throw new YamlProblem(line, `%YAML ${document.directives.yaml.version} is not supported: remove the directive`);
  if (isScalar(contents) && contents.type === 'PLAIN' && contents.source === '') return undefined;
  return { value: new Reader(lines, merges).read(contents, 0), line };
}

class Reader {
  readonly #lines: LineCounter;
  readonly #merges: { left: number };
  readonly #anchors = new Map<string, Value>();

  /** `merges` is the number of entries that merge keys may still visit. */
  constructor(lines: LineCounter, merges: { left: number }) {
    this.#lines = lines;
    this.#merges = merges;
  }

  read(node: unknown, depth: number): Value {
    if (node === null || node === undefined) return { text: 'null', plain: true };
    const line = this.#lineOf(node);
    if (depth > MAX_DEPTH) throw new YamlProblem(line, `nested deeper than ${MAX_DEPTH} levels`);
    if (isAlias(node)) {
      const value = this.#anchors.get(node.source);
      if (value === undefined)
        throw new YamlProblem(line, `alias *${node.source} is used before its anchor or inside it`);
      return value;
    }
    let value: Value;
    if (isMap(node)) value = this.#mapping(node, depth, line);
    else if (isSeq(node)) {
      this.#checkTag(node.tag, line, ['seq']);
      value = node.items.map((item) => this.read(item, depth + 1));
    } else if (isScalar(node)) value = this.#scalar(node, line);
    else throw new YamlProblem(line, 'neither a mapping, a sequence nor a scalar');
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, value);
    return value;
  }

  #mapping(node: YAMLMap, depth: number, line: number): Mapping {
    this.#checkTag(node.tag, line, ['map']);
    const entries: Mapping['entries'] = new Map();
    // A set, since a source that is named again changes nothing.
    const merged = new Set<Mapping>();
    for (const pair of node.items as Pair[]) {
      const key = this.#key(pair.key, line);
      const value = this.read(pair.value, depth + 1);
      if (key.plain && key.text === '<<') {
        this.#addMergeSources(value, merged, this.#lineOf(pair.key));
        continue;
      }
      if (entries.has(key.text))
        throw new YamlProblem(this.#lineOf(pair.key) || line, `key ${JSON.stringify(key.text)} is duplicated`);
      entries.set(key.text, { key, value });
    }
    for (const source of merged) {
      // An empty source counts too.
      this.#merges.left -= source.entries.size + 1;
      if (this.#merges.left < 0)
        throw new YamlProblem(line, `merge keys "<<" copy more than ${MAX_MERGED_ENTRIES} entries`);
      for (const [key, entry] of source.entries) if (!entries.has(key)) entries.set(key, entry);
    }
    return { entries, line };
  }

  #key(node: unknown, line: number): Scalar {
    if (node === null || node === undefined) throw new YamlProblem(line, 'a key is missing before ":"');
    const key = isScalar(node) || isAlias(node) ? this.read(node, 0) : undefined;
    if (key === undefined || isMapping(key) || isSequence(key))
      throw new YamlProblem(this.#lineOf(node), 'a key is not a scalar');
    if (key.text.length > MAX_KEY_CHARACTERS)
      throw new YamlProblem(this.#lineOf(node), `a key is longer than ${MAX_KEY_CHARACTERS} characters`);
    return key;
  }

  #addMergeSources(value: Value, sources: Set<Mapping>, line: number): void {
    for (const source of isSequence(value) ? value : [value]) {
      if (!isMapping(source)) throw new YamlProblem(line, 'merge key "<<" needs a mapping');
      sources.add(source);
    }
  }

  #scalar(node: YamlScalar, line: number): Scalar {
    const text = String(node.value ?? '');
    const tag = this.#checkTag(node.tag, line, ['str', 'int', 'float', 'bool', 'null', 'timestamp']);
    const plain = node.type === 'PLAIN' && tag !== 'str' && !text.includes('\n');
    if (!plain && tag !== undefined && tag !== 'str')
      throw new YamlProblem(line, `tag !!${tag} on a quoted scalar: write the value without quotes`);
    return { text: plain && text === '' ? 'null' : text, plain };
  }

  /** The short name of a core tag, undefined without one. */
  #checkTag(tag: string | undefined, line: number, allowed: readonly string[]): string | undefined {
    if (tag === undefined) return undefined;
    if (tag === '!') return allowed.includes('str') ? 'str' : undefined;
    const name = tag.startsWith('tag:yaml.org,2002:') ? tag.slice('tag:yaml.org,2002:'.length) : undefined;
    if (name === undefined || !allowed.includes(name)) throw new YamlProblem(line, `tag ${tag} is not supported`);
    return name;
  }

  #lineOf(node: unknown): number {
    const range = (node as { range?: readonly number[] } | null)?.range;
    return lineOf(this.#lines, range?.[0] ?? 0);
  }
}

function lineOf(lines: LineCounter, offset: number): number {
  return Math.max(1, lines.linePos(offset).line);
}
