import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  Pair,
  type Scalar,
  YAMLMap,
  YAMLSeq,
} from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { copyDocument } from '../yaml/copy-document.ts';
import { createNode, plainValue } from '../yaml/node-value.ts';
import { parseResourceText } from '../yaml/parse-resource-text.ts';
import { newDocument } from '../yaml/print-node.ts';
import { newResourceText, ResourceText } from '../yaml/resource-text.ts';

/** Keys of mappings and places in lists, from the root. */
export type FieldPath = readonly (string | number)[];

/** A place in the package: the file below its folder, and the place of the document in the file, from 0. */
export interface Place {
  readonly file: string;
  readonly index: number;
}

/**
 * One KRM resource of a package, as a YAML document: comments and styles are part of it, and unchanged parts are written back
 * byte for byte. Scalars of the tree contain their source text; read values through `value`, `get` and `plainValue`, and write
 * through `set` or with nodes of `createNode`.
 */
export class Resource {
  readonly document: Document & { contents: YAMLMap };
  /** Its place when the package was read; undefined for a resource that a function created. */
  readonly origin: Place | undefined;
  file: string;
  /** Place among the documents of its file, from 0. A new resource is appended if its place is taken. */
  index: number;
  readonly #source: ResourceText | undefined;

  private constructor(document: Document & { contents: YAMLMap }, place: Place, source?: ResourceText, origin?: Place) {
    this.document = document;
    this.#source = source;
    this.file = place.file;
    this.index = place.index;
    this.origin = origin;
  }

  /** Reads one document, which begins at a line (from 1) of its file. Throws InvalidInput as `parseResourceText` does. */
  static parse(text: string, { file, index }: Place, line = 1): Resource {
    const { document, entangled } = parseResourceText(text, { file, line });
    const place = { file, index };
    return new Resource(document, place, new ResourceText(text, document, entangled), place);
  }

  /** A new resource. Without a place it gets one when the package is written: `<kind>_<name>.yaml`, as kpt does. */
  static from(value: Readonly<Record<string, unknown>>, place: Place = { file: '', index: 0 }): Resource {
    const contents = createNode(value);
    if (!isMap(contents)) throw new SluiceError('Internal', 'a resource is a mapping');
    return Resource.of(contents as YAMLMap, place);
  }

