import { isAlias, isMap, isScalar, isSeq, type Node, parseAllDocuments, type Document as YamlDocument } from 'yaml';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { digest } from '../../../foundation/text/canonical-json.ts';
import { isYamlPath, type KrmObject } from './krm.ts';
import { readsAlike } from './line-breaks.ts';

/** Digests of this form know how plain scalars are written. Those without it are of an earlier version, made of parsed values. */
export const OBJECT_DIGEST_PREFIX = 'o2:';

/**
 * A longer file counts as a whole, and so does each file of a package with more YAML than that: to read it with its scalars as they are
 * written takes too long.
 */
const MAX_FILE_BYTES = 16 * 1024;
const MAX_PACKAGE_BYTES = 64 * 1024;
const MAX_NODES = 100_000;
const MAX_DEPTH = 200;
/**
 * Plain scalars that some YAML readers do not parse as text: numbers, octals, times, booleans of YAML 1.1, null, merge keys. For these
 * the source text counts, since `0644` and `644`, or `yes` and `"yes"`, mean different things to different readers.
 */
const AMBIGUOUS = /^(?:[-+.\d].*|y|n|yes|no|on|off|true|false|null|~|=|<<|)$/is;

/** Digests of the objects of one version of a package. Each file is read once. */
export class ObjectDigests {
  readonly #files: ReadonlyMap<string, Uint8Array>;
  readonly #isLarge: boolean;
  readonly #read = new Map<string, ReadonlyMap<string, YamlDocument | undefined>>();

  constructor(files: ReadonlyMap<string, Uint8Array>) {
    this.#files = files;
    let bytes = 0;
    for (const [path, data] of files) if (isYamlPath(path)) bytes += data.byteLength;
    this.#isLarge = bytes > MAX_PACKAGE_BYTES;
  }

  /**
   * Computes the digest of some objects without their top-level status: of their source values, independent of comments, key order
   * and layout. An object in a long file, one that merges fields (`<<`), or one in a file that YAML readers parse differently, counts with
   * its whole file.
   */
  of(objects: readonly KrmObject[]): string {
    const parts = objects.map((object) => {
      const document = this.#documents(object.file).get(nameOf(object));
      const written = document === undefined ? undefined : writtenForm(document);
      return written ?? `file ${digest(this.#files.get(object.file) ?? '')}`;
    });
    return `${OBJECT_DIGEST_PREFIX}${digest(parts.sort().join('\n'))}`;
  }

  /** Returns the documents of a file by their identity; undefined for one whose identity is not unique. */
  #documents(file: string): ReadonlyMap<string, YamlDocument | undefined> {
    const known = this.#read.get(file);
    if (known !== undefined) return known;
    const byName = new Map<string, YamlDocument | undefined>();
    for (const document of this.#parse(file)) {
      const text = (...path: string[]) => {
        const value = document.getIn(path);
        return typeof value === 'string' ? value : undefined;
      };
      const namespace = text('metadata', 'namespace');
      const head = {
        apiVersion: text('apiVersion') ?? '',
        kind: text('kind') ?? '',
        name: text('metadata', 'name') ?? '',
      };
      const name = nameOf({ ...head, namespace });
      byName.set(name, byName.has(name) ? undefined : document);
    }
    this.#read.set(file, byName);
    return byName;
  }

  #parse(file: string): readonly YamlDocument[] {
    const data = this.#files.get(file);
    if (data === undefined || this.#isLarge || data.byteLength > MAX_FILE_BYTES || !readsAlike(data)) return [];
    const parsed = parseAllDocuments(Buffer.from(data).toString('utf8'), { logLevel: 'silent' });
    return Array.isArray(parsed) && parsed.every(({ errors }) => errors.length === 0) ? parsed : [];
  }
}

function nameOf({ apiVersion, kind, name, namespace }: Pick<KrmObject, 'apiVersion' | 'kind' | 'name' | 'namespace'>) {
  return JSON.stringify([apiVersion, kind, name, namespace ?? null]);
}

/** Undefined if it is longer than expected for a file of this length, as with expanding aliases, or has a merge key. */
function writtenForm(document: YamlDocument): string | undefined {
  const budget = { nodes: MAX_NODES };
  const write = (node: Node | null | undefined, depth: number): string => {
    budget.nodes -= 1;
    if (budget.nodes < 0 || depth > MAX_DEPTH) throw new SluiceError('LimitExceeded', 'the object has too many parts');
    if (isAlias(node)) return write(node.resolve(document), depth + 1);
    const tag = node?.tag === undefined ? '' : `!${JSON.stringify(node.tag)}`;
    if (isMap(node)) {
      // Whether a merged field or that of the map itself counts depends on their order for some readers, such as kubectl.
      if (node.items.some(({ key }) => isMergeKey(key as Node | null, document)))
        throw new SluiceError('Unsupported', 'the object has a merge key');
      const fields = node.items.map(
        ({ key, value }) => `${write(key as Node | null, depth + 1)}:${write(value as Node | null, depth + 1)}`,
      );
      return `${tag}{${fields.sort().join(',')}}`;
    }
    if (isSeq(node)) return `${tag}[${node.items.map((item) => write(item as Node | null, depth + 1)).join(',')}]`;
    if (!isScalar(node)) return '~';
    const source = node.source ?? '';
    const isPlain = node.type === 'PLAIN' || node.type === undefined;
    return isPlain && AMBIGUOUS.test(source)
      ? `${tag}~${source}`
      : `${tag}${JSON.stringify(isPlain ? source : node.value)}`;
  };
  const { contents } = document;
  if (!isMap(contents)) return undefined;
  if (contents.items.some(({ key }) => isMergeKey(key as Node | null, document))) return undefined;
  const rest = contents.items.filter(({ key }) => !(isScalar(key) && key.value === 'status'));
  try {
    return rest
      .map(({ key, value }) => `${write(key as Node | null, 1)}:${write(value as Node | null, 1)}`)
      .sort()
      .join(',');
  } catch (error) {
    if (error instanceof SluiceError || error instanceof ReferenceError) return undefined;
    throw error;
  }
}

/** In any style: readers differ in which of them they treat as a merge key. */
function isMergeKey(key: Node | null, document: YamlDocument): boolean {
  const node = isAlias(key) ? key.resolve(document) : key;
  return isScalar(node) && (node.value === '<<' || node.source === '<<');
}
