import { type KptfileError, type KptfileErrorCode, KptfileReadFailure } from '../model/kptfile-error.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import { findLongList, MAX_KPTFILE_BYTES, MAX_VALUES } from '../model/limits.ts';
import { failAt, type MappingNode, parseYamlTree, type YamlTree } from '../yaml/yaml-tree.ts';
import { decodeKptfile } from './decode-kptfile.ts';

/** Where the fields of kpt.dev/v1alpha1 went in v1, as kpt's catalog function "fix" moves them. */
const FROM_V1ALPHA1: Readonly<Record<string, string>> = {
  packageMetadata:
    'packageMetadata becomes info (shortDescription is info.description, url info.site, email info.emails, tags info.keywords)',
  upstream: 'upstream.git keeps repo, directory and ref, its commit moves to upstreamLock.git',
  openAPI: 'setters of openAPI become a function apply-setters in pipeline.mutators, their values its configMap',
  functions: 'functions become entries of pipeline.mutators',
  dependencies: 'dependencies is removed: fetch each as a nested package',
  inventory: 'inventory stays as it is',
};

export type ReadResult =
  | { readonly ok: true; readonly kptfile: Kptfile }
  | { readonly ok: false; readonly error: KptfileError };

export interface ReadOptions {
  /** Bytes (of a string: UTF-16 units) above which a text is refused unread. Default 256 KiB. */
  readonly maxSize?: number;
}

/**
 * Reads a Kptfile leniently: what kpt accepts is accepted, fields that kpt does not know are kept, and so are
 * duplicate or odd conditions. Use lintKptfile for a strict check. Never throws on a bad text.
 */
export function readKptfile(text: string | Uint8Array, options: ReadOptions = {}): ReadResult {
  try {
    return { ok: true, kptfile: loadKptfile(text, options).kptfile };
  } catch (error) {
    if (error instanceof KptfileReadFailure) return { ok: false, error: error.error };
    throw error;
  }
}

/** A Kptfile with the tree that it was read from. */
export interface LoadedKptfile {
  readonly tree: YamlTree;
  readonly root: MappingNode;
  readonly kptfile: Kptfile;
}

/** readKptfile for the parts of this library that need positions. Throws KptfileReadFailure. */
export function loadKptfile(text: string | Uint8Array, options: ReadOptions = {}): LoadedKptfile {
  const maxSize = options.maxSize ?? MAX_KPTFILE_BYTES;
  if (text.length > maxSize) {
    fail('TooLarge', `The file has more than ${maxSize} bytes. A Kptfile holds conditions and a pipeline, not data.`);
  }
  const tree = parseYamlTree(typeof text === 'string' ? text : decodeUtf8(text));
  const root = checkedRoot(tree);
  checkLists(root, tree);
  if (tree.values > MAX_VALUES) {
    const text = `The file has ${tree.values} values and field names, at most ${MAX_VALUES} are allowed. A Kptfile holds conditions and a pipeline, not data.`;
    fail('TooMany', text);
  }
  return { tree, root, kptfile: decodeKptfile(root, tree.source) };
}

// ignoreBOM keeps a byte order mark in the text, so that an edit writes it back.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return fail('Encoding', 'The file is not UTF-8. Save it as UTF-8.');
  }
}

function checkedRoot({ root, source }: YamlTree): MappingNode {
  if (root === undefined) return fail('NotAKptfile', 'The file is empty. A Kptfile has at least apiVersion and kind.');
  if (root.kind !== 'mapping') {
    return failAt(
      source,
      root.start,
      'NotAKptfile',
      'The file is not a mapping. A Kptfile begins with apiVersion and kind.',
    );
  }
  const kind = textOf(root, 'kind');
  const version = textOf(root, 'apiVersion');
  const at = (field: string): number => root.entries.get(field)?.key.start ?? root.start;
  if (/^kptfile$/i.test(kind) && (version === 'kpt.dev/v1alpha1' || version === 'kpt.dev/v1alpha2')) {
    const advice = migrationAdvice(version === 'kpt.dev/v1alpha1' ? 'v1alpha1' : 'v1alpha2', root);
    return failAt(source, at('apiVersion'), 'DeprecatedVersion', advice, 'apiVersion');
  }
  if (kind !== 'Kptfile') {
    const found = kind === '' ? 'kind is missing' : `kind is ${kind}`;
    return failAt(source, at('kind'), 'NotAKptfile', `${found}. It must be Kptfile.`, 'kind');
  }
  if (version === 'kpt.dev/v1') return root;
  const known = version.startsWith('kpt.dev/');
  const found =
    version === '' ? 'apiVersion is missing' : `apiVersion is ${version}${known ? ', an unknown version' : ''}`;
  const code = known ? 'UnknownVersion' : 'NotAKptfile';
  return failAt(source, at('apiVersion'), code, `${found}. It must be kpt.dev/v1.`, 'apiVersion');
}

/** Whatever compares gates with conditions costs their product at worst, so both are bounded. */
function checkLists(root: MappingNode, { source }: YamlTree): void {
  let offset = root.start;
  const long = findLongList((parent, field) => {
    const within = root.entries.get(parent)?.value;
    const entry = within?.kind === 'mapping' ? within.entries.get(field) : undefined;
    if (entry === undefined) return undefined;
    offset = entry.key.start;
    return entry.value.kind === 'sequence' ? entry.value.items.length : undefined;
  });
  if (long !== undefined) failAt(source, offset, 'TooMany', long.message, long.path);
}

/** The text of a top-level field; empty if it is missing or no scalar. */
function textOf(root: MappingNode, field: string): string {
  const value = root.entries.get(field)?.value;
  return value?.kind === 'scalar' ? value.text : '';
}

function fail(code: KptfileErrorCode, message: string): never {
  throw new KptfileReadFailure({ code, message });
}

/** How to convert a Kptfile of an old version to v1; names the fields of this file that move. */
function migrationAdvice(version: 'v1alpha1' | 'v1alpha2', root: MappingNode): string {
  const intro = `apiVersion kpt.dev/${version} is an old form that current kpt rejects, and its command kpt fix was removed.`;
  if (version === 'v1alpha2') {
    return `${intro} Set apiVersion: kpt.dev/v1. A function's inline config moves to a file that configPath names; other fields stay.`;
  }
  const moves = Object.entries(FROM_V1ALPHA1).filter(([field]) => root.entries.has(field));
  const advice = moves.map(([, move]) => `; ${move}`).join('');
  return `${intro} Set apiVersion: kpt.dev/v1${advice}.`;
}