  /** Creates a resource from nodes with source texts; one that replaces `before` is written in the same format. */
  static of(contents: YAMLMap, place: Place, before?: Resource): Resource {
    const document = before === undefined ? newDocument(contents) : copyDocument(before.document, contents);
    const [source, origin] = before === undefined ? [] : [before.#source, before.origin];
    return new Resource(document as Document & { contents: YAMLMap }, place, source, origin);
  }

  /** Returns a deep copy. */
  clone(): Resource {
    return new Resource(
      copyDocument(this.document) as Document & { contents: YAMLMap },
      this,
      this.#source,
      this.origin,
    );
  }

  /** The text that the document was read from; undefined for a resource that a function created. */
  get text(): string | undefined {
    return this.#source?.text;
  }

  /** True if it differs from the text that it was read from, comments included. */
  get isChanged(): boolean {
    return this.#source?.isOf(this.document) !== true;
  }

  /** Returns the resource as text: the original one if nothing changed, and otherwise one with as few changed lines as possible. */
  toText(): string {
    return this.#source?.changedTo(this.document, this.describe()) ?? newResourceText(this.document, this.describe());
  }

  get root(): YAMLMap {
    return this.document.contents;
  }

  get apiVersion(): string {
    return this.textAt(['apiVersion']);
  }

  get kind(): string {
    return this.textAt(['kind']);
  }

  /** The part of `apiVersion` before the slash; empty for the core group. */
  get group(): string {
    const { apiVersion } = this;
    return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  }

  get name(): string {
    return this.textAt(['metadata', 'name']);
  }

  get namespace(): string | undefined {
    return this.textAt(['metadata', 'namespace']) || undefined;
  }

  annotation(name: string): string | undefined {
    return this.textAt(['metadata', 'annotations', name]) || undefined;
  }

  label(name: string): string | undefined {
    return this.textAt(['metadata', 'labels', name]) || undefined;
  }

  /** `config.kubernetes.io/local-config` other than `false`: for functions only, never applied to a cluster. */
  get isLocalConfig(): boolean {
    const value = this.annotation('config.kubernetes.io/local-config');
    return value !== undefined && value !== 'false';
  }

  /** The resource as plain data, a new copy at every call. */
  get value(): Record<string, unknown> {
    return plainValue(this.root) as Record<string, unknown>;
  }

  /** The node at a path; undefined if there is none. */
  node(path: FieldPath): Node | undefined {
    let at: Node | undefined = this.root;
    for (const key of path) {
      if (isMap(at)) at = pairOf(at, String(key))?.value as Node | undefined;
      else if (isSeq(at) && typeof key === 'number') at = at.items[key] as Node | undefined;
      else return undefined;
      if (at === null) return undefined;
    }
    return at;
  }

  /** The plain value at a path; undefined if there is none. */
  get(path: FieldPath): unknown {
    const node = this.node(path);
    return node === undefined ? undefined : plainValue(node);
  }

  /**
   * Sets a value and creates missing mappings on its path. An existing scalar keeps its comment, and its quotes if the new value
   * allows them; a collection keeps the comment after its key. Throws InvalidInput if the path leads through a scalar or past the end
   * of a list.
   */
  set(path: FieldPath, value: unknown): void {
    let at: Node = this.root;
    for (const [depth, key] of path.entries()) {
      const last = depth === path.length - 1;
      if (isMap(at)) {
        const pair = pairOf(at, String(key));
        // `{}` becomes a block with its first entry.
        if (at.items.length === 0) at.flow = false;
        if (last) {
          if (pair === undefined) at.items.push(newPair(String(key), createNode(value)) as never);
          else pair.value = replaced(pair.value as Node | null, value);
        } else if (pair === undefined || pair.value === null || isNull(pair.value as Node)) {
          const made = emptyFor(path[depth + 1]);
          if (pair === undefined) at.items.push(newPair(String(key), made) as never);
          else pair.value = made;
          at = made;
        } else at = pair.value as Node;
      } else if (isSeq(at) && typeof key === 'number' && key <= at.items.length) {
        if (at.items.length === 0) at.flow = false;
        if (last) at.items[key] = replaced((at.items[key] ?? null) as Node | null, value);
        else if (at.items[key] === undefined) {
          const made = emptyFor(path[depth + 1]);
          at.items[key] = made;
          at = made;
        } else at = at.items[key] as Node;
      } else {
        const where = path.slice(0, depth).join('.') || 'the root';
        throw new SluiceError(
          'InvalidInput',
          `${this.describe()}: ${path.join('.')} cannot be set: ${where} cannot contain ${JSON.stringify(key)}`,
        );
      }
    }
  }

  /** Removes a field or an item. Returns true if it existed. */
  delete(path: FieldPath): boolean {
    const key = path.at(-1);
    const parent = this.node(path.slice(0, -1));
    if (isMap(parent)) {
      const at = parent.items.findIndex((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
      if (at === -1) return false;
      parent.items.splice(at, 1);
      return true;
    }
    if (!isSeq(parent) || typeof key !== 'number' || key >= parent.items.length) return false;
    parent.items.splice(key, 1);
    return true;
  }

  /** For messages: `deployment.yaml: Deployment default/web`. */
  describe(): string {
    const name = this.namespace === undefined ? this.name : `${this.namespace}/${this.name}`;
    return `${this.file === '' ? '' : `${this.file}: `}${this.kind} ${name}`;
  }

  /** The text of a scalar; empty if there is none. */
  private textAt(path: FieldPath): string {
    const node = this.node(path);
    return isScalar(node) && node.value !== null ? String(node.value) : '';
  }
}

function pairOf(map: YAMLMap, key: string): Pair<unknown, Node | null> | undefined {
  // Functions look up fields frequently, in small mappings.
  for (const pair of map.items as Pair<Scalar, Node | null>[]) {
    if (pair.key.value === key || (pair.key.value === null && key === 'null')) return pair;
  }
  return undefined;
}

function newPair(key: string, value: Node): Pair {
  return new Pair(createNode(key), value);
}

function emptyFor(next: string | number | undefined): YAMLMap | YAMLSeq {
  return typeof next === 'number' ? new YAMLSeq() : new YAMLMap();
}

function isNull(node: Node): boolean {
  return isScalar(node) && node.value === null;
}

/** The node for a new value in place of an old one. */
function replaced(old: Node | null, value: unknown): Node {
  const made = createNode(value);
  // A comment behind the key of a collection.
  if (isCollection(old) && isCollection(made) && old.commentBefore) made.commentBefore = old.commentBefore;
  if (!isScalar(old) || !isScalar(made)) return made;
  const { comment, commentBefore, spaceBefore } = old as Scalar;
  Object.assign(made, { comment, commentBefore, spaceBefore });
  const quoted = old.type === 'QUOTE_DOUBLE' || old.type === 'QUOTE_SINGLE';
  if (typeof value === 'string' && quoted) made.type = old.type as NonNullable<typeof old.type>;
  return made;
}
